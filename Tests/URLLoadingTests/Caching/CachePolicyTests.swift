// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The six cache policies, and the directives of a request (RFC 9111, section 5.2.1).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CachePolicyTests {
    enum Kept: Sendable, CaseIterable { case nothing, fresh, stale }
    enum Outcome: Sendable { case stored, conditional, plain, noCache, failure, timeout }

    struct Row: Sendable, CustomStringConvertible {
        var policy: URLRequest.CachePolicy
        var kept: Kept
        var outcome: Outcome
        var description: String { "\(policy.rawValue), \(kept)" }

        init(_ policy: URLRequest.CachePolicy, _ kept: Kept, _ outcome: Outcome) {
            self.policy = policy
            self.kept = kept
            self.outcome = outcome
        }

        static let all = [
            Row(.useProtocolCachePolicy, .nothing, .plain),
            Row(.useProtocolCachePolicy, .fresh, .stored),
            Row(.useProtocolCachePolicy, .stale, .conditional),
            Row(.reloadIgnoringLocalCacheData, .nothing, .plain),
            Row(.reloadIgnoringLocalCacheData, .fresh, .plain),
            Row(.reloadIgnoringLocalCacheData, .stale, .plain),
            Row(.returnCacheDataElseLoad, .nothing, .plain),
            Row(.returnCacheDataElseLoad, .fresh, .stored),
            Row(.returnCacheDataElseLoad, .stale, .stored),
            Row(.returnCacheDataDontLoad, .nothing, .failure),
            Row(.returnCacheDataDontLoad, .fresh, .stored),
            Row(.returnCacheDataDontLoad, .stale, .stored),
            Row(.reloadIgnoringLocalAndRemoteCacheData, .nothing, .noCache),
            Row(.reloadIgnoringLocalAndRemoteCacheData, .fresh, .noCache),
            Row(.reloadIgnoringLocalAndRemoteCacheData, .stale, .noCache),
            Row(.reloadRevalidatingCacheData, .nothing, .plain),
            Row(.reloadRevalidatingCacheData, .fresh, .conditional),
            Row(.reloadRevalidatingCacheData, .stale, .conditional),
        ]
    }

    private func expect(
        _ outcome: Outcome, kept: Kept, request policy: URLRequest.CachePolicy?, session: URLRequest.CachePolicy?
    ) async throws {
        let first = (kept == .stale ? Fields.stale : Fields.fresh) + [("ETag", "\"v\"")].filter { _ in kept == .fresh }
        try await withCachedScenario(
            reply: { .ok("\($0.order)", $0.order == 0 ? first : [("Cache-Control", "no-store")]) }
        ) { (server, filling, scene) async throws in
            // The request under test is always the second one.
            _ = try await filling.text(server.url(kept == .nothing ? "/else" : "/a"))
            try await withSession({ configuration in
                configuration.urlCache = scene.cache
                if let session { configuration.requestCachePolicy = session }
            }) { (session) async throws in
                var request = URLRequest(server.url("/a"))
                if let policy { request = request.with(policy) }
                if outcome == .failure {
                    await expectFailure(.resourceUnavailable) { try await session.data(for: request) }
                    #expect(server.requests.count == 1)
                    return
                }
                #expect(try await session.text(request).text == (outcome == .stored ? "0" : "1"))
                #expect(server.requests.count == (outcome == .stored ? 1 : 2))
                guard outcome != .stored else { return }
                let second = try await server.request(1)
                #expect(second.header("If-None-Match") == (outcome == .conditional ? "\"v\"" : nil))
                #expect(second.header("If-Modified-Since") == nil)
                #expect(second.header("Pragma") == (outcome == .noCache ? "no-cache" : nil))
                if outcome == .noCache { #expect(second.header("Cache-Control") == "no-cache") }
            }
        }
    }

    @Test(arguments: Row.all)
    func `the cache policy of a request decides what is served`(row: Row) async throws {
        try await expect(row.outcome, kept: row.kept, request: row.policy, session: nil)
    }

    @Test(arguments: Row.all)
    func `the cache policy of a session decides for requests without a policy of their own`(row: Row) async throws {
        try await expect(row.outcome, kept: row.kept, request: nil, session: row.policy)
    }

    struct Pair: Sendable, CustomStringConvertible {
        var request: URLRequest.CachePolicy
        var session: URLRequest.CachePolicy
        var kept: Kept
        var outcome: Outcome
        var description: String { "request \(request.rawValue), session \(session.rawValue), \(kept)" }
    }

    @Test(arguments: [
        Pair(request: .useProtocolCachePolicy, session: .reloadIgnoringLocalCacheData, kept: .fresh, outcome: .plain),
        Pair(request: .reloadIgnoringLocalCacheData, session: .useProtocolCachePolicy, kept: .fresh, outcome: .plain),
        Pair(
            request: .reloadIgnoringLocalCacheData, session: .reloadIgnoringLocalAndRemoteCacheData, kept: .fresh,
            outcome: .noCache),
        Pair(
            request: .reloadIgnoringLocalAndRemoteCacheData, session: .reloadIgnoringLocalCacheData, kept: .fresh,
            outcome: .noCache),
        Pair(
            request: .reloadIgnoringLocalAndRemoteCacheData, session: .useProtocolCachePolicy, kept: .fresh,
            outcome: .noCache),
        Pair(request: .reloadRevalidatingCacheData, session: .useProtocolCachePolicy, kept: .fresh, outcome: .conditional),
        Pair(
            request: .reloadRevalidatingCacheData, session: .reloadIgnoringLocalCacheData, kept: .fresh, outcome: .plain),
        Pair(request: .returnCacheDataElseLoad, session: .useProtocolCachePolicy, kept: .stale, outcome: .stored),
        Pair(request: .returnCacheDataElseLoad, session: .reloadIgnoringLocalCacheData, kept: .fresh, outcome: .plain),
        Pair(request: .returnCacheDataDontLoad, session: .useProtocolCachePolicy, kept: .nothing, outcome: .failure),
        Pair(request: .returnCacheDataDontLoad, session: .returnCacheDataElseLoad, kept: .nothing, outcome: .failure),
        Pair(request: .returnCacheDataElseLoad, session: .returnCacheDataDontLoad, kept: .nothing, outcome: .failure),
    ])
    func `the more restrictive of two policies wins`(pair: Pair) async throws {
        try await expect(pair.outcome, kept: pair.kept, request: pair.request, session: pair.session)
    }

    @Test func `a reloaded response replaces the stored one`() async throws {
        for policy: URLRequest.CachePolicy in [.reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData] {
            try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, _) async throws in
                let request = URLRequest(server.url())
                #expect(try await session.text(request).text == "0")
                #expect(try await session.text(request.with(policy)).text == "1")
                #expect(try await session.text(request).text == "1")
                #expect(server.requests.count == 2)
            }
        }
    }

    @Test func `a policy that requires the cache fails without a cache`() async throws {
        try await withScenario(configure: { $0.urlCache = nil }, reply: { _ in .ok("x") }) { (server, session) async throws in
            let request = URLRequest(server.url())
            await expectFailure(.resourceUnavailable) {
                try await session.data(for: request.with(.returnCacheDataDontLoad))
            }
            #expect(server.requests.isEmpty)
            #expect(try await session.text(request.with(.returnCacheDataElseLoad)).text == "x")
            _ = try await session.text(request.with(.reloadIgnoringLocalAndRemoteCacheData))
            #expect(try await server.request(1).header("Pragma") == "no-cache")
        }
    }

    @Test func `a load that must not use the network reports an error and no response to the delegate`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(delegate: recorder, reply: { _ in .ok("x") }) { (server, session, _) async throws in
            let task = session.dataTask(with: URLRequest(server.url()).with(.returnCacheDataDontLoad))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cME" && (record.error as? URLError)?.code == .resourceUnavailable)
            #expect((record.error as? URLError)?.failingURL == server.url())
            #expect(task.response == nil && server.requests.isEmpty)
        }
    }

    @Test func `the policy also applies to the target of a redirect`() async throws {
        try await withCachedScenario(
            reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url("/b")) == "0")
            let request = URLRequest(server.url("/a")).with(.reloadIgnoringLocalCacheData)
            #expect(try await session.text(request).text == "2")
            #expect(try await session.text(server.url("/a")) == "2")
            #expect(server.requests.map(\.path) == ["/b", "/a", "/b", "/a"])
        }
    }

    // MARK: Directives of a request

    struct Directive: Sendable, CustomStringConvertible {
        var field: String
        var stored: [(String, String)]
        var outcome: Outcome
        var description: String { "\(field) for \(stored.map { "\($0.0): \($0.1)" }.joined(separator: ", "))" }

        init(_ field: String, _ outcome: Outcome, _ stored: (String, String)...) {
            self.field = field
            self.stored = stored + [("ETag", "\"v\"")]
            self.outcome = outcome
        }
    }

    @Test(arguments: [
        // RFC 9111, section 5.2.1.1.
        Directive("max-age=0", .conditional, ("Cache-Control", "max-age=600")),
        Directive("max-age=60", .conditional, ("Cache-Control", "max-age=600"), ("Age", "100")),
        Directive("max-age=300", .stored, ("Cache-Control", "max-age=600"), ("Age", "100")),
        // 5.2.1.2.
        Directive("max-stale", .stored, ("Cache-Control", "max-age=60"), ("Age", "100")),
        Directive("max-stale=600", .stored, ("Cache-Control", "max-age=60"), ("Age", "100")),
        Directive("max-stale=10", .conditional, ("Cache-Control", "max-age=60"), ("Age", "100")),
        Directive("max-stale", .conditional, ("Cache-Control", "max-age=60, must-revalidate"), ("Age", "100")),
        Directive("max-stale", .conditional, ("Cache-Control", "no-cache")),
        // 5.2.1.3.
        Directive("min-fresh=300", .stored, ("Cache-Control", "max-age=600")),
        Directive("min-fresh=900", .conditional, ("Cache-Control", "max-age=600")),
        // 5.2.1.4.
        Directive("no-cache", .conditional, ("Cache-Control", "max-age=600")),
        Directive("no-cache", .conditional, ("Cache-Control", "max-age=600, immutable")),
        // 5.2.1.7.
        Directive("only-if-cached", .stored, ("Cache-Control", "max-age=600")),
        Directive("only-if-cached", .timeout, ("Cache-Control", "max-age=60"), ("Age", "100")),
        Directive("only-if-cached, max-stale", .stored, ("Cache-Control", "max-age=60"), ("Age", "100")),
    ])
    func `the request's directives decide whether a stored response is served`(row: Directive) async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", $0.order == 0 ? row.stored : []) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            let request = URLRequest(server.url(), headers: ["Cache-Control": row.field])
            if row.outcome == .timeout {
                #expect(try await session.text(request).response.statusCode == 504)
            } else {
                #expect(try await session.text(request).text == (row.outcome == .stored ? "0" : "1"))
            }
            #expect(server.requests.count == (row.outcome == .conditional ? 2 : 1))
            if row.outcome == .conditional {
                let second = try await server.request(1)
                #expect(second.header("If-None-Match") == "\"v\"" && second.header("Cache-Control") == row.field)
            }
        }
    }

    @Test func `a response to a request with no-store is not stored`() async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, _) async throws in
            let request = URLRequest(server.url(), headers: ["Cache-Control": "no-store"])
            #expect(try await session.text(request).text == "0")
            #expect(try await session.text(server.url()) == "1")
            #expect(try await session.text(server.url()) == "1")
        }
    }

    @Test(arguments: ["no-cache", "no-store", "only-if-cached"])
    func `directives in the session's additional headers apply`(directive: String) async throws {
        try await withCachedScenario(
            configure: { $0.httpAdditionalHeaders = ["Cache-Control": directive] },
            reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, scene) async throws in
            let load = { try await session.text(server.url()) }
            switch directive {
            case "only-if-cached":
                #expect(try await session.text(URLRequest(server.url())).response.statusCode == 504)
                #expect(server.requests.isEmpty)
            default:
                #expect(try await load() == "0")
                #expect(try await load() == "1")
                #expect(scene.cache.entries().isEmpty == (directive == "no-store"))
            }
        }
    }

    @Test func `only-if-cached never contacts the server`() async throws {
        try await withCachedScenario(reply: { _ in .ok("x") }) { (server, session, _) async throws in
            let request = URLRequest(server.url(), headers: ["Cache-Control": "only-if-cached"])
            // "… or respond with a 504 (Gateway Timeout) status code" (RFC 9111, section 5.2.1.7).
            let (text, response) = try await session.text(request)
            #expect(text.isEmpty && response.statusCode == 504 && response.url == server.url())
            // The app's cache policy is checked separately, and its error is the one that Apple documents.
            await expectFailure(.resourceUnavailable) {
                try await session.data(for: request.with(.returnCacheDataDontLoad))
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test(arguments: ["\"v\"", "W/\"v\"", "\"other\", \"v\"", "*"])
    func `a matching If-None-Match that the app set gets a 304`(tags: String) async throws {
        try await withCachedScenario(
            reply: { request in
                let fields = Fields.fresh + [("ETag", "\"v\"")]
                if request.header("If-None-Match") != nil { return .bare(304, fields) }
                return .ok("body", fields)
            }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let request = URLRequest(server.url(), headers: ["If-None-Match": tags])
                let (text, response) = try await session.text(request)
                #expect(response.statusCode == 304 && text.isEmpty)
                // In the second round the body is already stored.
                #expect(try await session.text(server.url()) == "body")
            }
        }
    }

    @Test func `a non-matching If-None-Match that the app set gets the body`() async throws {
        try await withCachedScenario(
            reply: { _ in .ok("body", Fields.fresh + [("ETag", "\"v\"")]) }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let (text, response) = try await session.text(
                    URLRequest(server.url(), headers: ["If-None-Match": "\"old\""]))
                #expect(response.statusCode == 200 && text == "body")
            }
        }
    }
}
