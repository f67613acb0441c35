// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct CacheCommandTests {
    private static let fresh = [("Cache-Control", "max-age=86400"), ("Content-Type", "text/plain"), ("X-Mark", "yes")]

    /// Holds the responses of one test.
    private let home: TemporaryDirectory

    init() throws { home = try TemporaryDirectory() }

    private func run(_ arguments: String...) async throws -> Tool.Result { try await run(arguments) }

    private func run(_ arguments: [String]) async throws -> Tool.Result { try await Tool.run(arguments, home: home) }

    /// Answers each request with its number.
    private func withFreshAnswers(_ test: (ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok("answer \($0.order)", Self.fresh) }, test: test)
    }

    private func count() async throws -> Int {
        try await run("cache", "list").text.split(separator: "\n").dropFirst().count
    }

    /// Answers with the deployed content, which is `one` at first.
    private func withDeployment(
        _ control: String, validator: Bool = true, _ test: (ScriptedServer, Watched<String>) async throws -> Void
    ) async throws {
        let deployed = Watched("one")
        try await withScriptedServer(reply: { request in
            let (content, tag) = deployed.read { ($0, "\"\($0)\"") }
            if validator, request.header("If-None-Match") == tag { return .status(304, [("ETag", tag)]) }
            return .ok(content, [("Cache-Control", control)] + (validator ? [("ETag", tag)] : []))
        }) { (server) async throws in
            try await test(server, deployed)
        }
    }

    @Test(arguments: ["max-age=86400", "max-age=86400, immutable", "max-age=0, stale-while-revalidate=86400"])
    func `get shows the deployed content regardless of stored responses`(control: String) async throws {
        for usesFile in [false, true] {
            for validator in [true, false] {
                try await withDeployment(control, validator: validator) { (server, deployed) async throws in
                    let file = home.url.appendingPathComponent("page").path
                    func get() async throws -> String {
                        let result = try await run(["get", server.url("/a").absoluteString] + (usesFile ? ["-o", file] : []))
                        #expect(result.code == 0, "\(result.errors)")
                        return usesFile ? try String(contentsOfFile: file, encoding: .utf8) : result.text
                    }
                    #expect(try await get() == "one")
                    // The stored response is used after the server has validated it.
                    #expect(try await get() == "one")
                    #expect(server.requests.count == 2)
                    #expect(server.requests.last?.header("If-None-Match") == (validator ? "\"one\"" : nil))
                    #expect(server.requests.last?.header("Cache-Control") == "max-age=0")
                    deployed.change { $0 = "two" }
                    #expect(try await get() == "two")
                    #expect(server.requests.count == 3)
                }
            }
        }
    }

    @Test func `cached shows a fresh response without a request`() async throws {
        try await withFreshAnswers { server in
            let address = server.url("/a").absoluteString
            for _ in 1...2 {
                let result = try await run("get", "--cached", address)
                #expect(result.code == 0)
                #expect(result.text == "answer 0")
            }
            #expect(server.requests.count == 1)
            #expect(server.requests.first?.header("Cache-Control") == nil)
        }
    }

    @Test func `a server error is shown instead of a stored response`() async throws {
        let isBroken = Watched(false)
        let fields = [("Cache-Control", "max-age=0, stale-if-error=86400"), ("ETag", "\"1\"")]
        try await withScriptedServer(reply: { _ in isBroken.read { $0 } ? .status(503, body: "broken") : .ok("good", fields) }) {
            (server) async throws in
            let address = server.url("/a").absoluteString
            #expect(try await run("get", address).text == "good")
            isBroken.change { $0 = true }
            #expect(try await run("get", address).text == "broken")
            #expect(try await run("get", "--cached", address).text == "good")
        }
    }

    /// They are revalidated even if the redirect may be stored for a week and the response of its target is fresh.
    @Test func `stored redirects and their targets are revalidated`() async throws {
        try await withScriptedServer(reply: { request in
            switch request.path {
            case "/old": .redirect(301, to: "/new")
            // The response to a POST or PUT is not stored, but the response to the redirected request is.
            case "/form": .redirect(303, to: "/hop")
            case "/hop": .redirect(302, to: "/new")
            default: .ok("answer \(request.order)", Self.fresh)
            }
        }) { (server) async throws in
            #expect(try await run("get", server.url("/old").absoluteString).text == "answer 1")
            #expect(try await run("get", server.url("/old").absoluteString).text == "answer 3")
            #expect(try await run("get", "-d", "a=b", server.url("/form").absoluteString).text == "answer 6")
            #expect(server.requests.map(\.path) == ["/old", "/new", "/old", "/new", "/form", "/hop", "/new"])
            let file = home.url.appendingPathComponent("file").path
            try Data("content".utf8).write(to: URL(fileURLWithPath: file))
            #expect(try await run("upload", file, server.url("/form").absoluteString).text == "answer 9")
        }
    }

    @Test func `conditions and directives of the user are sent unchanged`() async throws {
        try await withDeployment("max-age=86400, immutable") { (server, _) async throws in
            let address = server.url("/a").absoluteString
            #expect(try await run("get", address).text == "one")
            let own = [("If-None-Match", "\"mine\""), ("Cache-Control", "max-age=60"), ("Cache-Control", "max-stale")]
            for (number, field) in own.enumerated() {
                #expect(try await run("get", "-H", "\(field.0): \(field.1)", address).text == "one")
                try #require(server.requests.count == number + 2)
                let request = server.requests[number + 1]
                #expect(request.header(field.0) == field.1)
                #expect(request.header("Cache-Control") == (field.0 == "Cache-Control" ? field.1 : nil))
                #expect(request.header("If-None-Match") == (field.0 == "If-None-Match" ? field.1 : nil))
            }
            let unchanged = try await run("get", "-i", "-H", "If-None-Match: \"one\"", address)
            #expect(unchanged.text.hasPrefix("HTTP/1.1 304 "))
        }
    }

    @Test func `no-cache asks the server and stores the newer response`() async throws {
        try await withFreshAnswers { server in
            let address = server.url("/a").absoluteString
            _ = try await run("get", address)
            #expect(try await run("get", "--no-cache", address).text == "answer 1")
            #expect(server.requests.last?.header("Cache-Control") == "no-cache")
            #expect(try await run("get", "--cached", address).text == "answer 1")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `offline shows a stored response of any age`() async throws {
        let stale = [("Cache-Control", "max-age=0"), ("ETag", #""1""#)]
        let server = try await ScriptedServer.start(reply: { _ in .ok("stored", stale) })
        let address = server.url("/a").absoluteString
        _ = try await run("get", address)
        try await server.close()
        let result = try await run("get", "--offline", address)
        #expect(result.code == 0, "\(result.errors)")
        #expect(result.text == "stored")
    }

    @Test func `offline sends nothing and exits with 78`() async throws {
        try await withFreshAnswers { server in
            let result = try await run("get", "--offline", server.url("/a").absoluteString)
            #expect(result.code == 78)
            #expect(result.errors.hasPrefix("urlsession: (78) "))
            #expect(result.text.isEmpty)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the list describes each stored response`() async throws {
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
            // The time that the response took counts toward its age (RFC 9111, section 4.2.3).
            #expect((86_390...86_400).contains(expires.timeIntervalSince(stored)))
        }
    }

    @Test func `a stored response is shown as it was received`() async throws {
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

    @Test func `clear removes the responses of one URL or all responses`() async throws {
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
            (["get", "--cached", "--offline", "http://127.0.0.1/"], 2),
            (["get", "--cached", "--no-cache", "http://127.0.0.1/"], 2),
            (["get", "--no-cookies", "-b", "file.txt", "http://127.0.0.1/"], 2),
            (["get", "-b", "no-such-file", "http://127.0.0.1/"], 26),
        ] as [([String], Int32)])
    func `wrong usage has curl's exit code`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(arguments, home: home)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.isEmpty)
    }
}
