// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Responses from `URLProtocol` classes are stored for the app and for the class, and never answer the session's own loads.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CustomProtocolCachingTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func cache() -> URLCache { URLCache(memoryCapacity: 1 << 20, diskCapacity: 4 << 20, directory: folder.url) }

    /// The cache as another process would see it, after all writes have reached the files.
    private func cache(after other: URLCache) -> URLCache {
        _ = other.currentDiskUsage
        return cache()
    }

    /// A server whose responses are fresh for a day, and a request that can be marked for a class.
    private func withServer(_ test: (ScriptedServer, URLRequest) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok("server \($0.order)", [("Cache-Control", "max-age=86400")]) }) {
            (server) async throws in
            try await test(server, URLRequest(url: server.url("/a")))
        }
    }

    private func load(
        _ request: URLRequest, by type: URLProtocol.Type?, from cache: URLCache?,
        _ configure: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> String {
        var text = ""
        try await withSession {
            $0.urlCache = cache
            $0.protocolClasses = type.map { [$0] } ?? []
            configure($0)
        } test: { (session) async throws in
            text = try await session.text(request).text
        }
        return text
    }

    private func text(_ entry: CachedURLResponse?) -> String? { entry.map { String(decoding: $0.data, as: UTF8.self) } }

    @Test(arguments: [URLCache.StoragePolicy.allowed, .allowedInMemoryOnly, .notAllowed])
    func `a response is stored according to its storage policy`(policy: URLCache.StoragePolicy) async throws {
        try await withServer { (server, request) async throws in
            let request = StubProtocol.marked(request, policy)
            let cache = cache()
            #expect(try await load(request, by: StubProtocol.self, from: cache) == "made, given nothing")
            let kept = policy == .notAllowed ? nil : "made, given nothing"
            #expect(text(cache.cachedResponse(for: request)) == kept)
            #expect(cache.cachedResponse(for: request).map(\.storagePolicy) == (kept == nil ? nil : policy))
            #expect(try await load(request, by: StubProtocol.self, from: cache) == "made, given \(kept ?? "nothing")")
            let other = self.cache(after: cache)
            #expect((other.cachedResponse(for: request) != nil) == (policy == .allowed))
            let given = try await load(request, by: StubProtocol.self, from: other)
            #expect(given.hasPrefix("made, given made") == (policy == .allowed))
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a class's response is not used for loads without the class, in this process or a later one`() async throws {
        try await withServer { (server, request) async throws in
            let cache = cache()
            _ = try await load(StubProtocol.marked(request, .allowed), by: StubProtocol.self, from: cache)
            #expect(text(cache.cachedResponse(for: request)) == "made, given nothing")
            let later = self.cache(after: cache)
            for cache in [later, cache] {
                await expectFailure(.resourceUnavailable) {
                    try await load(request, by: nil, from: cache) { $0.requestCachePolicy = .returnCacheDataDontLoad }
                }
            }
            #expect(
                try await load(request, by: nil, from: later) { $0.requestCachePolicy = .returnCacheDataElseLoad } == "server 0")
            // The app gets the most recent response; the class and the session each get their own.
            #expect(text(later.cachedResponse(for: request)) == "server 0")
            let given = try await load(StubProtocol.marked(request, .notAllowed), by: StubProtocol.self, from: later)
            #expect(given == "made, given made, given nothing")
            #expect(try await load(request, by: nil, from: later) == "server 0")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a class gets neither the session's stored responses nor another class's`() async throws {
        try await withServer { (_, request) async throws in
            let cache = cache()
            #expect(try await load(request, by: nil, from: cache) == "server 0")
            #expect(
                try await load(StubProtocol.marked(request, .allowed), by: StubProtocol.self, from: cache)
                    == "made, given nothing")
            #expect(
                try await load(StubProtocol.marked(request, .notAllowed), by: OtherStubProtocol.self, from: cache)
                    == "made, given nothing")
        }
    }

    @Test func `a response that the class declares valid is delivered`() async throws {
        try await withServer { (_, request) async throws in
            let cache = cache()
            for _ in 0..<3 {
                let request = StubProtocol.marked(request, .allowed, mode: "validate")
                #expect(try await load(request, by: StubProtocol.self, from: cache) == "made, given nothing")
            }
            #expect(try await load(request, by: nil, from: cache) == "server 0")
        }
    }

    @Test(arguments: [
        URLRequest.CachePolicy.useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad,
        .returnCacheDataDontLoad, .reloadIgnoringLocalAndRemoteCacheData, .reloadRevalidatingCacheData,
    ])
    func `the cache policy decides whether the class gets the stored response`(policy: URLRequest.CachePolicy) async throws {
        try await withServer { (_, request) async throws in
            let cache = cache()
            let ignores = policy == .reloadIgnoringLocalCacheData || policy == .reloadIgnoringLocalAndRemoteCacheData
            _ = try await load(StubProtocol.marked(request, .allowed), by: StubProtocol.self, from: cache)
            for isSessions in [false, true] {
                var request = StubProtocol.marked(request, .notAllowed)
                if !isSessions { request.cachePolicy = policy }
                let text = try await load(request, by: StubProtocol.self, from: cache) {
                    if isSessions { $0.requestCachePolicy = policy }
                }
                #expect(text == (ignores ? "made, given nothing" : "made, given made, given nothing"))
            }
        }
    }

    @Test func `no response is passed or stored without a cache, for other methods, or for downloads`() async throws {
        try await withServer { (_, request) async throws in
            let request = StubProtocol.marked(request, .allowed)
            #expect(try await load(request, by: StubProtocol.self, from: nil) == "made, given nothing")
            let cache = cache()
            var post = request
            post.httpMethod = "POST"
            _ = try await load(post, by: StubProtocol.self, from: cache)
            #expect(cache.cachedResponse(for: request) == nil)
            try await withSession {
                $0.urlCache = cache
                $0.protocolClasses = [StubProtocol.self]
            } test: { (session) async throws in
                let (file, _) = try await session.download(for: request)
                try FileManager.default.removeItem(at: file)
                #expect(cache.cachedResponse(for: request) == nil)
                _ = try await session.data(for: request)
                #expect(cache.cachedResponse(for: request) != nil)
                let (again, _) = try await session.download(for: request)
                #expect(try String(contentsOf: again, encoding: .utf8) == "made, given nothing")
                try FileManager.default.removeItem(at: again)
            }
        }
    }

    @Test(arguments: ["fail", "twice", "large", "no-store"])
    func `responses that are incomplete, too large or no-store are not stored`(mode: String) async throws {
        try await withServer { (_, request) async throws in
            let cache = cache()
            _ = try? await load(StubProtocol.marked(request, .allowed, mode: mode), by: StubProtocol.self, from: cache)
            #expect(cache.cachedResponse(for: request) == nil)
            #expect(cache.entries().isEmpty)
        }
    }

    @Test func `the delegate is asked before a response is stored`() async throws {
        let replacingDelegate = ReplacingDelegate()
        try await withServer { (server, request) async throws in
            let cache = cache()
            let other = URLRequest(url: server.url("/b"))
            try await withSession(delegate: replacingDelegate) {
                $0.urlCache = cache
                $0.protocolClasses = [StubProtocol.self]
            } test: { (session) async throws in
                for request in [request, other] { session.dataTask(with: StubProtocol.marked(request, .allowed)).resume() }
                try await replacingDelegate.ended.count(reaches: 2)
            }
            #expect(replacingDelegate.proposed.all.sorted() == ["/a: made, given nothing", "/b: made, given nothing"])
            let later = self.cache(after: cache)
            #expect(text(later.cachedResponse(for: request)) == "chosen")
            #expect(later.cachedResponse(for: request)?.userInfo?["k"] as? String == "v")
            #expect(later.cachedResponse(for: other) == nil)
            #expect(try await load(request, by: nil, from: later) == "server 0")
            #expect(
                try await load(StubProtocol.marked(request, .notAllowed), by: StubProtocol.self, from: later)
                    == "made, given chosen")
        }
    }

    @Test func `a response obtained with a credential is only passed to requests with the same one`() async throws {
        try await withServer { (_, request) async throws in
            let cache = cache()
            func load(_ user: String?, _ policy: URLCache.StoragePolicy) async throws -> String {
                var request = StubProtocol.marked(request, policy)
                request.setValue(user, forHTTPHeaderField: "Authorization")
                return try await self.load(request, by: StubProtocol.self, from: cache)
            }
            #expect(try await load("ali", .allowed) == "made, given nothing")
            #expect(try await load("ali", .notAllowed) == "made, given made, given nothing")
            #expect(try await load("bob", .notAllowed) == "made, given nothing")
            #expect(try await load(nil, .notAllowed) == "made, given nothing")
            // Credentials are not compared with entries on disk, so the response is not stored there.
            #expect(self.cache(after: cache).entries().isEmpty)
        }
    }

    @Test func `removing a URL's stored responses removes its class's, too`() async throws {
        try await withServer { (_, request) async throws in
            let cache = cache()
            _ = try await load(StubProtocol.marked(request, .allowed), by: StubProtocol.self, from: cache)
            #expect(cache.entries().map(\.url) == [request.url])
            cache.removeCachedResponse(for: request)
            #expect(cache.entries().isEmpty && cache.cachedResponse(for: request) == nil)
            #expect(
                try await load(StubProtocol.marked(request, .notAllowed), by: StubProtocol.self, from: cache)
                    == "made, given nothing")
        }
    }

    @Test func `the properties of a request are released after its load, although its response is stored`() async throws {
        let gone = Delivered<Void>()
        try await withServer { (_, request) async throws in
            let cache = cache()
            func load() async throws {
                let marked = StubProtocol.marked(request, .allowed, companion: Companion(gone))
                _ = try await self.load(marked, by: StubProtocol.self, from: cache)
            }
            try await load()
            try await gone.count(reaches: 1)
            #expect(text(cache.cachedResponse(for: request)) == "made, given nothing")
        }
    }

    // MARK: The app's own cache

    @Test(arguments: [true, false])
    func `a URLCache subclass neither stores nor supplies responses of classes`(overridesStorage: Bool) async throws {
        try await withServer { (_, request) async throws in
            let cache = CustomCache(overridesStorage: overridesStorage)
            for _ in 0..<2 {
                let marked = StubProtocol.marked(request, .allowed)
                #expect(try await load(marked, by: StubProtocol.self, from: cache) == "made, given nothing")
            }
            #expect(cache.events.all.isEmpty)
            #expect(try await load(request, by: nil, from: cache) == "server 0")
        }
    }

    @Test func `a URLCache subclass finds the response of the session although a class stored a later one`() async throws {
        try await withServer { (server, request) async throws in
            let cache = cache()
            #expect(try await load(request, by: nil, from: cache) == "server 0")
            _ = try await load(StubProtocol.marked(request, .allowed), by: StubProtocol.self, from: cache)
            #expect(text(cache.cachedResponse(for: request)) == "made, given nothing")
            _ = cache.currentDiskUsage
            let own = CustomCache(overridesStorage: false, directory: folder.url)
            #expect(try await load(request, by: nil, from: own) == "server 0")
            #expect(server.requests.count == 1)
        }
    }
}

/// Reports its own release.
private final class Companion: Sendable {
    private let gone: Delivered<Void>

    init(_ gone: Delivered<Void>) { self.gone = gone }

    deinit { gone(()) }
}

/// Replaces the stored body of `/a`, and prevents storing others.
private final class ReplacingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let proposed = Delivered<String>()
    let ended = Delivered<Void>()

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse response: CachedURLResponse
    ) async -> CachedURLResponse? {
        let path = dataTask.currentRequest?.url?.path ?? ""
        proposed(path + ": " + String(decoding: response.data, as: UTF8.self))
        guard path == "/a" else { return nil }
        return CachedURLResponse(
            response: response.response, data: Data("chosen".utf8), userInfo: ["k": "v"], storagePolicy: response.storagePolicy)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { ended(()) }
}

/// Responds with "made, given " and the body of the cached response that the instance was given, or "nothing".
private class StubProtocol: URLProtocol, @unchecked Sendable {
    private static let policyKey = "policy"
    private static let modeKey = "mode"

    static func marked(
        _ request: URLRequest, _ policy: URLCache.StoragePolicy, mode: String = "", companion: Companion? = nil
    ) -> URLRequest {
        let marked = NSMutableURLRequest(url: request.url ?? URL(fileURLWithPath: "/"))
        setProperty(policy.rawValue, forKey: policyKey, in: marked)
        setProperty(mode, forKey: modeKey, in: marked)
        if let companion { setProperty(companion, forKey: "companion", in: marked) }
        return marked as URLRequest
    }

    override class func canInit(with request: URLRequest) -> Bool { property(forKey: policyKey, in: request) != nil }

    override func startLoading() {
        guard let client, let url = request.url, let raw = Self.property(forKey: Self.policyKey, in: request) as? UInt,
            let policy = URLCache.StoragePolicy(rawValue: raw)
        else { return }
        let mode = Self.property(forKey: Self.modeKey, in: request) as? String ?? ""
        if mode == "validate", let cachedResponse {
            return client.urlProtocol(self, cachedResponseIsValid: cachedResponse)
        }
        var fields = ["Cache-Control": "max-age=86400"]
        if mode == "no-store" { fields["Cache-Control"] = "no-store" }
        guard let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields) else { return }
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: policy)
        if mode == "twice" {
            client.urlProtocol(self, didLoad: Data("part".utf8))
            client.urlProtocol(self, didReceive: response, cacheStoragePolicy: policy)
        }
        let given = cachedResponse.map { String(decoding: $0.data, as: UTF8.self) } ?? "nothing"
        client.urlProtocol(self, didLoad: Data("made, given ".utf8))
        client.urlProtocol(self, didLoad: mode == "large" ? Data(count: 4 << 20) : Data(given.utf8))
        if mode == "fail" {
            client.urlProtocol(self, didFailWithError: URLError(.networkConnectionLost))
        } else {
            client.urlProtocolDidFinishLoading(self)
        }
    }
}

private final class OtherStubProtocol: StubProtocol, @unchecked Sendable {}

/// Records its calls; stores the responses itself, or through its superclass.
private final class CustomCache: URLCache, @unchecked Sendable {
    let events = Delivered<String>()
    private let overridesStorage: Bool
    private let kept = Mutex<[URL: CachedURLResponse]>([:])

    init(overridesStorage: Bool, directory: URL? = nil) {
        self.overridesStorage = overridesStorage
        super.init(memoryCapacity: 1 << 20, diskCapacity: directory == nil ? 0 : 4 << 20, directory: directory)
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        events("store")
        guard overridesStorage else { return super.storeCachedResponse(cachedResponse, for: dataTask) }
        guard let url = dataTask.currentRequest?.url else { return }
        kept.withLock { $0[url] = CachedURLResponse(response: cachedResponse.response, data: cachedResponse.data) }
    }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        events("get")
        guard overridesStorage else { return super.getCachedResponse(for: dataTask, completionHandler: completionHandler) }
        completionHandler(dataTask.currentRequest?.url.flatMap { url in kept.withLock { $0[url] } })
    }
}
