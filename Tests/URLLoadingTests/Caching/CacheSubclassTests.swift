// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Sessions look up and store responses through subclasses of `URLCache` that store responses themselves.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheSubclassTests {
    private static func entry(_ url: URL, _ text: String, _ fields: [String: String]) throws -> CachedURLResponse {
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        return CachedURLResponse(response: response, data: Data(text.utf8))
    }

    @Test(arguments: LoadForm.allCases)
    func `a subclass that overrides the methods for requests is filled and used`(form: LoadForm) async throws {
        let cache = RequestCache()
        let recorder = EventRecorder()
        try await withCachedScenario(
            cache: cache, delegate: recorder, reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let (data, response) = try await form.load(URLRequest(server.url("/a")), in: session, recorder)
                #expect(data == Data("0".utf8) && response.statusCode == 200)
                #expect(response.value(forHTTPHeaderField: "Cache-Control") == "max-age=600")
            }
            #expect(server.requests.count == 1)
            #expect(cache.kept.withLock { $0.keys.map(\.self) } == [server.url("/a")])
            #expect(cache.entries().isEmpty)
            #expect(cache.calls.withLock { $0.contains("get") && $0.contains("store") })
        }
    }

    @Test(arguments: LoadForm.allCases)
    func `a subclass that overrides the methods for tasks is filled and used`(form: LoadForm) async throws {
        let cache = TaskKeepingCache()
        let recorder = EventRecorder()
        try await withCachedScenario(
            cache: cache, delegate: recorder, reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let (data, _) = try await form.load(URLRequest(server.url("/a")), in: session, recorder)
                #expect(data == Data("0".utf8))
            }
            #expect(server.requests.count == 1)
            #expect(cache.kept.withLock { $0.keys.map(\.self) } == [server.url("/a")])
        }
    }

    @Test func `the freshness of a subclass's response decides whether it is served`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(
            cache: cache,
            reply: { request in
                request.header("If-None-Match") == "\"s\""
                    ? .bare(304, Fields.fresh + [("ETag", "\"s\"")]) : .ok("server", Fields.fresh)
            }
        ) { (server, session, _) async throws in
            let url = server.url("/a")
            let fresh = try Self.entry(url, "kept", ["Cache-Control": "max-age=600"])
            cache.kept.withLock { $0[url] = fresh }
            #expect(try await session.text(url) == "kept")
            #expect(server.requests.isEmpty)
            let stale = try Self.entry(url, "stale", ["Cache-Control": "max-age=0", "ETag": "\"s\""])
            cache.kept.withLock { $0[url] = stale }
            #expect(try await session.text(url) == "stale")
            #expect(server.requests.count == 1)
            let void = try Self.entry(url, "void", ["Cache-Control": "no-store"])
            cache.kept.withLock { $0[url] = void }
            #expect(try await session.text(url) == "server")
        }
    }

    @Test func `cache policies apply to a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(cache: cache, reply: { _ in .ok("server") }) { (server, session, _) async throws in
            let request = URLRequest(server.url("/a"))
            await expectFailure(.resourceUnavailable) { try await session.data(for: request.with(.returnCacheDataDontLoad)) }
            let entry = try Self.entry(server.url("/a"), "kept", ["Cache-Control": "max-age=0"])
            cache.kept.withLock { $0[server.url("/a")] = entry }
            #expect(try await session.text(request.with(.returnCacheDataDontLoad)).text == "kept")
            #expect(try await session.text(request.with(.returnCacheDataElseLoad)).text == "kept")
            #expect(server.requests.isEmpty)
            #expect(try await session.text(request.with(.reloadIgnoringLocalCacheData)).text == "server")
        }
    }

    @Test func `a response that must not be stored is not passed to a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(
            cache: cache,
            reply: { request in
                switch request.path {
                case "/no-store": .ok("x", [("Cache-Control", "no-store")])
                case "/404": .status(404, body: "x")
                case "/401": .status(401, Fields.fresh, body: "x")
                case "/cut": .begun(200, Fields.fresh + [("Content-Length", "9")], "abc").then(.close)
                default: .ok("x", Fields.fresh)
                }
            }
        ) { (server, session, _) async throws in
            for path in ["/no-store", "/404", "/401", "/cut"] { _ = try? await session.data(from: server.url(path)) }
            _ = try await session.data(for: URLRequest(server.url("/post"), method: "POST"))
            let (file, _) = try await session.download(from: server.url("/download"))
            try? FileManager.default.removeItem(at: file)
            #expect(cache.kept.withLock { $0.isEmpty })
        }
    }

    @Test func `only successful responses are passed to a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(
            cache: cache,
            reply: { request in
                switch request.path {
                case "/old": .redirect(301, to: "/new")
                case "/new": .ok("new", Fields.fresh)
                default: .status(404, Fields.fresh, body: "none")
                }
            }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                #expect(try await session.text(server.url("/old")) == "new")
                #expect(try await session.text(URLRequest(server.url("/none"))).response.statusCode == 404)
            }
            #expect(server.requests.map(\.path) == ["/old", "/new", "/none", "/old", "/none"])
            #expect(cache.kept.withLock { $0.keys.map(\.path) } == ["/new"])
        }
    }

    @Test func `an unsafe request removes the response from a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(
            cache: cache, reply: { .ok("\($0.order)", $0.method == "GET" ? Fields.fresh : []) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url("/a")) == "0")
            _ = try await session.data(for: URLRequest(server.url("/a"), method: "PUT"))
            #expect(try await session.text(server.url("/a")) == "2")
        }
    }

    @Test func `an unsafe request asks a subclass only once to remove the response`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(cache: cache, reply: { _ in .ok("x") }) { (server, session, _) async throws in
            _ = try await session.data(for: URLRequest(server.url("/a"), method: "POST"))
            #expect(cache.calls.withLock { $0 } == ["remove"])
        }
    }

    @Test func `a 304 updates the fields in a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(
            cache: cache,
            reply: { request in
                request.order == 0
                    ? .ok("body", Fields.stale)
                    : .bare(304, Fields.fresh + [("ETag", "\"v\""), ("X-New", "1")])
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url("/a")) == "body")
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url("/a")))
                #expect(text == "body" && response.value(forHTTPHeaderField: "X-New") == "1")
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a subclass that calls super works like its superclass`() async throws {
        let cache = WatchingCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        try await withCachedScenario(cache: cache, reply: { .ok("\($0.order)", Fields.fresh) }) {
            (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "0")
            #expect(server.requests.count == 1)
            #expect(cache.calls.withLock { $0.filter { $0 == "store" }.count } == 1)
            #expect(cache.calls.withLock { $0.filter { $0 == "get" }.count } == 2)
        }
    }

    @Test func `HEAD and range requests are served from a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(cache: cache, reply: { _ in .ok("server", Fields.fresh) }) {
            (server, session, _) async throws in
            let url = server.url("/a")
            let entry = try Self.entry(url, "0123456789", ["Cache-Control": "max-age=600", "ETag": "\"e\""])
            cache.kept.withLock { $0[url] = entry }
            let head = try await session.text(URLRequest(url, method: "HEAD"))
            #expect(head.text.isEmpty && head.response.statusCode == 200)
            let part = try await session.text(URLRequest(url, headers: ["Range": "bytes=2-4"]))
            #expect(part.text == "234" && part.response.statusCode == 206)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a delegate can veto storing in a subclass`() async throws {
        let cache = RequestCache()
        let delegate = RefusingDelegate()
        try await withCachedScenario(cache: cache, delegate: delegate, reply: { _ in .ok("x", Fields.fresh) }) {
            (server, session, _) async throws in
            session.dataTask(with: server.url()).resume()
            try await delegate.ends.count(reaches: 1)
            #expect(cache.kept.withLock { $0.isEmpty })
        }
    }

    @Test func `a background revalidation fills a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(
            cache: cache,
            reply: { request in
                request.order == 0
                    ? .ok("old", [("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("Age", "100")])
                    : .ok("new", Fields.fresh)
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            while try await session.text(server.url()) != "new" {
                try Task.checkCancellation()
                await Task.yield()
            }
            #expect(try await session.text(server.url()) == "new")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a reset removes all responses from a subclass`() async throws {
        let cache = RequestCache()
        try await withCachedScenario(cache: cache, reply: { .ok("\($0.order)", Fields.fresh) }) {
            (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            await session.reset()
            #expect(cache.calls.withLock { $0.contains("remove all") })
            #expect(try await session.text(server.url()) == "1")
        }
    }

    @Test func `a cancelled task ends although a subclass does not answer`() async throws {
        let cache = SilentCache()
        let recorder = EventRecorder()
        try await withCachedScenario(cache: cache, delegate: recorder, reply: { _ in .ok("x") }) {
            (server, session, _) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            _ = try await cache.asked.value
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
        }
    }

    // MARK: The sent header fields

    private static func varied(_ url: URL) throws -> CachedURLResponse {
        try entry(url, "kept", ["Cache-Control": "max-age=600", "Vary": "Cookie"])
    }

    private func withCookie(
        _ cache: URLCache, reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply,
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            configure: {
                $0.urlCache = cache
                $0.protocolClasses = [ClaimingProtocol.self]
                $0.httpAdditionalHeaders = ["Cookie": "who=ada"]
            }, reply: reply, test: test)
    }

    @Test func `a lookup that a subclass makes for another URL ignores the fields sent to the first URL`() async throws {
        let cache = OtherURLCache()
        try await withCookie(cache, reply: { _ in .ok("server") }) { (server, session) async throws in
            let other = server.url("/other")
            cache.storeCachedResponse(try Self.varied(other), for: URLRequest(url: other))
            cache.other.withLock { $0 = other }
            _ = try await session.text(server.url("/a"))
            #expect(cache.found.withLock { $0 } == ["kept"])
        }
    }

    @Test func `a lookup for a task ignores the fields sent before a redirect to a URLProtocol class`() async throws {
        let cache = OtherURLCache()
        let recorder = EventRecorder()
        try await withCookie(cache, reply: { _ in .redirect(302, to: "/claimed") }) { (server, session) async throws in
            let claimed = server.url("/claimed")
            cache.storeCachedResponse(try Self.varied(claimed), for: URLRequest(url: claimed))
            let task = session.dataTask(with: server.url("/a"))
            task.delegate = recorder
            task.resume()
            #expect(try await recorder.completion(of: task).body == Data("claimed".utf8))
            #expect(await cache.cachedResponse(for: task)?.data == Data("kept".utf8))
        }
    }
}

/// Stores responses itself, through the methods for requests.
final class RequestCache: URLCache, @unchecked Sendable {
    let kept = Mutex<[URL: CachedURLResponse]>([:])
    let calls = Mutex<[String]>([])

    override init() { super.init(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil) }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        calls.withLock { $0.append("get") }
        return request.url.flatMap { url in kept.withLock { $0[url] } }
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        calls.withLock { $0.append("store") }
        guard let url = request.url else { return }
        kept.withLock { $0[url] = cachedResponse }
    }

    override func removeCachedResponse(for request: URLRequest) {
        calls.withLock { $0.append("remove") }
        guard let url = request.url else { return }
        kept.withLock { $0[url] = nil }
    }

    override func removeAllCachedResponses() {
        calls.withLock { $0.append("remove all") }
        kept.withLock { $0 = [:] }
    }
}

/// Stores responses itself, through the methods for tasks.
private final class TaskKeepingCache: URLCache, @unchecked Sendable {
    let kept = Mutex<[URL: CachedURLResponse]>([:])

    override init() { super.init(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil) }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let entry = dataTask.currentRequest?.url.flatMap { url in kept.withLock { $0[url] } }
        Task { completionHandler(entry) }
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let url = dataTask.currentRequest?.url else { return }
        kept.withLock { $0[url] = cachedResponse }
    }

    override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let url = dataTask.currentRequest?.url else { return }
        kept.withLock { $0[url] = nil }
    }
}

/// Records the calls, and calls `super`.
private final class WatchingCache: URLCache, @unchecked Sendable {
    let calls = Mutex<[String]>([])

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        calls.withLock { $0.append("get") }
        return super.cachedResponse(for: request)
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        calls.withLock { $0.append("store") }
        super.storeCachedResponse(cachedResponse, for: request)
    }
}

/// Looks up `other` instead of the URL of each request, if `other` is set.
private final class OtherURLCache: URLCache, @unchecked Sendable {
    let other = Mutex<URL?>(nil)
    let found = Mutex<[String]>([])

    override init() { super.init(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil) }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard let url = other.withLock({ $0 }) else { return super.cachedResponse(for: request) }
        var turned = request
        turned.url = url
        let entry = super.cachedResponse(for: turned)
        found.withLock { $0.append(entry.map { String(decoding: $0.data, as: UTF8.self) } ?? "") }
        return nil
    }
}

/// Loads `/claimed`.
private final class ClaimingProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.path == "/claimed" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("claimed".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

/// Never calls the completion handler.
private final class SilentCache: URLCache, @unchecked Sendable {
    let asked = Delivered<Bool>()

    override init() { super.init(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil) }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        asked(true)
    }
}

private final class RefusingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let ends = Delivered<Bool>()

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? { nil }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { ends(true) }
}
