// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Server-controlled text on a terminal: no binary bodies, and no control characters.
@Suite(.timeLimit(.minutes(3)))
struct TerminalOutputTests {
    private static let title = "\u{1B}]0;owned\u{7}"

    private let folder: TemporaryDirectory
    private let terminal: Terminal

    init() throws {
        folder = try TemporaryDirectory()
        terminal = try Terminal()
    }

    /// Runs the tool with standard output, or another redirection, at the terminal.
    private func run(_ arguments: [String], _ redirections: String = ">&3") async throws -> Tool.Result {
        try await Tool.run(
            arguments, in: folder, home: folder, environment: terminal.environment([:]),
            preparation: terminal.preparation(redirections))
    }

    @Test(arguments: [["get"], ["get", "-i"], ["get", "-o", "-"], ["get", "-o", "file"]])
    func `a binary body is not written to a terminal unless requested`(_ arguments: [String]) async throws {
        // The head is longer than the part of a body that is inspected.
        let reply = ScriptedReply.ok(Array("GIF\0\u{1}".utf8), [("X-Long", String(repeating: "x", count: 3000))])
        try await withScriptedServer(reply: { _ in reply }) { (server) async throws in
            let result = try await run(arguments + ["-s", "-S", server.url("/a").absoluteString])
            if arguments.contains("-o") {
                #expect(result.code == 0, "\(result.errors)")
            } else {
                #expect(result.code == 23)
                #expect(result.errors.hasPrefix("urlsession: (23) the body is binary") && result.errors.contains("--output"))
            }
            if arguments.contains("-i") { try await terminal.shown("xxx") }
            if arguments.last == "-" { try await terminal.shown("GIF") }
            #expect(terminal.shown.contains("GIF") == (arguments.last == "-"))
            #expect(terminal.shown.contains("X-Long: xxx") == arguments.contains("-i"))
        }
    }

    @Test(arguments: [">&3", "2>&3", ">out"])
    func `--write-out escapes control characters on a terminal only`(_ redirections: String) async throws {
        try await withScriptedServer(reply: { _ in
            .ok("", [("X-Title", Self.title), ("Content-Type", "a/b\u{9B}2J")])
        }) { (server) async throws in
            let format = "\u{1B}[1m%header{x-title}|%{content_type}|%{header_json}|end"
            let result = try await run(
                ["get", "-s", "-w", redirections == "2>&3" ? "%{stderr}" + format : format, server.url("/a").absoluteString],
                redirections)
            #expect(result.code == 0, "\(result.errors)")
            let file = redirections == ">out" ? try String(contentsOf: folder.file("out"), encoding: .utf8) : nil
            if file == nil { try await terminal.shown("|end") }
            let text = file ?? terminal.shown
            // Control characters in the format itself are kept.
            #expect(text.hasPrefix("\u{1B}[1m" + (file == nil ? #"\u{1B}]0;owned\u{07}|a/b"# : Self.title + "|a/b")), "\(text)")
            #expect(text.contains(#""\u001b]0;owned\u0007""#), "\(text)")
            #expect(text.dropFirst(4).contains("\u{1B}") == (file != nil) && text.contains("\u{7}") == (file != nil))
            #expect(!text.contains("\u{9B}") || file != nil)
        }
    }

    @Test func `a stored response is shown without control characters`() async throws {
        let fresh = [("Cache-Control", "max-age=600"), ("X-Title", Self.title), ("Content-Type", "a/\u{1B}[2J")]
        try await withScriptedServer(reply: { _ in .ok(Array("GIF\0".utf8), fresh) }) { (server) async throws in
            let address = server.url("/a").absoluteString
            let stored = try await Tool.run(["get", address], in: folder, home: folder)
            #expect(stored.output == Data("GIF\0".utf8))
            let shown = try await run(["cache", "show", address])
            #expect(shown.code == 23 && shown.errors.contains("the body is binary"), "\(shown.errors)")
            try await terminal.shown("owned")
            #expect(!terminal.shown.contains("GIF"))
            for list in [["cache", "list"], ["cache", "list", "--json"]] {
                let before = terminal.shown.count
                #expect(try await run(list).code == 0)
                try await terminal.shown(address, after: before)
            }
            #expect(!terminal.shown.contains("\u{1B}") && !terminal.shown.contains("\u{7}"))
            // The output is unchanged if it is redirected.
            let exact = try await Tool.run(["cache", "show", address], in: folder, home: folder)
            #expect(exact.text.contains(Self.title) && exact.text.hasSuffix("GIF\0"))
        }
    }

    @Test func `cookies are shown without bidirectional control characters`() async throws {
        let mark = "\u{202E}"
        let line = "a.test\tFALSE\t/\tFALSE\t4102444800\tid\tx\(mark)y"
        try folder.write(Array("# Netscape HTTP Cookie File\n\(line)\n".utf8), to: "cookies.txt")
        #expect(
            try await Tool.run(["cookies", "import", "cookies.txt"], in: folder, home: folder).errors == "imported 1 cookie\n")
        for (command, escaped) in [(["export"], #"x\u{202E}y"#), (["list"], #"x\u{202E}y"#), (["list", "--json"], #"x\u202ey"#)] {
            let before = terminal.shown.count
            #expect(try await run(["cookies"] + command).code == 0)
            try await terminal.shown(escaped, after: before)
        }
        #expect(!terminal.shown.contains(mark))
        #expect(try await Tool.run(["cookies", "export"], in: folder, home: folder).text.contains(line))
    }

    @Test func `an error message contains no control characters`() async throws {
        let head = "HTTP/1.1 302 Found\r\nLocation: myapp://a\u{202E}b/\u{1B}[2J\r\nContent-Length: 0\r\n\r\n"
        try await withScriptedServer(reply: { _ in .raw(head) }) { (server) async throws in
            for arguments in [["-S"], ["-v"], ["--repeat", "1"]] {
                let result = try await Tool.run(["get"] + arguments + [server.url("/a").absoluteString])
                #expect(result.code != 0 && result.errors.contains(#"myapp://a\u{202E}b/\u{1B}[2J"#), "\(result.errors)")
                #expect(!result.errors.contains("\u{202E}") && !result.errors.contains("\u{1B}"))
            }
        }
    }
}
