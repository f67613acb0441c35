// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--retry` and related options, and `--connect-timeout`.
///
/// No test waits for a retry, because the pauses are zero or longer than allowed.
@Suite(.timeLimit(.minutes(3)))
struct RetryTests {
    @Test(arguments: [408, 429, 500, 502, 503, 504])
    func `a temporary error is retried`(_ status: Int) async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("content".utf8), to: "file")
        try await withScriptedServer(reply: {
            $0.order % 3 < 2 ? .status(status, body: "later") : .ok("here")
        }) { (server) async throws in
            let address = server.url("/name").absoluteString
            let retrying = ["--retry", "2", "--retry-delay", "0"]
            let got = try await Tool.run(["get", "-i"] + retrying + [address])
            #expect(got.code == 0, "\(got.errors)")
            #expect(got.text.hasPrefix("HTTP/1.1 200 ") && got.text.hasSuffix("\n\nhere"))
            #expect(got.errors.components(separatedBy: "retrying in 0 s").count == 3)
            let posted = try await Tool.run(["get", "-F", "a=@file"] + retrying + [address], in: folder)
            #expect(posted.text == "here", "\(posted.errors)")
            #expect(server.requests.last?.bodyText.contains("content") == true)
            let sent = try await Tool.run(["upload", "file"] + retrying + [address], in: folder)
            #expect(sent.text == "here", "\(sent.errors)")
            let downloaded = try await Tool.run(["download"] + retrying + [address], in: folder)
            #expect(downloaded.code == 0, "\(downloaded.errors)")
            #expect(try String(contentsOf: folder.file("name"), encoding: .utf8) == "here")
            #expect(server.requests.count == 12)
        }
    }

    @Test func `Ctrl-C ends a later attempt in the same way as the first`() async throws {
        let folder = try TemporaryDirectory()
        let file = ScriptedFile(ScriptedFile.pattern(1 << 20))
        try await withScriptedServer(reply: { request in
            request.order == 0 ? .status(503) : file.reply(to: request, cutAfter: 1 << 19, ending: .stall)
        }) { (server) async throws in
            let address = server.url("/file").absoluteString
            let tool = try Tool(["download", "--retry", "1", "--retry-delay", "0", "-o", "file.bin", address], in: folder)
            try await tool.shown(" 50 %")
            tool.interrupt()
            let result = try await tool.result()
            #expect(result.code == 130, "\(result.errors)")
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
        }
    }

    @Test func `the last response is delivered when no retry is left`() async throws {
        try await withScriptedServer(reply: { _ in .status(503, body: "later") }) { (server) async throws in
            let arguments = ["--retry", "2", "--retry-delay", "0", server.url("/a").absoluteString]
            let shown = try await Tool.run(["get", "-s", "-w", " %{http_code} %{exitcode}"] + arguments)
            #expect(shown.code == 0)
            #expect(shown.text == "later 503 0")
            #expect(shown.errors.isEmpty)
            let failed = try await Tool.run(["get", "-f", "-s"] + arguments)
            #expect(failed.code == 22)
            #expect(server.requests.count == 6)
        }
    }

    @Test(arguments: [400, 404, 501])
    func `a permanent error is not retried`(_ status: Int) async throws {
        try await withScriptedServer(reply: { _ in .status(status, body: "no") }) { (server) async throws in
            let result = try await Tool.run([
                "get", "-f", "--retry", "3", "--retry-delay", "0", server.url("/a").absoluteString,
            ])
            #expect(result.code == 22)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a timeout is retried, and a lost connection is not`() async throws {
        try await withScriptedServer(reply: {
            $0.path == "/lost" ? [.close] : $0.order == 0 ? [.stall] : .ok("here")
        }) { (server) async throws in
            let retrying = ["get", "-X", "POST", "--retry", "3", "--retry-delay", "0", "--max-time"]
            let late = try await Tool.run(retrying + ["0.5", server.url("/a").absoluteString])
            #expect(late.text == "here", "\(late.errors)")
            let before = server.requests.count
            let lost = try await Tool.run(retrying + ["20", server.url("/lost").absoluteString])
            #expect(lost.code == 52)
            #expect(server.requests.count == before + 1)
        }
    }

    @Test func `a request is not retried if its Retry-After exceeds --retry-max-time`() async throws {
        let dates = ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"]
        try await withScriptedServer(reply: {
            .status(429, [("Retry-After", dates[$0.order % 2])], body: "busy")
        }) { (server) async throws in
            for _ in dates {
                let result = try await Tool.run(
                    ["get", "-f", "--retry", "3", "--retry-max-time", "60", server.url("/a").absoluteString])
                #expect(result.code == 22)
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [["get"], ["get", "-i"]])
    func `a response is delivered if there is no time for a retry`(_ command: [String]) async throws {
        let dates = ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"]
        try await withScriptedServer(reply: {
            .status(503, [("Retry-After", dates[$0.order % 2])], body: "busy")
        }) { (server) async throws in
            for _ in dates {
                let result = try await Tool.run(
                    command + ["--retry", "3", "--retry-max-time", "60", "-w", "|%{exitcode}", server.url("/a").absoluteString])
                #expect(result.code == 0, "\(result.errors)")
                #expect(result.text.hasSuffix("busy|0") && result.text.hasPrefix("HTTP/1.1 503 ") == (command.count == 2))
                #expect(result.errors.isEmpty)
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `--connect-timeout limits the TLS handshake`() async throws {
        try await withScriptedServer(greeting: { _ in [.stall] }, reply: { _ in .ok() }) { (server) async throws in
            let address = "https://127.0.0.1:\(server.port)/"
            for command in ["get", "download"] {
                let result = try await Tool.run([command, "--connect-timeout", "0.3", address])
                #expect(result.code == 28)
                #expect(
                    result.errors.hasSuffix(
                        "urlsession: (28) connecting took longer than 0.3 s (--connect-timeout)\n"))
            }
        }
    }

    @Test func `--connect-timeout does not limit the response`() async throws {
        try await withScriptedServer(reply: {
            $0.path == "/a"
                ? .redirect(302, to: "/b")
                : [.pause(milliseconds: 1500), .write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")]
        }) { (server) async throws in
            let result = try await Tool.run([
                "get", "--connect-timeout", "1", server.url("/a").absoluteString,
            ])
            #expect(result.text == "here", "\(result.errors)")
        }
    }
}
