//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheCommandTests {
    private static let fresh = [("Cache-Control", "max-age=86400"), ("Content-Type", "text/plain"), ("X-Mark", "yes")]

    /// Holds the responses of one test.
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    private func run(_ arguments: String...) async throws -> Tool.Result {
        try await Tool.run(arguments, home: home)
    }

    /// Answers each request with its number.
    private func withFreshAnswers(_ test: (ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok("answer \($0.order)", Self.fresh) }, test: test)
    }

    private func count() async throws -> Int {
        try await run("cache", "list").text.split(separator: "\n").dropFirst().count
    }

    @Test func `a fresh response answers the next run`() async throws {
        try await withFreshAnswers { server in
            let address = server.url("/a").absoluteString
            for _ in 1...2 {
                let result = try await run("get", address)
                #expect(result.code == 0)
                #expect(result.text == "answer 0")
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `no cache asks the server, and keeps the newer answer`() async throws {
        try await withFreshAnswers { server in
            let address = server.url("/a").absoluteString
            _ = try await run("get", address)
            #expect(try await run("get", "--no-cache", address).text == "answer 1")
            #expect(server.requests.last?.header("Cache-Control") == "no-cache")
            #expect(try await run("get", address).text == "answer 1")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `offline shows what is stored, however old`() async throws {
        let stale = [("Cache-Control", "max-age=0"), ("ETag", #""1""#)]
        let server = try await ScriptedServer.start(reply: { _ in .ok("stored", stale) })
        let address = server.url("/a").absoluteString
        _ = try await run("get", address)
        try await server.close()
        let result = try await run("get", "--offline", address)
        #expect(result.code == 0, "\(result.errors)")
        #expect(result.text == "stored")
    }

    @Test func `offline sends nothing, and says so with 78`() async throws {
        try await withFreshAnswers { server in
            let result = try await run("get", "--offline", server.url("/a").absoluteString)
            #expect(result.code == 78)
            #expect(result.errors.hasPrefix("urlsession: (78) "))
            #expect(result.text.isEmpty)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the list says what is there`() async throws {
        struct Item: Decodable {
            var url: String, status: Int, mimeType: String?, stored: String, expires: String?, bodyLength: Int, size: Int
        }
        #expect(try await count() == 0)
        try await withFreshAnswers { server in
            for path in ["/b", "/a"] { _ = try await run("get", server.url(path).absoluteString) }
            let whole = try await run("cache", "list").text.split(separator: "\n")
            #expect(whole.first?.split(separator: " ").joined(separator: " ") == "STORED FRESH UNTIL BODY STATUS TYPE URL")
            let lines = whole.dropFirst()
            try #require(lines.count == 2)
            for (line, path) in zip(lines, ["/a", "/b"]) {
                #expect(line.hasSuffix("8 bytes  200     text/plain  \(server.url(path).absoluteString)"))
            }
            let listed = try await run("cache", "list", "--json")
            let items = try JSONDecoder().decode([Item].self, from: listed.output)
            try #require(items.map(\.url) == [server.url("/a").absoluteString, server.url("/b").absoluteString])
            #expect(items[0].status == 200)
            #expect(items[0].mimeType == "text/plain")
            #expect(items[0].bodyLength == 8)
            #expect(items[0].size > 8)
            let stored = try Date(items[0].stored, strategy: .iso8601)
            let expires = try Date(#require(items[0].expires), strategy: .iso8601)
            #expect(expires.timeIntervalSince(stored) == 86400)
        }
    }

    @Test func `a stored response is shown as it came`() async throws {
        try await withFreshAnswers { server in
            let address = server.url("/a").absoluteString
            _ = try await run("get", address)
            let whole = try await run("cache", "show", address)
            #expect(whole.code == 0)
            #expect(whole.text.hasPrefix("HTTP/1.1 200 Scripted\n"))
            #expect(whole.text.contains("X-Mark: yes\n"))
            #expect(whole.text.hasSuffix("\n\nanswer 0"))
            #expect(try await run("cache", "show", "--body", address).text == "answer 0")
            #expect(try await run("cache", "show", "--headers", address).text + "answer 0" == whole.text)
            #expect(server.requests.count == 1)
            #expect(try await run("cache", "show", server.url("/b").absoluteString).code == 78)
        }
    }

    @Test func `clearing removes one URL, or all`() async throws {
        try await withFreshAnswers { server in
            for path in ["/a", "/b", "/c"] { _ = try await run("get", server.url(path).absoluteString) }
            let one = try await run("cache", "clear", server.url("/a").absoluteString)
            #expect(one.code == 0)
            #expect(one.errors == "removed 1 response\n")
            #expect(try await run("cache", "show", server.url("/a").absoluteString).code == 78)
            #expect(try await count() == 2)
            let all = try await run("cache", "clear")
            #expect(all.errors == "removed 2 responses\n")
            #expect(try await count() == 0)
        }
    }

    @Test(
        arguments: [
            (["cache", "show"], 2),
            (["cache", "show", "--headers", "--body", "http://127.0.0.1/"], 2),
            (["cache", "show", "http://[/"], 3),
            (["cache", "clear", "http://[/"], 3),
            (["get", "--offline", "--no-cache", "http://127.0.0.1/"], 2),
            (["get", "--no-cookies", "-b", "file.txt", "http://127.0.0.1/"], 2),
            (["get", "-b", "no-such-file", "http://127.0.0.1/"], 26),
        ] as [([String], Int32)])
    func `what cannot be done has curl's exit code`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(arguments, home: home)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.isEmpty)
    }
}
