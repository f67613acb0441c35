// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// The table of progress bars that `urlsession background watch` shows on a terminal.
@Suite(.timeLimit(.minutes(3)))
struct BackgroundWatchTests {
    private static let content = ScriptedFile.pattern(1 << 18)

    private static func halves(_ request: RecordedRequest) -> ScriptedReply {
        let half = content.count / 2
        return [
            .write("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"), .write(Array(content[..<half])), .gate("rest"),
            .write(Array(content[half...])),
        ]
    }

    /// Returns the lines of everything drawn, without the sequences that move the cursor or erase text.
    private static func lines(_ shown: some StringProtocol) -> [String] {
        shown.replacingOccurrences(of: "\u{1B}\\[[0-9]*[AKJ]", with: "", options: .regularExpression).split(
            whereSeparator: \.isNewline
        ).flatMap {
            $0.split(separator: "\r").map(String.init)
        }
    }

    private func watch(_ arguments: [String], at terminal: Terminal, _ place: BackgroundToolPlace) throws -> Tool {
        try Tool(
            ["background", "watch"] + arguments, in: place.folder, home: place.home,
            environment: terminal.environment(place.environment), preparation: terminal.preparation(">&3"))
    }

    @Test(arguments: [30, 80, 200])
    func `every transfer has a bar that fits the terminal`(_ columns: Int) async throws {
        let terminal = try Terminal()
        try terminal.resize(columns: columns)
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: Self.halves) { (server) async throws in
                let ordered = try await place.run(
                    "download", server.url("/one").absoluteString, server.url("/two").absoluteString)
                #expect(ordered.code == 0, "\(ordered.errors)")
                try await server.reached("rest", times: 2)
                let tool = try watch(["--until-done"], at: terminal, place)
                try await terminal.shown(" 50 %")
                server.open("rest")
                #expect(try await tool.result().code == 0)
                let lines = Self.lines(terminal.shown)
                #expect(lines.allSatisfy { $0.count < columns }, "\(lines)")
                #expect(lines.contains { $0.hasPrefix("1  one") } && lines.contains { $0.hasPrefix("2  two") }, "\(lines)")
                #expect(lines.contains { $0.contains("[##") && $0.contains("128 KiB of 256 KiB") } == (columns >= 60), "\(lines)")
                #expect(try place.folder.names == ["one", "two"])
            }
        }
    }

    @Test func `transfers without a row are counted, and Ctrl-C ends the command`() async throws {
        let terminal = try Terminal()
        try terminal.resize(columns: 100, rows: 4)
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: Self.halves) { (server) async throws in
                for name in ["a", "b", "c", "d", "e", "f"] {
                    let later = name < "e" ? ["--not-before", "+3600"] : []
                    #expect(
                        try await place.start(["download"] + later + [server.url("/\(name)").absoluteString]).result().code == 0)
                }
                try await server.reached("rest", times: 2)
                let tool = try watch([], at: terminal, place)
                try await terminal.shown("… and 3 more")
                // Running transfers are above waiting ones.
                let lines = Self.lines(terminal.shown)
                let first = lines.prefix(4).map { String($0.prefix(4)) }
                #expect(first == ["5  e", "6  f", "1  a", "… an"], "\(lines)")
                #expect(lines[2].contains("waiting: until "), "\(lines)")
                try terminal.type("\u{3}")
                #expect(try await tool.result().code == 0)
            }
        }
    }

    @Test func `control characters in a URL's file name do not reach the terminal`() async throws {
        let terminal = try Terminal()
        try await withBackgroundTool { (place) async throws in
            #expect(try await place.run("download", "--not-before", "+3600", "http://127.0.0.1:1/%1B%5B2Jx").code == 0)
            let tool = try watch([], at: terminal, place)
            try await terminal.shown("2Jx")
            #expect(!terminal.shown.contains("\u{1B}[2J"))
            try terminal.type("\u{3}")
            #expect(try await tool.result().code == 0)
        }
    }
}
