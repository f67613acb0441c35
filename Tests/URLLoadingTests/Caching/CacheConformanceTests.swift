// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Requirements of RFC 9111 and RFC 5861 beyond freshness: which header fields are stored, what a 304 and a HEAD update, which
/// stored responses replace an error, and what is invalidated.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheConformanceTests {
    private static let staleIfError = [("Cache-Control", "max-age=60, stale-if-error=600"), ("Age", "100")]

    // MARK: Header fields

    @Test(.over(.http1, .http1OverTLS)) func `header fields are stored except those of the connection`() async throws {
        // Section 3.1: "the Connection header field and fields whose names are listed in it"; "Proxy-Authenticate, …".
        let dropped = [
            "A", "B", "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
            "Proxy-Connection", "TE", "Upgrade",
        ]
        let kept = [
            "C", "Test-Header", "Content-Foo", "X-Content-Foo", "Content-Location", "Content-MD5", "Content-Security-Policy",
            "Content-Type", "Clear-Site-Data", "ETag", "Last-Modified", "Public-Key-Pins", "Set-Cookie", "Set-Cookie2",
            "X-Frame-Options", "X-XSS-Protection", "WWW-Authenticate", "Trailer", "Expires", "Content-Range", "Link",
        ]
        let values = ["Connection": "a, b", "Content-Type": "text/x-a", "Set-Cookie": "a=b"]
        let fields = (dropped + kept).map { ($0, values[$0] ?? "value of \($0)") }
        try await withCachedScenario(reply: { _ in .ok("x", Fields.fresh + fields) }) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let (_, response) = try await session.text(URLRequest(server.url()))
            #expect(server.requests.count == 1)
            for name in dropped { #expect(response.value(forHTTPHeaderField: name) == nil, "\(name)") }
            for name in kept {
                #expect(response.value(forHTTPHeaderField: name) == values[name] ?? "value of \(name)", "\(name)")
            }
        }
    }

    @Test func `a stored response without a Date is served with a Date`() async throws {
        // RFC 9110, section 6.6.1.
        try await withCachedScenario(reply: { _ in .ok("x", Fields.fresh) }) { (server, session, _) async throws in
            #expect(try await session.text(URLRequest(server.url())).response.value(forHTTPHeaderField: "Date") == nil)
            let (_, response) = try await session.text(URLRequest(server.url()))
            let date = try #require(response.value(forHTTPHeaderField: "Date"))
            #expect([httpDate(-2), httpDate(-1), httpDate(0)].contains(date))
        }
    }

    @Test func `a served response keeps its dates, and its Age is computed anew`() async throws {
        let fields = [("Expires", httpDate(3000)), ("Date", httpDate(-40)), ("Age", "30")]
        try await withCachedScenario(reply: { _ in .ok("x", fields) }) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let (_, response) = try await session.text(URLRequest(server.url()))
            #expect(response.value(forHTTPHeaderField: "Date") == fields[1].1)
            #expect(response.value(forHTTPHeaderField: "Expires") == fields[0].1)
            #expect((40...45).contains(Int(response.value(forHTTPHeaderField: "Age") ?? "") ?? 0))
        }
    }

    // MARK: What a 304 updates

    @Test(arguments: [
        ("Test-Header", "1", "2", true), ("X-Test-Header", "1", "2", true), ("Content-Foo", "1", "2", true),
        ("X-Content-Foo", "1", "2", true), ("Content-Location", "/a", "/b", true), ("Set-Cookie", "a=b", "a=c", true),
        ("X-Frame-Options", "deny", "sameorigin", true), ("Expires", "0", httpDate(9000), true),
        // Fields that describe the stored bytes are not updated (section 3.2).
        ("Content-Type", "text/x-a", "text/x-b", false), ("Content-Range", "bytes 0-0/1", "bytes 0-0/9", false),
        ("Content-Encoding", "identity", "gzip", false),
    ])
    func `a 304 updates stored fields`(name: String, old: String, new: String, isTaken: Bool) async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("body", Fields.stale + [(name, old), ("X-Kept", "1")]) }
                return .bare(304, Fields.fresh + [("ETag", "\"v\""), (name, new)])
            }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text == "body" && response.statusCode == 200)
                #expect(response.value(forHTTPHeaderField: name) == (isTaken ? new : old))
                #expect(response.value(forHTTPHeaderField: "X-Kept") == "1")
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [("\"v\"", true), ("W/\"v\"", true), ("\"w\"", false), (nil, false)] as [(String?, Bool)])
    func `a 304 to the app's own condition updates the stored response`(tag: String?, isRenewed: Bool) async throws {
        // Section 4.3.4: "When a cache receives a 304 (Not Modified) response, it needs to identify stored responses that are
        // suitable for updating with the new information provided, and then do so".
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("body", Fields.stale) }
                guard request.order == 1 else { return .ok("new") }
                return .bare(304, Fields.fresh + (tag.map { [("ETag", $0)] } ?? []))
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "body")
            let own = URLRequest(server.url(), headers: ["If-None-Match": "\"v\""])
            #expect(try await session.text(own).response.statusCode == 304)
            #expect(try await session.text(server.url()) == (isRenewed ? "body" : "new"))
        }
    }

    // MARK: Stale responses instead of errors (RFC 5861, section 4)

    @Test(arguments: ["GET", "HEAD"], [500, 502, 503, 504])
    func `a stale response without a validator also replaces an error`(method: String, status: Int) async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("old", Self.staleIfError) }
                return .bare(status, [("Content-Length", "0")])
            }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let (text, response) = try await session.text(URLRequest(server.url(), method: method))
            #expect(response.statusCode == 200 && text == (method == "GET" ? "old" : ""))
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a request can set stale-if-error itself`() async throws {
        try await withCachedScenario(
            reply: { $0.order == 0 ? .ok("old", [("Cache-Control", "max-age=0")]) : .status(500, body: "error") }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let asking = URLRequest(server.url(), headers: ["Cache-Control": "stale-if-error=600"])
            #expect(try await session.text(asking).text == "old")
            #expect(try await session.text(server.url()) == "error")
        }
    }

    @Test func `a new response replaces one that allowed stale-if-error`() async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", $0.order == 0 ? Self.staleIfError : Fields.fresh) }
        ) { (server, session, _) async throws in
            for expected in ["0", "1", "1"] { #expect(try await session.text(server.url()) == expected) }
        }
    }

    @Test(.over(.http1, .http1OverTLS), arguments: ["", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\nContent-"])
    func `a stale response is served if a new or reused connection breaks`(begun: String) async throws {
        try await withCachedScenario(
            reply: { $0.order == 0 ? .ok("old", Self.staleIfError) : [.write(begun), .close] }
        ) { (server, session, _) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "old") }
            #expect(server.requests.count >= 3)
        }
    }

    @Test(arguments: [Fields.stale, [("Cache-Control", "max-age=60, stale-if-error=600, must-revalidate"), ("Age", "100")]])
    func `a broken connection fails the load if no stale response may be served`(fields: [(String, String)]) async throws {
        try await withCachedScenario(
            reply: { $0.order == 0 ? .ok("old", fields) : [.close] }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        }
    }

    @Test(.over(.http1, .http1OverTLS), arguments: [true, false])
    func `a broken head fails the load if no stale response may be served`(mustRevalidate: Bool) async throws {
        let control = "max-age=60" + (mustRevalidate ? ", stale-if-error=600, must-revalidate" : "")
        try await withCachedScenario(
            reply: {
                $0.order == 0 ? .ok("old", [("Cache-Control", control), ("Age", "100")]) : [.write("HTTP/1.1 200 O"), .close]
            }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        }
    }

    @Test func `a load that requires validation receives the error of the server`() async throws {
        try await withCachedScenario(
            reply: { $0.order == 0 ? .ok("old", Self.staleIfError + [("ETag", "\"v\"")]) : .status(503, body: "error") }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let (text, response) = try await session.text(URLRequest(server.url()).with(.reloadRevalidatingCacheData))
            #expect(text == "error" && response.statusCode == 503)
        }
    }

    // MARK: Invalidation

    @Test func `a response too large for the cache removes the older one`() async throws {
        try await withCachedScenario(
            memory: 1 << 20, disk: 1 << 20,
            reply: { $0.order == 1 ? .ok(ScriptedFile.pattern(200_000), Fields.fresh) : .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            let reload = URLRequest(server.url()).with(.reloadIgnoringLocalCacheData)
            #expect(try await session.data(for: reload).0.count == 200_000)
            #expect(try await session.text(server.url()) == "2")
        }
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO"])
    func `a method not known to be safe invalidates stored responses, unless the request fails`(method: String) async throws {
        // Section 4.4: "including methods whose safety is unknown"; "a non-error status code".
        try await withCachedScenario(
            reply: { request in
                guard request.method != "GET" else { return .ok("\(request.order)", Fields.fresh) }
                let isDone = request.path != "/failing"
                return .status(isDone ? 200 : 500, [("Location", "/location"), ("Content-Location", "content")])
            }
        ) { (server, session, _) async throws in
            let paths = ["/done", "/location", "/content", "/failing"]
            func load() async throws -> [String] {
                var texts: [String] = []
                for path in paths { texts.append(try await session.text(server.url(path))) }
                return texts
            }
            let first = try await load()
            _ = try await session.text(URLRequest(server.url("/failing"), method: method, body: Data("abc".utf8)))
            #expect(try await load() == first)
            _ = try await session.text(URLRequest(server.url("/done"), method: method, body: Data("abc".utf8)))
            let second = try await load()
            #expect(second[3] == first[3])
            for index in 0..<3 { #expect(second[index] != first[index], "\(paths[index])") }
        }
    }

    @Test(arguments: ["OPTIONS", "TRACE", "PROPFIND"])
    func `a safe method does not invalidate stored responses`(method: String) async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            _ = try await session.text(URLRequest(server.url(), method: method))
            #expect(try await session.text(server.url()) == "0")
        }
    }

    // MARK: HEAD (section 4.3.5)

    @Test func `HEAD refreshes a stale response, and fields that are missing in the HEAD response are kept`() async throws {
        try await withCachedScenario(
            reply: { request in
                if request.method == "HEAD" { return .bare(200, Fields.fresh + [("X-A", "2")]) }
                return .ok("\(request.order)", [("Cache-Control", "max-age=60"), ("Age", "100"), ("X-A", "1"), ("X-B", "1")])
            }
        ) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(URLRequest(server.url(), method: "HEAD")).response.statusCode == 200)
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "0" && server.requests.count == 2)
            #expect(response.value(forHTTPHeaderField: "X-A") == "2" && response.value(forHTTPHeaderField: "X-B") == "1")
        }
    }

    @Test func `HEAD updates a response that is only on disk`() async throws {
        try await withCachedScenario(
            reply: { request in
                if request.method == "HEAD" { return .bare(200, [("ETag", "\"w\"")]) }
                return .ok("\(request.order)", Fields.fresh + [("ETag", "\"v\"")])
            }
        ) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "0")
            await session.flush()
            try await withSession(on: scene.reopened()) { (next) async throws in
                let head = URLRequest(server.url(), method: "HEAD").with(.reloadIgnoringLocalCacheData)
                #expect(try await next.text(head).response.statusCode == 200)
                // The update by HEAD may first have to look up the entry on disk.
                await next.flush()
                #expect(try await next.text(server.url()) == "2")
            }
        }
    }

    // MARK: Interim responses

    @Test(arguments: [102, 103])
    func `an interim response does not affect what is stored`(status: Int) async throws {
        try await withCachedScenario(
            reply: { request in
                .ok("\(request.order)", Fields.fresh)
                    .after(.head(status, [("Link", "</a>; rel=preload"), ("Cache-Control", "no-store")]))
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "0")
        }
    }
}
