// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--write-out` with curl's variables, and the output of heads as they were received.
@Suite(.timeLimit(.minutes(3)))
struct WriteOutTests {
    private func run(
        _ format: String, _ arguments: [String] = [], reply: ScriptedReply = .ok("body")
    )
        async throws -> Tool.Result
    {
        let folder = try TemporaryDirectory()
        var result: Tool.Result?
        try await withScriptedServer(reply: { $0.path == "/old" ? .redirect(302, to: "/a") : reply }) { (server) async throws in
            result = try await Tool.run(["get", "-s", "-w", format] + arguments + [server.url("/a").absoluteString], in: folder)
        }
        return try #require(result)
    }

    @Test(
        arguments: [
            ("", "body"), ("\\n\\t\\r%%|", "body\n\t\r%|"),
            ("%{http_code} %{response_code}", "body200 200"),
            ("%{size_download} %{size_upload} %{num_redirects} %{num_connects}", "body4 0 0 1"),
            ("%{method} %{scheme} %{http_version}", "bodyGET HTTP 1.1"),
            ("%{remote_ip} %{local_ip}", "body127.0.0.1 127.0.0.1"),
            ("%{content_type}|%header{x-MARK}|%header{none}|", "bodytext/x|one||"),
            ("%{exitcode}%{errormsg}", "body0"),
            ("%{ssl_verify_result} %{filename_effective}|", "body0 |"),
            ("%{time_appconnect} %{time_redirect}", "body0.000000 0.000000"),
            ("%q %{http_code %", "body%q %{http_code %"), ("a\\", "bodya\\"), ("\\q", "body\\q"),
        ])
    func `variables have curl's values`(_ format: String, _ text: String) async throws {
        let result = try await run(
            format,
            reply: .ok("body", [("Content-Type", "text/x"), ("X-Mark", "one"), ("x-mark", "two")]))
        #expect(result.text == text)
        #expect(result.errors.isEmpty)
    }

    @Test(
        arguments: [
            "time_total", "time_namelookup", "time_connect", "time_pretransfer", "time_starttransfer",
            "speed_download",
            "remote_port", "local_port", "size_header", "size_request",
        ])
    func `measured values are numbers`(_ name: String) async throws {
        let text = try await run(" %{\(name)}").text
        let number = try #require(Double(text.dropFirst("body ".count)))
        #expect(number > 0, "\(text)")
        if name.hasPrefix("time") { #expect(text.wholeMatch(of: /body \d+\.\d{6}/) != nil, "\(text)") }
    }

    @Test func `redirects, an upload, a file and a failure are reported`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("%{stderr}%{size_upload}%{stdout}|%{url_effective}".utf8), to: "format")
        try await withScriptedServer(reply: {
            $0.path == "/old" ? .redirect(307, to: "/new") : .status(404, body: "no")
        }) { (server) async throws in
            func run(_ arguments: String..., path: String) async throws -> Tool.Result {
                try await Tool.run(arguments + [server.url(path).absoluteString], in: folder)
            }
            let redirected = try await run(
                "get", "-s", "-o", "f", "-w",
                "%{num_redirects} %{url} %{url_effective} %{filename_effective}", path: "/old")
            #expect(redirected.text == "1 \(server.url("/old")) \(server.url("/new")) f")
            let posted = try await run("get", "-s", "-d", "12345", "-w", "@format", path: "/new")
            #expect(posted.text == "no|\(server.url("/new"))")
            #expect(posted.errors == "5")
            for command in ["get", "download"] {
                let failed = try await run(
                    command, "-fs", "-w", "%{http_code} %{exitcode} %{errormsg}", path: "/new")
                #expect(failed.code == 22)
                #expect(failed.text == "404 22 the server answered 404")
            }
        }
        let refused = try await Tool.run([
            "get", "-s", "-w", "%{http_code} %{exitcode}",
            "http://127.0.0.1:\(try RefusingPort().number)",
        ])
        #expect(refused.code == 7)
        #expect(refused.text == "000 7")
    }

    @Test func `an unknown variable expands to nothing, with a warning`() async throws {
        let result = try await run("<%{nonsense}>")
        #expect(result.code == 0)
        #expect(result.text == "body<>")
        #expect(result.errors == "urlsession: unknown --write-out variable: 'nonsense'\n")
    }

    @Test func `header_json has all values of all fields`() async throws {
        let reply = ScriptedReply.ok("", [("Z", "1"), ("A", "\"q\""), ("z", "2")])
        let text = try await run("%{header_json}", reply: reply).text
        #expect(text == "{\"z\":[\"1\",\"2\"],\n\"a\":[\"\\\"q\\\"\"],\n\"content-length\":[\"0\"]\n}")
    }

    // MARK: Heads

    @Test func `verbose shows the heads as they were on the wire`() async throws {
        try await withScriptedServer(reply: { request in
            request.path == "/old"
                ? .redirect(302, to: "/new")
                : .ok("body", [("Z-Last", "1"), ("A-First", "2"), ("z-last", "3")])
        }) { (server) async throws in
            let result = try await Tool.run([
                "get", "-v", "-H", "Z: 1", "-H", "B: 2", server.url("/old").absoluteString,
            ])
            let sent = server.requests.map { request in
                request.headText.components(separatedBy: "\r\n").filter { !$0.isEmpty }.map { "> \($0)\n" }
                    .joined() + "> \n"
            }
            let received = [
                "< HTTP/1.1 302 Scripted\n< Location: /new\n< Content-Length: 5\n< \n",
                "< HTTP/1.1 200 Scripted\n< Z-Last: 1\n< A-First: 2\n< z-last: 3\n< Content-Length: 4\n< \n",
            ]
            try #require(sent.count == 2)
            let place = "127.0.0.1 (127.0.0.1) port \(try #require(server.url("/").port))\n"
            #expect(
                result.errors == sent[0] + received[0] + sent[1] + received[1] + "* Connected to " + place
                    + "* Went over the connection to " + place)
        }
    }

    @Test func `include shows the head's lines in their order`() async throws {
        let head =
            "HTTP/1.0 203 As They Say\r\nZ-Last: 1\r\nA-First: 2\r\nContent-Length: 4\r\n\r\nbody"
        let result = try await run("", ["-i"], reply: .raw(head))
        #expect(result.text == head.replacingOccurrences(of: "\r\n", with: "\n"))
    }

    @Test func `verbose shows what came from the cache`() async throws {
        let home = try TemporaryDirectory()
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            if request.header("If-None-Match") != nil { return .status(304, [("ETag", "\"1\"")]) }
            let age = request.path == "/fresh" ? "max-age=600" : "max-age=0"
            return .ok("kept", [("Cache-Control", age), ("ETag", "\"1\"")])
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            func run(_ path: String) async throws -> Tool.Result {
                try await Tool.run(["get", "--cached", "-v", server.url(path).absoluteString], home: home)
            }
            for path in ["/fresh", "/stale"] {
                #expect(try await !run(path).errors.contains("from the cache"))
            }
            let fresh = try await run("/fresh")
            #expect(fresh.text == "kept")
            #expect(
                fresh.errors.hasPrefix("* from the cache; nothing was sent\n< HTTP/1.1 200 Scripted\n"),
                "\(fresh.errors)")
            #expect(!fresh.errors.contains("> "))
            let stale = try await run("/stale")
            #expect(stale.text == "kept")
            #expect(stale.errors.hasPrefix("> GET /stale HTTP/1.1\n"))
            let validated =
                "* from the cache: the server answered 304, not modified\n< HTTP/1.1 304 Scripted\n< ETag: \"1\"\n< Content-Length: 0\n< \n"
            #expect(stale.errors.hasSuffix(validated), "\(stale.errors)")
            #expect(!stale.errors.contains("nothing was sent"))
        }
    }

    @Test func `verbose shows proxy challenges, and nothing twice`() async throws {
        let words = "Basic " + Data("ali:sesame".utf8).base64EncodedString()
        try await withScriptedServer(reply: { request in
            if request.target.hasSuffix("/old") { return .redirect(302, to: "/new") }
            return request.header("Proxy-Authorization") == words
                ? .ok("here") : .status(407, [("Proxy-Authenticate", #"Basic realm="r""#)], body: "closed")
        }) { (proxy) async throws in
            let result = try await Tool.run([
                "get", "-v", "-x", "127.0.0.1:\(proxy.port)", "-U", "ali:sesame", "http://nowhere.example/old",
            ])
            #expect(result.text == "here", "\(result.errors)")
            let statuses = result.errors.split(separator: "\n").compactMap { $0.wholeMatch(of: /< HTTP\/1.1 (\d+) .*/)?.1 }
            #expect(statuses == ["302", "200", "407"], "\(result.errors)")
            #expect(proxy.requests.count == 3)
        }
    }
}
