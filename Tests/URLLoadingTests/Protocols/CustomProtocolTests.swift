// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Loads by the app's `URLProtocol` classes in a session's `protocolClasses`.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CustomProtocolTests {
    private func withCustomSession(
        delegate: (any URLSessionDelegate)? = nil, test: (URLSession) async throws -> Void
    ) async throws {
        try await withSession(delegate: delegate, { $0.protocolClasses = [PathProtocol.self] }, test: test)
    }

    private func url(_ path: String) throws -> URL { try #require(URL(string: "custom://host/\(path)")) }

    @Test func `all data that a protocol loads arrives, with every API`() async throws {
        let recorder = EventRecorder()
        try await withCustomSession(delegate: recorder) { (session) async throws in
            let url = try url("three")
            let (data, response) = try await session.data(from: url)
            #expect(data == Data("onetwothree".utf8))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            let done = Delivered<Data?>()
            session.dataTask(with: url) { data, _, _ in done(data) }.resume()
            #expect(try await done.value == Data("onetwothree".utf8))
            let task = session.dataTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("onetwothree".utf8))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            let (file, _) = try await session.download(from: url)
            #expect(try Data(contentsOf: file) == Data("onetwothree".utf8))
            try FileManager.default.removeItem(at: file)
            let (bytes, _) = try await session.bytes(from: url)
            var count = 0
            for try await _ in bytes { count += 1 }
            #expect(count == 11)
        }
    }

    @Test func `a protocol sees the body of an upload`() async throws {
        try await withCustomSession { (session) async throws in
            let request = URLRequest(try url("echo"), method: "POST")
            let (data, _) = try await session.upload(for: request, from: Data("hello".utf8))
            #expect(data == Data("hello".utf8))
        }
    }

    @Test func `the protocol's own error reaches the app`() async throws {
        try await withCustomSession { (session) async throws in
            do {
                _ = try await session.data(from: try url("fail"))
                Issue.record("the load succeeded")
            } catch {
                #expect((error as NSError).domain == "PathProtocol")
                #expect((error as NSError).code == 7)
            }
        }
    }

    @Test func `a protocol's redirect is followed, and the delegate is asked first`() async throws {
        let recorder = EventRecorder()
        try await withCustomSession(delegate: recorder) { (session) async throws in
            let task = session.dataTask(with: try url("redirect"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters.hasPrefix("crR"))
            #expect(record.body == Data("onetwothree".utf8))
            #expect(task.currentRequest?.url?.path == "/three")
        }
    }

    @Test func `cancelling a load stops its protocol`() async throws {
        let recorder = EventRecorder()
        try await withCustomSession(delegate: recorder) { (session) async throws in
            let id = UUID().uuidString
            let task = session.dataTask(with: try url("stall?\(id)"))
            task.resume()
            try await PathProtocol.events.value { $0.contains("start \(id)") ? () : nil }
            task.cancel()
            let ended = try await recorder.completion(of: task)
            #expect((ended.error as? URLError)?.code == .cancelled)
            try await PathProtocol.events.value { $0.contains("stop \(id)") ? () : nil }
        }
    }

    @Test func `http URLs that no protocol accepts are loaded as usual`() async throws {
        try await withScenario(
            configure: { $0.protocolClasses = [PathProtocol.self] },
            reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("net") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "net")
            // In a session without the class, the scheme is unknown.
            try await withSession { (other) async throws in
                await expectFailure(.unsupportedURL) { try await other.data(from: try url("three")) }
            }
        }
    }
}

/// Responds, redirects or fails as the path of its URL determines.
private final class PathProtocol: URLProtocol, @unchecked Sendable {
    static let events = Watched<[String]>([])

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "custom" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let client else { return }
        Self.events.change { $0.append("start \(url.query ?? "")") }
        func respond(_ status: Int) {
            guard let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: [:]) else {
                return
            }
            client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        }
        switch url.path {
        case "/three":
            respond(200)
            for part in ["one", "two", "three"] { client.urlProtocol(self, didLoad: Data(part.utf8)) }
            client.urlProtocolDidFinishLoading(self)
        case "/echo":
            respond(200)
            client.urlProtocol(self, didLoad: request.httpBody ?? request.httpBodyStream.map(Self.read) ?? Data())
            client.urlProtocolDidFinishLoading(self)
        case "/redirect":
            guard let target = URL(string: "custom://host/three"),
                let response = HTTPURLResponse(
                    url: url, statusCode: 302, httpVersion: nil, headerFields: ["Location": target.absoluteString])
            else { return }
            client.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: response)
        case "/fail":
            client.urlProtocol(self, didFailWithError: NSError(domain: "PathProtocol", code: 7))
        default: break
        }
    }

    override func stopLoading() { Self.events.change { [query = request.url?.query ?? ""] in $0.append("stop \(query)") } }

    private static func read(_ stream: InputStream) -> Data {
        var data = Data()
        stream.open()
        defer { stream.close() }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 {
            data.append(contentsOf: buffer.prefix(count))
        }
        return data
    }
}
