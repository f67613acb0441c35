// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Hostile cookies from servers and apps.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct HostileCookieTests {
    // MARK: From servers

    @Test(arguments: ["a=1\u{01}2", "a\u{1B}=1", "a=1; Path=/\u{07}", "a=1\u{7F}", "\u{0C}a=1", "a=1; \u{02}=3"])
    func `a cookie with control characters is rejected`(field: String) async throws {
        try await withScenario(
            reply: { request in
                request.order == 0 ? .ok("body", [("Set-Cookie", field), ("Set-Cookie", "good=1")]) : .ok()
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "body")
            _ = try await session.data(from: server.url())
            #expect(server.requests[1].values(of: "Cookie") == ["good=1"])
        }
    }

    @Test func `a tab within a value is accepted`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1\t2", "b=\t3\t")
            #expect(try await scene.sent() == "a=1\t2; b=3")
        }
    }

    @Test func `a header field that the parser rejects stores nothing`() async throws {
        for field in ["a=1\u{0}2", "a=1\r2"] {
            try await withScenario(
                reply: { $0.order == 0 ? .ok("body", [("Set-Cookie", field)]) : .ok() }
            ) { (server, session) async throws in
                _ = try? await session.data(from: server.url())
                _ = try await session.data(from: server.url())
                #expect(server.requests[1].header("Cookie") == nil)
            }
        }
    }

    @Test func `name and value are limited to 4096 bytes`() async throws {
        try await withCookies { (scene) async throws in
            let longest = String(repeating: "v", count: 4095)
            try await scene.receive("a=" + longest)
            try await scene.receive("b=" + longest + "v")
            try await scene.receive(String(repeating: "n", count: 4097) + "=")
            try await scene.receive("a=" + longest + "vv")
            #expect(try await scene.sent() == "a=" + longest)
        }
    }

    @Test func `an attribute longer than 1024 bytes is ignored`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Path=/" + String(repeating: "p", count: 1024), at: "/dir/page")
            #expect(try scene.storage.cookies?.map(\.path) == ["/dir"])
            try await scene.receive("b=1; Path=/" + String(repeating: "p", count: 1023), at: "/dir/page")
            #expect(try scene.storage.cookies?.map(\.path.count) == [4, 1024])
        }
    }

    @Test func `a response sets at most 50 cookies`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive(all: (0..<60).map { "c\($0)=\($0)" })
            #expect(try scene.stored == (0..<50).map { "c\($0)=\($0)" })
            try await scene.receive("more=1")
            #expect(try scene.stored.count == 51)
        }
    }

    @Test func `a host that sets too many cookies only evicts its own`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("theirs=1", host: "127.0.0.1")
            for start in stride(from: 0, to: 400, by: 50) {
                try await scene.receive(all: (start..<start + 50).map { "c\($0)=1" })
            }
            let names = try #require(try scene.storage.cookies?.map(\.name))
            #expect(names.contains("theirs"))
            #expect(names.contains("c399") && !names.contains("c0"))
            #expect((51...301).contains(names.count), "\(names.count)")
            let sent = try #require(try await scene.sent())
            #expect(sent.split(separator: ";").count == names.count - 1)
        }
    }

    @Test func `a storage holds at most 3000 cookies, and evicts the least recently used`() throws {
        let storage = HTTPCookieStorage()
        for number in 0..<3100 {
            storage.setCookie(try cookie("n\(number)", "1", [.domain: "host\(number % 100).example"]))
        }
        let cookies = try #require(storage.cookies)
        #expect((2500...3000).contains(cookies.count), "\(cookies.count)")
        #expect(cookies.last?.name == "n3099")
        #expect(cookies.first?.name != "n0")
    }

    @Test(
        arguments: [
            ("", nil), (";", nil), ("=", nil), ("; Path=/", nil), ("=nameless", "nameless"), ("nameless", "nameless"),
            ("a", "a"), ("a=b=c", "a=b=c"), ("  a  =  b  ", "a=b"), ("a=1;;;Path=/;=;", "a=1"), ("a=\"1; 2\"", "a=\"1"),
            ("a=\u{E4}", "a=\u{E4}"), ("a=$Version", "a=$Version"), ("$a=1", "$a=1"), ("a[b]{c}=1", "a[b]{c}=1"),
        ] as [(String, String?)])
    func `unusual fields are parsed as the standard says`(field: String, sent: String?) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive(field)
            #expect(try await scene.sent() == sent)
        }
    }

    @Test func `Set-Cookie fields are parsed independently of their neighbors`() async throws {
        try await withScenario(
            reply: { request in
                request.order == 0
                    ? .ok(
                        "",
                        [
                            ("Set-Cookie", "a=1, b=2; Path=/x"), ("SET-COOKIE", "c=3"), ("set-cookie2", "d=4"),
                            ("X-Set-Cookie", "e=5"),
                        ])
                    : .ok()
            }
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url("/"))
            _ = try await session.data(from: server.url("/"))
            _ = try await session.data(from: server.url("/x"))
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "c=3", "a=1, b=2; c=3"])
        }
    }

    // MARK: From apps

    @Test(
        arguments: [
            ("1\r\nX-Evil: 1", "bad=1  X-Evil: 1"), ("1\nX-Evil: 1", "bad=1 X-Evil: 1"), ("1\rX-Evil: 1", "bad=1 X-Evil: 1"),
            ("1\u{0}", nil),
        ] as [(String, String?)])
    func `an app's value with a line break makes no cookie, and a folded field has its line break replaced`(
        value: String, sent: String?
    ) throws {
        let least: [HTTPCookiePropertyKey: Any] = [.name: "bad", .value: "1", .path: "/", .domain: "localhost"]
        let rows: [[HTTPCookiePropertyKey: Any]] = [
            [.value: value], [.name: "n" + value], [.path: "/" + value], [.domain: "localhost" + value],
        ]
        for more in rows { #expect(HTTPCookie(properties: least.merging(more) { $1 }) == nil, "\(more)") }
        let url = try #require(URL(string: "http://localhost/"))
        let received = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": "bad=" + value + "; Path=/"], for: url)
        #expect(HTTPCookie.requestHeaderFields(with: received)["Cookie"] == sent)
    }

    @Test(arguments: [
        ("1\u{85}X-Evil: 1", "bad=1\u{85}X-Evil: 1; n1\u{85}X-Evil: 1=1; good=1"), ("1; stolen=2", "good=1"),
    ])
    func `a value with another separator cannot inject header fields or cookies`(value: String, field: String) async throws {
        try await withCookies { (scene) async throws in
            let rows: [[HTTPCookiePropertyKey: Any]] = [
                [.value: value], [.name: "n" + value], [.path: "/" + value], [.domain: "localhost" + value],
            ]
            for more in rows { try scene.storage.setCookie(try cookie("bad", "1", more)) }
            try scene.storage.setCookie(try cookie("good"))
            #expect(try await scene.sent() == field)
            let request = try #require(scene.clear.requests.last)
            #expect(request.header("X-Evil") == nil)
            #expect(
                request.rawHead.split(separator: 10, omittingEmptySubsequences: false).dropLast().allSatisfy { $0.last == 13 })
        }
    }

    @Test func `a request whose Cookie field has a line break or NUL within is not sent`() async throws {
        for value in ["own=1\r\nX-Evil: 1", "own=1\nX-Evil: 1", "own=\u{0}1"] {
            try await withCookies(configure: { $0.httpAdditionalHeaders = ["Cookie": value] }) { (scene) async throws in
                await expectFailure(.badURL) { _ = try await scene.sent() }
                #expect(scene.clear.requests.isEmpty)
            }
            try await withCookies { (scene) async throws in
                try await scene.receive("stored=1")
                let count = scene.clear.requests.count
                await expectFailure(.badURL) { _ = try await scene.sent { $0.setValue(value, forHTTPHeaderField: "Cookie") } }
                #expect(scene.clear.requests.count == count)
            }
        }
    }
}
