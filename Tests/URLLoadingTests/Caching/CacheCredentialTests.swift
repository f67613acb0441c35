// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A response obtained with a credential, or with a cookie that the response varies by, is not served to a load that would send
/// a different credential or cookie.
@Suite(.timeLimit(.minutes(2)), .everyVersion)
struct CacheCredentialTests {
    private static func basic(_ user: String, _ password: String = "pw") -> String {
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    private static func mine(_ url: URL, _ value: String?) -> URLRequest {
        URLRequest(url, headers: value.map { ["Authorization": $0] } ?? [:])
    }

    // MARK: Authorization

    @Test func `each credential has its own stored response, and a load without one uses none of them`() async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order) \($0.header("Authorization") ?? "-")", Fields.fresh) }
        ) { (server, session, scene) async throws in
            let rows: [(String?, String)] = [
                ("Bearer ali", "0 Bearer ali"), ("Bearer bob", "1 Bearer bob"), ("Bearer ali", "0 Bearer ali"),
                ("Bearer bob", "1 Bearer bob"), ("Bearer eve", "2 Bearer eve"),
                // A response obtained without a credential serves all loads, and replaces the other stored responses.
                (nil, "3 -"), ("Bearer ali", "3 -"),
            ]
            for (value, text) in rows {
                #expect(try await session.text(Self.mine(server.url(), value)).text == text)
            }
            _ = scene
        }
    }

    @Test func `a public response serves every load, also in a later run`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            .ok("\($0.order)", [("Cache-Control", $0.path == "/p" ? "public, max-age=600" : "max-age=600")])
        }
        try await withCachedScenario(reply: reply) { (server, session, scene) async throws in
            #expect(try await session.text(Self.mine(server.url("/p"), "Bearer ali")).text == "0")
            #expect(try await session.text(Self.mine(server.url("/q"), "Bearer ali")).text == "1")
            scene.cache.removeCachedResponse(for: URLRequest(url: server.url("/unknown")))
            try await withSession(on: scene.reopened()) { (later) async throws in
                #expect(try await later.text(server.url("/p")) == "0")
                #expect(try await later.text(Self.mine(server.url("/q"), "Bearer ali")).text == "1")
                #expect(try await later.text(Self.mine(server.url("/q"), "Bearer bob")).text == "2")
                #expect(try await later.text(Self.mine(server.url("/q"), "Bearer ali")).text == "1")
            }
        }
    }

    @Test func `lookups by the app find only responses of their own credential`() async throws {
        try await withCachedScenario(reply: { _ in .ok("x", Fields.fresh) }) { (server, session, scene) async throws in
            _ = try await session.text(Self.mine(server.url(), "Bearer ali"))
            #expect(scene.cache.cachedResponse(for: Self.mine(server.url(), "Bearer ali")) != nil)
            #expect(scene.cache.cachedResponse(for: Self.mine(server.url(), "Bearer bob")) == nil)
            #expect(scene.cache.cachedResponse(for: Self.mine(server.url(), nil)) == nil)
        }
    }

    @Test func `only a seal of the credential is stored`() async throws {
        let secret = "Bearer correct-horse-battery"
        try await withCachedScenario(
            reply: { _ in .ok("x", Fields.fresh + [("Vary", "Authorization")]) }
        ) { (server, session, scene) async throws in
            #expect(try await session.text(Self.mine(server.url(), secret)).text == "x")
            await session.flush()
            let root = scene.directory.url
            let files = try FileManager.default.subpathsOfDirectory(atPath: root.path)
            var hasEntry = false
            for file in files {
                guard let bytes = try? Data(contentsOf: root.appendingPathComponent(file)) else { continue }
                #expect(bytes.range(of: Data("correct-horse".utf8)) == nil, "\(file)")
                hasEntry = hasEntry || String(decoding: bytes, as: UTF8.self).lowercased().contains("vary")
            }
            #expect(hasEntry)
            let key = try FileManager.default.attributesOfItem(atPath: root.path + "/key")
            #expect(key[.posixPermissions] as? Int == 0o600)
            try await withSession(on: scene.reopened()) { (later) async throws in
                #expect(try await later.text(Self.mine(server.url(), secret)).text == "x")
                #expect(server.requests.count == 1)
            }
            // Without the key the cache cannot tell which credential obtained the response.
            try FileManager.default.removeItem(atPath: root.path + "/key")
            try await withSession(on: scene.reopened()) { (later) async throws in
                #expect(try await later.text(Self.mine(server.url(), secret)).text == "x")
                #expect(server.requests.count == 2)
            }
        }
    }

    @Test func `a cache without disk capacity keeps each credential's response in memory`() async throws {
        try await withCachedScenario(
            disk: 0, reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, scene) async throws in
            for (value, text) in [("Bearer ali", "0"), ("Bearer ali", "0"), ("Bearer bob", "1"), ("Bearer ali", "0")] {
                #expect(try await session.text(Self.mine(server.url(), value)).text == text)
            }
            let files = try FileManager.default.subpathsOfDirectory(atPath: scene.directory.url.path)
            #expect(!files.contains("key"), "\(files)")
        }
    }

    @Test(.over(.http1)) func `proxy credentials are not stored, even if the response varies by them`() async throws {
        let secret = Data("ada:engine".utf8).base64EncodedString()
        try await withCachedScenario(
            reply: { .ok("\($0.order)", Fields.fresh + [("Vary", "Proxy-Authorization")]) }
        ) { (server, _, scene) async throws in
            try await withSession(delegate: nil) {
                $0.urlCache = scene.cache
                $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": server.port]
            } test: { session in
                var request = try CacheScene.request("http://localhost:9/", ["Proxy-Authorization": "Basic \(secret)"])
                #expect(try await session.text(request).text == "0")
                await session.flush()
                let root = scene.directory.url
                for file in try FileManager.default.subpathsOfDirectory(atPath: root.path) {
                    guard let bytes = try? Data(contentsOf: root.appendingPathComponent(file)) else { continue }
                    #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(file)")
                }
                // `Proxy-Authorization` is not one of the stored selecting header fields.
                request.setValue(nil, forHTTPHeaderField: "Proxy-Authorization")
                #expect(try await session.text(request).text == "0")
                #expect(server.requests.first?.header("Proxy-Authorization") == "Basic \(secret)")
            }
        }
    }

    // MARK: Updates

    /// Two requests: the first stores a response that serves all loads, and the later one, with ali's credential, updates the response.
    ///
    /// `first` is the credential of the first request.
    struct Update: Sendable, CustomStringConvertible {
        var description: String
        var first: String?
        var later: (method: String, fields: [String: String])
    }

    @Test(arguments: [
        Update(description: "304", first: nil, later: ("GET", [:])),
        Update(description: "304 for a public response", first: "Bearer ali", later: ("GET", [:])),
        Update(description: "304 to the app's condition", first: nil, later: ("GET", ["If-None-Match": "\"v\""])),
        Update(description: "HEAD", first: nil, later: ("HEAD", [:])),
    ])
    func `an update obtained with a credential limits a response for all to that credential`(update: Update) async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            let credential = request.header("Authorization")
            let fields =
                request.order == 0
                ? [("Cache-Control", credential == nil ? "max-age=0" : "public, max-age=0"), ("ETag", "\"v\"")]
                : [("Cache-Control", "private, max-age=600"), ("ETag", "\"v\""), ("X-User", credential ?? "-")]
            if request.method == "HEAD" { return .bare(200, fields + [("Content-Length", "3")]) }
            guard request.header("If-None-Match") == nil else { return .bare(304, fields) }
            return .ok("all", fields)
        }
        try await withCachedScenario(reply: reply) { (server, session, _) async throws in
            #expect(try await session.text(Self.mine(server.url(), update.first)).text == "all")
            var later = URLRequest(server.url(), method: update.later.method, headers: update.later.fields)
            later.setValue("Bearer ali", forHTTPHeaderField: "Authorization")
            _ = try await session.text(later)
            let (text, response) = try await session.text(Self.mine(server.url(), "Bearer ali"))
            #expect(text == "all" && response.value(forHTTPHeaderField: "X-User") == "Bearer ali")
            #expect(server.requests.count == 2)
            for credential in ["Bearer bob", nil] {
                let (text, response) = try await session.text(Self.mine(server.url(), credential))
                #expect(text == "all" && response.value(forHTTPHeaderField: "X-User") != "Bearer ali")
            }
            #expect(server.requests.count > 2)
        }
    }

    @Test func `if a part was obtained with a credential, the parts are joined only for that credential`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            let fields = [("Cache-Control", "max-age=600"), ("ETag", "\"v\"")]
            let text = Array((request.header("Authorization") == nil ? "everybody!" : "everyonly!").utf8)
            switch request.header("Range") {
            case "bytes=0-4": return .status(206, fields + [("Content-Range", "bytes 0-4/10")], body: Array(text[..<5]))
            case "bytes=5-9": return .status(206, fields + [("Content-Range", "bytes 5-9/10")], body: Array(text[5...]))
            default: return .ok(text, fields)
            }
        }
        try await withCachedScenario(reply: reply) { (server, session, _) async throws in
            func text(_ credential: String?, _ range: String?) async throws -> String {
                var request = Self.mine(server.url(), credential)
                if let range { request.setValue("bytes=\(range)", forHTTPHeaderField: "Range") }
                return try await session.text(request).text
            }
            #expect(try await text(nil, "0-4") == "every")
            #expect(try await text("Bearer ali", "5-9") == "only!")
            #expect(try await text("Bearer ali", nil) == "everyonly!")
            #expect(server.requests.count == 2)
            #expect(try await text(nil, nil) == "everybody!")
        }
    }

    // MARK: Public and private

    @Test func `a response that is both private and public serves its credential only`() async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", [("Cache-Control", "public, private, max-age=600")]) }
        ) { (server, session, _) async throws in
            for (credential, text) in [("Bearer ali", "0"), ("Bearer bob", "1"), ("Bearer ali", "0")] {
                #expect(try await session.text(Self.mine(server.url(), credential)).text == text)
            }
        }
    }

    @Test func `the fields that the delegate stores decide which loads a response serves`() async throws {
        let delegate = ChangingDelegate(["Cache-Control": "private, max-age=600", "Vary": "X-Language"])
        try await withCachedScenario(
            delegate: delegate, reply: { .ok("\($0.order)", [("Cache-Control", "public, max-age=600")]) }
        ) { (server, session, _) async throws in
            func text(_ user: String, _ language: String?) async throws -> String {
                var request = Self.mine(server.url(), "Bearer \(user)")
                request.setValue(language, forHTTPHeaderField: "X-Language")
                let task = session.dataTask(with: request)
                task.resume()
                return try await delegate.text(of: task)
            }
            let rows = [
                ("ali", "de", "0"), ("ali", "de", "0"), ("bob", "de", "1"), ("ali", nil, "2"), ("ali", "en", "3"),
                ("bob", "de", "1"),
            ]
            for (user, language, expected) in rows { #expect(try await text(user, language) == expected, "\(user)") }
        }
    }

    // MARK: Challenges

    @Test func `a response obtained by answering a challenge is served after validation`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            guard request.header("Authorization") == Self.basic("ali") else {
                return .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "no")
            }
            guard request.header("If-None-Match") == nil else { return .bare(304, Fields.fresh) }
            return .ok("private", Fields.fresh + [("ETag", "\"v\"")])
        }
        try await withCachedScenario(reply: reply) { (server, session, scene) async throws in
            func text(_ user: String, _ password: String, times: Int = 1) async throws -> String {
                var text = ""
                let judge = Judge { question in
                    question.space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic
                        && question.challenge.previousFailureCount == 0
                        ? question.answer(
                            .useCredential, URLCredential(user: user, password: password, persistence: .forSession))
                        : question.answer(.performDefaultHandling, nil)
                }
                try await withSession(delegate: TaskJudge(judge)) {
                    $0.urlCache = scene.cache
                } test: { session in
                    for _ in 0..<times { text = try await session.text(server.url()) }
                }
                return text
            }
            #expect(try await text("ali", "pw") == "private")
            #expect(server.requests.count == 2)
            // The first load is challenged and then sends a condition; after that the credential is known to be accepted.
            #expect(try await text("ali", "pw", times: 2) == "private")
            #expect(server.requests.count == 4)
            #expect(server.requests.last?.header("If-None-Match") == "\"v\"")
            #expect(try await text("bob", "pw") == "no")
            #expect(try await text("ali", "wrong") == "no")
            #expect(try await session.text(server.url()) == "no")
        }
    }

    @Test func `a stale response does not replace an error while a credential is unproven`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            guard let credential = request.header("Authorization") else {
                return .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "no")
            }
            guard request.header("If-None-Match") == nil else { return .status(503, body: "later") }
            let fields = [("Cache-Control", "max-age=0, stale-if-error=600"), ("ETag", "\"v\"")]
            return credential == Self.basic("ali") ? .ok("private", fields) : .status(401, body: "no")
        }
        try await withCachedScenario(reply: reply) { (server, session, scene) async throws in
            #expect(try await session.text(Self.mine(server.url(), Self.basic("ali"))).text == "private")
            // As far as the session knows, this credential is accepted.
            #expect(try await session.text(Self.mine(server.url(), Self.basic("ali"))).text == "private")
            let judge = Judge { $0.answer(.useCredential, URLCredential(user: "ali", password: "pw", persistence: .none)) }
            try await withSession(delegate: TaskJudge(judge)) {
                $0.urlCache = scene.cache
            } test: { (other) async throws in
                let (text, response) = try await other.text(URLRequest(server.url()))
                #expect(text == "later" && response.statusCode == 503)
            }
        }
    }

    // MARK: Cookies

    @Test(arguments: ["GET", "HEAD"])
    func `a response that varies by Cookie is stored under the cookie that was sent`(method: String) async throws {
        // A response that sets a cookie must not be stored under that cookie; this also applies to a HEAD and to a 304.
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            let fields = [("Vary", "Cookie"), ("Cache-Control", "max-age=600"), ("ETag", "\"v\""), ("Set-Cookie", "id=ali")]
            let text = request.header("Cookie") ?? "anonymous"
            return request.method == "HEAD"
                ? .bare(200, fields + [("Content-Length", "\(text.utf8.count)")]) : .ok(text, fields)
        }
        try await withCachedScenario(reply: reply) { (server, session, scene) async throws in
            if method == "HEAD" { _ = try await session.text(URLRequest(server.url(), method: "HEAD")) }
            #expect(try await session.text(server.url()) == (method == "HEAD" ? "id=ali" : "anonymous"))
            #expect(try await session.text(server.url()) == "id=ali")
            let count = server.requests.count
            #expect(try await session.text(server.url()) == "id=ali")
            #expect(server.requests.count == count)
            try await withSession(on: scene.cache) { (anonymous) async throws in
                #expect(try await anonymous.text(server.url()) == "anonymous")
            }
        }
    }

    @Test func `a 304 that sets a cookie updates the validated response only`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            let fields = [("Vary", "Cookie"), ("ETag", "\"\(request.header("Cookie") ?? "-")\"")]
            if request.header("If-None-Match") == "\"-\"", request.header("Cookie") == nil {
                return .bare(304, fields + [("Cache-Control", "max-age=600"), ("Set-Cookie", "id=ali")])
            }
            return .ok(request.header("Cookie") ?? "anonymous", fields + [("Cache-Control", "max-age=0")])
        }
        try await withCachedScenario(reply: reply) { (server, session, _) async throws in
            for text in ["anonymous", "anonymous", "id=ali"] { #expect(try await session.text(server.url()) == text) }
        }
    }

    // MARK: The app's own cache

    @Test(arguments: [false, true])
    func `a response of a cache subclass is also checked against the sent fields`(overridesStorage: Bool) async throws {
        let cache: URLCache = overridesStorage ? RequestCache() : PassingCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            let fields = [("Vary", "Cookie"), ("Cache-Control", "max-age=600"), ("Set-Cookie", "id=ali")]
            return .ok("\(request.header("Cookie") ?? "-") \(request.header("Authorization") ?? "-")", fields)
        }
        try await withCachedScenario(cache: cache, reply: reply) { (server, session, _) async throws in
            #expect(try await session.text(server.url("/a")) == "- -")
            #expect(try await session.text(server.url("/a")) == "id=ali -")
            let ali = Self.mine(server.url("/c"), "Bearer ali")
            #expect(try await session.text(ali).text == "id=ali Bearer ali")
            #expect(try await session.text(server.url("/c")) == "id=ali -")
            // This session sends neither the credential nor the cookie.
            try await withSession(on: cache) { (anonymous) async throws in
                #expect(try await anonymous.text(server.url("/a")) == "- -")
            }
        }
    }

    @Test(arguments: [("Authorization", "", true), ("Cookie", "Vary", true), ("Authorization", "public", false)])
    func `an archived response is not served to a load that would send another credential`(
        field: String, protection: String, isAsked: Bool
    ) async throws {
        let cache = RequestCache()
        let fields = [("Cache-Control", protection == "public" ? "public, max-age=600" : "max-age=600")]
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            .ok("\($0.order)", fields + (protection == "Vary" ? [("Vary", "Cookie")] : []))
        }
        try await withCachedScenario(cache: cache, reply: reply) { (server, session, _) async throws in
            let url = server.url()
            #expect(try await session.text(URLRequest(url, headers: [field: "secret=ali"])).text == "0")
            let entry = try #require(cache.kept.withLock { $0[url] })
            var shown = ""
            dump(entry, to: &shown)
            #expect(!shown.contains("secret=ali") && !"\(entry)".contains("secret=ali"))
            // The entry is archived twice, as by an app that moves its archives.
            let archived = try Self.archived(Self.archived(entry))
            #expect(archived == entry)
            cache.kept.withLock { $0[url] = archived }
            let text = try await session.text(url)
            #expect(text == (isAsked ? "1" : "0"))
        }
    }

    private static func archived(_ entry: CachedURLResponse) throws -> CachedURLResponse {
        let archive = try NSKeyedArchiver.archivedData(withRootObject: entry, requiringSecureCoding: true)
        #expect(archive.range(of: Data("secret=ali".utf8)) == nil)
        return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: archive))
    }
}

/// Stores other header fields than were received.
private final class ChangingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private let fields: [String: String]
    private let bodies = Watched<[Int: (data: Data, isComplete: Bool)]>([:])

    init(_ fields: [String: String]) { self.fields = fields }

    func text(of task: URLSessionTask) async throws -> String {
        let id = task.taskIdentifier
        let data = try await bodies.value { $0[id].flatMap { $0.isComplete ? $0.data : nil } }
        return String(decoding: data, as: UTF8.self)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let id = dataTask.taskIdentifier
        bodies.change { $0[id, default: (Data(), false)].data += data }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposed: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let url = proposed.response.url,
            let changed = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
        else { return completionHandler(nil) }
        completionHandler(CachedURLResponse(response: changed, data: proposed.data))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let id = task.taskIdentifier
        bodies.change { $0[id, default: (Data(), false)].isComplete = true }
    }
}

/// Calls `super` for all requests.
final class PassingCache: URLCache, @unchecked Sendable {
    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? { super.cachedResponse(for: request) }
}
