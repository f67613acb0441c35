// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

private final class Plain: URLProtocol, @unchecked Sendable {
    var started = [1, 2, 3]
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "plain" }
}

private final class Overriding: URLProtocol, @unchecked Sendable {
    let own: String
    override init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        own = "set"
        super.init(request: request, cachedResponse: cachedResponse, client: client)
    }
}

private final class Client: NSObject, URLProtocolClient {
    var failures: [any Error] = []
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {}
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {}
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {}
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {}
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) { failures.append(error) }
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {}
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
}

@Suite struct URLProtocolRegistryTests {
    private func request(_ text: String) throws -> URLRequest { URLRequest(url: try #require(URL(string: text))) }

    @Test func `an instance of any subclass is created, with its own state`() throws {
        let request = try request("plain://x")
        let client = Client()
        let plain = URLProtocol.make(Plain.self, task: nil, request: request, cachedResponse: nil, client: client)
        #expect((plain as? Plain)?.started == [1, 2, 3] && plain.request == request && plain.client === client)
        let overriding = URLProtocol.make(Overriding.self, task: nil, request: request, cachedResponse: nil, client: client)
        #expect((overriding as? Overriding)?.own == "set")
    }

    @Test func `an instance has its task`() throws {
        let task = URLSessionDataTask()
        let request = try request("plain://x")
        let made = URLProtocol.make(Plain.self, task: task, request: request, cachedResponse: nil, client: Client())
        #expect(made.task === task)
    }

    @Test func `the last registered class comes first, and each class is listed once`() {
        #expect(!URLProtocol.registerClass(NSObject.self))
        #expect(URLProtocol.registerClass(Plain.self))
        #expect(URLProtocol.registerClass(Overriding.self))
        #expect(URLProtocol.registerClass(Plain.self))
        let mine = URLProtocolRegistry.classes.filter { $0 == Plain.self || $0 == Overriding.self }
        #expect(mine.count == 2 && mine.first == Plain.self)
        URLProtocol.unregisterClass(Plain.self)
        URLProtocol.unregisterClass(Overriding.self)
        #expect(!URLProtocolRegistry.classes.contains { $0 == Plain.self || $0 == Overriding.self })
    }

    @Test func `a class that does not override startLoading fails its loads`() throws {
        let client = Client()
        let request = try request("plain://x")
        URLProtocol.make(Plain.self, task: nil, request: request, cachedResponse: nil, client: client).startLoading()
        #expect((client.failures.first as? URLError)?.code == .unsupportedURL)
    }

    @Test func `properties are copied with a request`() throws {
        let mutable = NSMutableURLRequest(url: try #require(URL(string: "http://a/")))
        URLProtocol.setProperty(42, forKey: "k", in: mutable)
        let copy = mutable as URLRequest
        #expect(URLProtocol.property(forKey: "k", in: copy) as? Int == 42)
        URLProtocol.removeProperty(forKey: "k", in: mutable)
        #expect(URLProtocol.property(forKey: "k", in: mutable as URLRequest) == nil)
        #expect(URLProtocol.property(forKey: "k", in: copy) as? Int == 42)
    }

    @Test func `requests for the same URL are cache-equivalent`() throws {
        #expect(URLProtocol.requestIsCacheEquivalent(try request("HTTP://A/b"), to: try request("http://a:80/b#c")))
        #expect(!URLProtocol.requestIsCacheEquivalent(try request("http://a/b?1"), to: try request("http://a/b?2")))
    }
}
