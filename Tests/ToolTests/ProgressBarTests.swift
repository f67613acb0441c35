// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// The progress bar, in terminals of several widths.
@Suite(.timeLimit(.minutes(3)))
struct ProgressBarTests {
    private static let content = ScriptedFile.pattern(1 << 20)

    /// Returns all drawings of the line, without the sequence that erases the line's end.
    private static func drawings(_ shown: some StringProtocol) -> [String] {
        shown.replacingOccurrences(of: "\u{1B}[K", with: "").components(separatedBy: .newlines).flatMap {
            $0.components(separatedBy: "\r")
        }.filter { !$0.isEmpty }
    }

    /// Replies with half of a file, and with the rest after the gate is opened.
    private static func reply(_ request: RecordedRequest) -> ScriptedReply {
        let half = content.count / 2
        return [
            .write("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"), .write(Array(content[..<half])), .gate("rest"),
            .write(Array(content[half...])),
        ]
    }

    private func start(
        _ arguments: [String], at terminal: Terminal, in folder: TemporaryDirectory
    ) throws -> Tool {
        try Tool(
            arguments, in: folder, environment: terminal.environment([:]), preparation: terminal.preparation("2>&3"))
    }

    @Test(arguments: [1, 20, 40, 80, 200], [["download", "-o", "file.bin"], ["get", "-o", "file.bin"]])
    func `no line is wider than the terminal`(_ columns: Int, _ arguments: [String]) async throws {
        let terminal = try Terminal()
        try terminal.resize(columns: columns)
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            let tool = try start(arguments + ["--max-time", "20", server.url("/f").absoluteString], at: terminal, in: folder)
            try await server.reached("rest")
            if columns >= 20 { try await terminal.shown(" 50 %") }
            server.open("rest")
            let result = try await tool.result()
            #expect(result.code == 0)
            let bars = Self.drawings(terminal.shown).filter { columns < 20 || $0.contains(" %") }
            #expect(bars.allSatisfy { $0.contains("saved as") || $0.count < columns || columns == 1 && $0.count <= 1 }, "\(bars)")
            #expect(bars.contains { $0.contains("[") } || columns < 80, "\(bars)")
            if columns >= 20 { #expect(bars.contains { $0.hasPrefix("100 %") }) }
        }
    }

    @Test(arguments: [(200, 40), (40, 100)])
    func `the bar follows the terminal's size`(_ before: Int, _ after: Int) async throws {
        let terminal = try Terminal()
        try terminal.resize(columns: before)
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            let arguments = ["download", "--max-time", "20", "-o", "f", server.url("/f").absoluteString]
            let tool = try start(arguments, at: terminal, in: folder)
            try await terminal.shown(" 50 %")
            let first = terminal.shown.count
            try terminal.resize(columns: after)
            // No bytes arrive meanwhile, so the bar is redrawn because the terminal's size changed.
            try await terminal.shown(" 50 %", after: first)
            server.open("rest")
            #expect(try await tool.result().code == 0)
            let bars = Self.drawings(terminal.shown.dropFirst(first)).filter { $0.contains(" %") }
            #expect(bars.allSatisfy { $0.count < after }, "\(bars)")
            #expect(bars.contains { $0.contains("[") } || after < 80, "\(bars)")
        }
    }
}
