// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Stale responses: validation (RFC 9111, section 4.3), and invalidation (section 4.4).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheRevalidationTests {
    private static let changed = httpDate(-1000)
    private static let old = [("Cache-Control", "max-age=60"), ("Age", "100")]

    private static func notModified(_ fields: [(String, String)] = Fields.fresh) -> ScriptedReply {
        .bare(304, fields)
    }

    // MARK: Validators

    @Test(arguments: [
        [("ETag", "\"v\"")], [("ETag", "W/\"v\"")], [("Last-Modified", changed)],
        [("ETag", "\"v\""), ("Last-Modified", changed)],
    ])
    func `the stored validators are sent, and a 304 makes the response fresh`(
        validators: [(String, String)]
    ) async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("first", Self.old + validators + [("X-Count", "1")]) }
                return Self.notModified(Fields.fresh + validators + [("X-Count", "2"), ("X-New", "yes")])
            }
        ) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "first")
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text == "first" && response.statusCode == 200)
                // Section 3.2: the fields of the 304 replace the stored ones.
                #expect(response.value(forHTTPHeaderField: "X-Count") == "2")
                #expect(response.value(forHTTPHeaderField: "X-New") == "yes")
                #expect(response.value(forHTTPHeaderField: "Cache-Control") == "max-age=600")
                #expect(response.expectedContentLength == 5)
            }
            #expect(server.requests.count == 2)
            let second = try await server.request(1)
            for (name, field) in [("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")] {
                #expect(second.header(field) == validators.first { $0.0 == name }?.1)
            }
            await session.flush()
            try await withSession(on: scene.reopened()) { (next) async throws in
                let (text, response) = try await next.text(URLRequest(server.url()))
                #expect(text == "first" && response.value(forHTTPHeaderField: "X-Count") == "2")
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `after a 304 without freshness, the response is validated again`() async throws {
        try await withCachedScenario(
            reply: { request in
                request.order == 0
                    ? .ok("first", [("Cache-Control", "no-cache"), ("ETag", "\"v\"")]) : Self.notModified([("ETag", "\"v\"")])
            }
        ) { (server, session, _) async throws in
            for count in 1...3 {
                #expect(try await session.text(server.url()) == "first")
                #expect(server.requests.count == count)
            }
        }
    }

    /// nginx sends a weak tag with a compressed response, and a strong tag in the 304.
    @Test func `a 304 with a strong tag confirms a response with a weak tag each time`() async throws {
        try await withCachedScenario(
            reply: { request in
                request.order == 0
                    ? .ok("first", [("Cache-Control", "no-cache"), ("ETag", "W/\"v\"")]) : Self.notModified([("ETag", "\"v\"")])
            }
        ) { (server, session, _) async throws in
            for count in 1...3 {
                #expect(try await session.text(server.url()) == "first")
                #expect(server.requests.count == count)
            }
            #expect(try await server.request(2).header("If-None-Match") == "W/\"v\"")
        }
    }

    @Test func `a 304 does not change the framing and coding fields`() async throws {
        let content = ScriptedFile.pattern(5000)
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else {
                    return .gzip(content, Fields.stale + [("Content-Type", "text/x-a")])
                }
                return Self.notModified(
                    Fields.fresh + [("ETag", "\"v\""), ("Content-Length", "99999"), ("X-New", "1")])
            }
        ) { (server, session, _) async throws in
            for _ in 0..<3 {
                let (data, response) = try await session.data(from: server.url())
                #expect(data == Data(content) && response.mimeType == "text/x-a")
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a 200 replaces the stored response`() async throws {
        try await withCachedScenario(
            reply: { request in
                request.order == 0 ? .ok("old", Fields.stale + [("X-Old", "1")]) : .ok("new", Fields.fresh)
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text == "new" && response.value(forHTTPHeaderField: "X-Old") == nil)
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a 304 for another entity is ignored and the request is repeated`() async throws {
        try await withCachedScenario(
            reply: { request in
                if request.order == 0 { return .ok("old", Fields.stale) }
                if request.header("If-None-Match") != nil { return Self.notModified(Fields.fresh + [("ETag", "\"w\"")]) }
                return .ok("new", Fields.fresh)
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "new" && response.statusCode == 200)
        }
    }

    @Test(arguments: [URLRequest.CachePolicy.reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData])
    func `a response that a reload showed to be outdated is not served again`(policy: URLRequest.CachePolicy) async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", $0.order == 0 ? Fields.fresh : [("Cache-Control", "no-store")]) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(URLRequest(server.url()).with(policy)).text == "1")
            #expect(try await session.text(server.url()) == "2")
        }
    }

    @Test func `an unsolicited 304 is delivered`() async throws {
        try await withCachedScenario(reply: { _ in Self.notModified() }) { (server, session, _) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text.isEmpty && response.statusCode == 304)
        }
    }

    @Test func `an error instead of a 304 is delivered and removes the stored response`() async throws {
        try await withCachedScenario(
            reply: { request in
                switch request.order {
                case 0: .ok("old", Fields.stale)
                case 1: .status(404, body: "gone")
                default: .ok("new", Fields.fresh)
                }
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            #expect(try await session.text(URLRequest(server.url())).response.statusCode == 404)
            #expect(try await session.text(server.url()) == "new")
        }
    }

    @Test func `each variant is validated with its own validator`() async throws {
        try await withCachedScenario(
            reply: { request in
                let language = request.header("Accept-Language") ?? ""
                let fields = [("ETag", "\"\(language)\""), ("Vary", "Accept-Language")]
                if request.order < 2 { return .ok(language, Self.old + fields) }
                return Self.notModified(Fields.fresh + fields)
            }
        ) { (server, session, _) async throws in
            for _ in 0..<3 {
                for language in ["de", "en"] {
                    let request = URLRequest(server.url(), headers: ["Accept-Language": language])
                    #expect(try await session.text(request).text == language)
                }
            }
            #expect(server.requests.count == 4)
            #expect(
                server.requests.dropFirst(2).allSatisfy {
                    $0.header("If-None-Match")?.contains("\"\($0.header("Accept-Language") ?? "")\"") == true
                })
        }
    }

    @Test func `a large stored body survives a 304`() async throws {
        let content = ScriptedFile.pattern(3 << 20)
        try await withCachedScenario(
            memory: 1 << 20,
            reply: { request in
                request.order == 0 ? .ok(content, Fields.stale) : Self.notModified(Fields.fresh + [("ETag", "\"v\"")])
            }
        ) { (server, session, scene) async throws in
            for _ in 0..<3 {
                #expect(try await session.data(from: server.url()).0 == Data(content))
                await session.flush()
            }
            try await withSession(on: scene.reopened()) { (next) async throws in
                #expect(try await next.data(from: server.url()).0 == Data(content))
            }
            #expect(server.requests.count == 2)
        }
    }

    // MARK: Invalidation

    struct Change: Sendable, CustomStringConvertible {
        var method: String
        var path = "/a"
        var status = 200
        var fields: [(String, String)] = []
        var voids: Bool
        var description: String { "\(method) \(path) \(status) \(fields)" }
    }

    @Test(arguments: [
        Change(method: "POST", voids: true), Change(method: "PUT", voids: true), Change(method: "DELETE", voids: true),
        Change(method: "PATCH", voids: true), Change(method: "X-UNKNOWN", voids: true),
        Change(method: "POST", status: 204, voids: true), Change(method: "POST", status: 303, voids: true),
        Change(method: "POST", status: 500, voids: false), Change(method: "DELETE", status: 404, voids: false),
        Change(method: "OPTIONS", voids: false),
        Change(method: "POST", path: "/other", voids: false),
        Change(method: "POST", path: "/other", status: 201, fields: [("Location", "/a")], voids: true),
        Change(method: "PUT", path: "/other", fields: [("Content-Location", "a")], voids: true),
        Change(method: "POST", path: "/other", status: 500, fields: [("Location", "/a")], voids: false),
    ])
    func `a successful unsafe request invalidates the stored response`(change: Change) async throws {
        try await withCachedScenario(
            reply: { request in
                if request.method == "GET" { return .ok("\(request.order)", Fields.fresh) }
                return change.status == 204
                    ? .bare(204) : .status(change.status, change.fields, body: "changed")
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url("/a")) == "0")
            let request = URLRequest(server.url(change.path), method: change.method)
            #expect(try await session.text(request).response.statusCode == change.status)
            #expect(try await session.text(server.url("/a")) == (change.voids ? "2" : "0"))
        }
    }

    @Test func `an unsafe request that redirects invalidates all variants of the stored response`() async throws {
        try await withCachedScenario(
            reply: { request in
                switch (request.method, request.path) {
                case ("GET", "/b"): .ok("b")
                case ("GET", _): .ok("\(request.order)", Fields.fresh + [("Vary", "Accept-Language")])
                default: .redirect(303, to: "/b")
                }
            }
        ) { (server, session, _) async throws in
            func text(_ language: String) async throws -> String {
                try await session.text(URLRequest(server.url("/a"), headers: ["Accept-Language": language])).text
            }
            #expect(try await [text("de"), text("en"), text("de"), text("en")] == ["0", "1", "0", "1"])
            #expect(try await session.text(URLRequest(server.url("/a"), method: "POST")).text == "b")
            #expect(try await [text("de"), text("en")] == ["4", "5"])
        }
    }

    @Test func `an upload invalidates the stored response, on disk as well`() async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", $0.method == "GET" ? Fields.fresh : []) }
        ) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "0")
            await session.flush()
            _ = try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: Data("x".utf8))
            await session.flush()
            #expect(scene.reopened().cachedResponse(for: URLRequest(server.url())) == nil)
            #expect(try await session.text(server.url()) == "2")
        }
    }

    @Test(arguments: ["Location", "Content-Location"])
    func `an unsafe request does not invalidate responses of another origin`(name: String) async throws {
        try await withCachedScenario(
            reply: { request in
                if request.method == "GET" { return .ok("\(request.order)", Fields.fresh) }
                let port = request.header("Host")?.split(separator: ":").last ?? ""
                return .status(201, [(name, "//127.0.0.1:\(port)/a")], body: "made")
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url("/a")) == "0")
            _ = try await session.text(URLRequest(server.url("/a", host: "localhost"), method: "POST"))
            #expect(try await session.text(server.url("/a")) == "0")
        }
    }

    // MARK: HEAD

    @Test func `HEAD is served from a stored GET`() async throws {
        try await withCachedScenario(
            reply: { _ in .ok("body", Fields.fresh + [("X-Mine", "1")]) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "body")
            let (text, response) = try await session.text(URLRequest(server.url(), method: "HEAD"))
            #expect(text.isEmpty && response.statusCode == 200)
            #expect(response.value(forHTTPHeaderField: "X-Mine") == "1")
            #expect(response.value(forHTTPHeaderField: "Content-Length") == "4")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a HEAD response is not served for GET`() async throws {
        try await withCachedScenario(
            reply: { request in
                request.method == "HEAD"
                    ? .bare(200, Fields.fresh + [("Content-Length", "4")]) : .ok("body", Fields.fresh)
            }
        ) { (server, session, _) async throws in
            let head = try await session.text(URLRequest(server.url(), method: "HEAD"))
            #expect(head.text.isEmpty && head.response.expectedContentLength == 4)
            #expect(try await session.text(server.url()) == "body")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `HEAD updates the stored response that it matches`() async throws {
        let tag = ("ETag", "\"v\"")
        try await withCachedScenario(
            reply: { request in
                if request.order == 0 { return .ok("body", Fields.fresh + [tag, ("X-Count", "1")]) }
                return .bare(200, Fields.fresh + [tag, ("X-Count", "2"), ("Content-Length", "4")])
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "body")
            let head = URLRequest(server.url(), method: "HEAD").with(.reloadIgnoringLocalCacheData)
            _ = try await session.text(head)
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "body" && response.value(forHTTPHeaderField: "X-Count") == "2")
            #expect(server.requests.map(\.method) == ["GET", "HEAD"])
        }
    }

    @Test(arguments: [[("ETag", "\"w\""), ("Content-Length", "4")], [("ETag", "\"v\""), ("Content-Length", "5")]])
    func `HEAD of another entity invalidates the stored response`(fields: [(String, String)]) async throws {
        try await withCachedScenario(
            reply: { request in
                if request.method == "HEAD" { return .bare(200, Fields.fresh + fields) }
                return .ok(
                    request.order == 0 ? "body" : "other", Fields.fresh + [("ETag", request.order == 0 ? "\"v\"" : "\"w\"")])
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "body")
            _ = try await session.text(URLRequest(server.url(), method: "HEAD").with(.reloadIgnoringLocalCacheData))
            #expect(try await session.text(server.url()) == "other")
        }
    }
}
