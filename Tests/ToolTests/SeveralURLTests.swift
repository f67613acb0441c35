// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Globs, lists, `--parallel`, `--next` and `--config`.
@Suite(.timeLimit(.minutes(3)))
struct SeveralURLTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private static func echo(_ request: RecordedRequest) -> ScriptedReply {
        .ok("\(request.method) \(request.target) \(request.bodyText)\n")
    }

    private func text(_ name: String) throws -> String { try String(contentsOf: folder.file(name), encoding: .utf8) }

    // MARK: Globs

    @Test(arguments: [
        "{a,b}", "{,a}", "{a,}", "[1-3]", "[09-11]", "[01-3]", "[1-9:4]", "[a-c]", "[A-E:2]", "{a,b}[1-2]", "x[1-1]y",
        "{a\\,b,c}", "{a}",
        "{}", "[3-1]", "[1-3:0]", "[a-C]", "a]", "a}", "{a", "[1", "{a,{b}}", "{a,[1-2]}", "[1-]", "[-]", "[1-2:3:4]", "[x]",
        "[[1-2]]",
    ])
    func `a glob expands as it does with curl`(_ glob: String) async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            let address = server.url("/").absoluteString + glob
            let result = try await Tool.run(["-s", address])
            let tool = server.requests.map(\.target)
            let curl = try await Tool.run([], in: folder, preparation: "curl -s '\(address)' >/dev/null; echo $?; exit 0")
            #expect(result.code == Int32(curl.text.trimmingCharacters(in: .newlines)), "\(result.errors)")
            #expect(tool == server.requests.dropFirst(tool.count).map(\.target))
            #expect(result.code == (tool.isEmpty ? 3 : 0))
        }
    }

    @Test func `a file's name contains the values of globs, unless --globoff is given`() async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            let address = server.url("/").absoluteString
            let result = try await Tool.run(
                ["-s", address + "{a,b}/[1-2]", "-o", "#2-#1-#3#", address + "z", "-o", "#1"], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            #expect(try folder.names == ["#1", "1-a-#3#", "1-b-#3#", "2-a-#3#", "2-b-#3#"])
            #expect(try text("2-b-#3#") == "GET /b/2 \n")
            let off = try await Tool.run(["-sg", address + "{a,b}"])
            #expect(off.text == "GET /%7Ba,b%7D \n", "\(off.text) \(off.errors)")
            #expect(try await Tool.run(["-s", "data:,{a,b}[1-2]"]).text == "{a,b}[1-2]")
        }
    }

    @Test func `too many URLs are refused before anything is sent`() async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            for glob in ["[1-99999999]", "[1-9999][1-9999]", "[0-9223372036854775807]", "[1-60000]{a,b}"] {
                let result = try await Tool.run([server.url("/").absoluteString + glob])
                #expect(result.code == 2 && result.errors.contains("100000"), "\(result.errors)")
            }
            #expect(server.requests.isEmpty)
        }
    }

    // MARK: Lists

    @Test func `globs in an input file are taken literally`() async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            let address = server.url("/").absoluteString
            let list = try folder.write(Array("# comment\n\(address)a\n\n  \(address)b?x=[1-2]\r\n".utf8), to: "list")
            let result = try await Tool.run(["-s", address + "first", "--input-file", "-", "--url-query", "q=a b"], input: list)
            #expect(
                result.text == "GET /first?q=a%20b \nGET /a?q=a%20b \nGET /b?x=%5B1-2%5D&q=a%20b \n",
                "\(result.text) \(result.errors)")
            #expect(try await Tool.run(["--input-file", folder.file("none").path]).code == 26)
        }
    }

    @Test func `--proto-default sets the protocol, and --disallow-username-in-url refuses a user`() async throws {
        let result = try await Tool.run([
            "-s", "--proto-default", "ftp", "--proto", "=https", "127.0.0.1:9/x", "-w", "%{exitcode}",
        ])
        #expect(result.code == 1)
        let named = try await Tool.run(["--disallow-username-in-url", "http://ali:secret@127.0.0.1:9/"])
        #expect(named.code == 67 && !named.errors.contains("secret"), "\(named.errors)")
    }

    // MARK: Parallel

    @Test func `--parallel loads at most --parallel-max URLs concurrently`() async throws {
        try await withScriptedServer(reply: { _ in [.gate("go"), .write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")] }) {
            (server) async throws in
            let tool = try Tool(["-sZ", "--parallel-max", "3", server.url("/").absoluteString + "[1-9]"], in: folder)
            _ = try await server.waitForRequests(3)
            #expect(server.connectionCount == 3)
            server.open("go")
            let result = try await tool.result()
            #expect(result.code == 0 && result.text == String(repeating: "ok\n", count: 9), "\(result.errors)")
        }
    }

    @Test func `each parallel load has its own file, and a failure decides the exit code`() async throws {
        try await withScriptedServer(reply: { $0.path == "/3" ? .status(404, body: "no") : Self.echo($0) }) {
            (server) async throws in
            let address = server.url("/").absoluteString + "[1-8]"
            let result = try await Tool.run(["-sSfZ", address, "-o", "file#1", "-w", "%{urlnum}\n"], in: folder)
            #expect(result.code == 22 && result.errors.contains("404"), "\(result.errors)")
            #expect(Set(result.text.split(separator: "\n")).count == 8, "\(result.text)")
            for number in 1...8 where number != 3 { #expect(try text("file\(number)") == "GET /\(number) \n") }
            #expect(try folder.names.count == 7)
        }
    }

    // MARK: Next and configuration

    @Test func `a failed download is reported once, whatever follows it`() async throws {
        try await withScriptedServer(reply: { $0.path == "/bad" ? .status(404, body: "no") : .ok("good") }) {
            (server) async throws in
            let (good, bad) = (server.url("/good").absoluteString, server.url("/bad").absoluteString)
            for addresses in [[bad], [bad, good], [good, bad], [bad, good, good + "2"]] {
                let result = try await Tool.run(["download", "-sS"] + addresses)
                #expect(result.code == 22 && result.errors == "urlsession: (22) the server answered 404\n", "\(result.errors)")
            }
        }
    }

    @Test func `the commands before and after --next have separate options`() async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            let address = server.url("/a").absoluteString
            for next in ["--next", "-:"] {
                let result = try await Tool.run(["-s", "-d", "x=1", address, next, "-s", "-X", "DELETE", address])
                #expect(result.code == 0 && result.text == "POST /a x=1\nDELETE /a \n", "\(result.errors)")
            }
            #expect(try await Tool.run(["-s", address, "--next", "--none", address]).code == 2)
            // Global options apply on both sides of --next, and may be given on either side.
            let refused = "http://127.0.0.1:1/"
            for words in [["-s", refused, "--next", refused], [refused, "-:", "-s", refused]] {
                let result = try await Tool.run(words)
                #expect(result.code == 7 && result.errors.isEmpty, "\(result.errors)")
            }
            for words in [["--fail-early", refused, "--next", address], [refused, "--next", "--fail-early", address]] {
                #expect(try await Tool.run(["-s"] + words).code == 7)
            }
            let both = try await Tool.run(["--stderr", "-", refused, "--next", refused])
            #expect(both.errors.isEmpty && both.text.split(separator: "\n").count == 2, "\(both.text)")
            #expect(server.requests.count == 4)
        }
    }

    @Test func `a configuration file has the same meaning as in curl`() async throws {
        try await withScriptedServer(reply: {
            .ok("\($0.method) \($0.target) \($0.header("X-A") ?? "-") \($0.header("X-B") ?? "-")\n")
        }) {
            (server) async throws in
            let address = server.url("/a").absoluteString
            for text in [
                "url = \(address)\nsilent\nheader = \"X-A: a\\tb \\\"c\\\"\"\n",
                "# no\n\n  -H X-A:1 # one\n-s\n--url \(address)\n",
                "url: \"\(address)\"\nrequest=PUT\nheader:\"X-B: x = y\"\n-s", "-sXPOST\r\nurl\t\(address)\r\n",
                "-s\nrequest = \"-x\"\nurl=\(address)",
                "-s\nurl = \"\(address)?{a,b}\"\nnext\nurl=\(address)\n-s",
                "silent = true\nurl = \(address) more\nrequest = DELETE # how\nget: \"true\"",
                "-s true\nurl = \(address)\n-X PUT POST\nnext\nurl = \(address)",
            ] {
                let file = try folder.write(Array(text.utf8), to: "config")
                let curl = try await Tool.run([], in: folder, preparation: "curl -q -K config; exit 0")
                #expect(!curl.text.isEmpty)
                for words in [["-K", "config"], ["--config", "config"], ["-K-"], ["--config=config"]] {
                    let result = try await Tool.run(words, in: folder, input: file)
                    #expect(result.code == 0 && result.text == curl.text, "\(text) \(result.text) \(result.errors)")
                }
            }
        }
    }

    @Test func `an invalid configuration file is refused`() async throws {
        for (text, code) in [("url = \"x", 2), ("none", 2), ("-K config", 2), ("", 2)] as [(String, Int32)] {
            try folder.write(Array(text.utf8), to: "config")
            #expect(try await Tool.run(["-K", "config"], in: folder).code == code, "\(text)")
        }
        #expect(try await Tool.run(["-K", "none"], in: folder).code == 26)
        #expect(try await Tool.run(["-K"], in: folder).code == 2)
    }
}
