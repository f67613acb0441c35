// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Compares docs/CURL.md with the tool and with curl, and compares the tool's list of options that take values with the tool's
/// parser.
@Suite(.timeLimit(.minutes(3)))
struct CurlTableTests {
    private struct Row {
        let short: String?
        let name: String
        let takesValue: Bool
        let kind: String
        let why: String
    }

    /// The parser's description of itself.
    private struct Dump: Decodable {
        struct Command: Decodable {
            let commandName: String
            let arguments: [Argument]?
            let subcommands: [Command]?
        }
        struct Argument: Decodable {
            let kind: String
            let names: [Name]?
        }
        struct Name: Decodable {
            let kind: String
            let name: String
        }
        let command: Command
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func rows() throws -> [Row] {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/CURL.md"), encoding: .utf8)
        return text.matches(of: /\| (?:`-(.)`, )?`--([a-z0-9.\-]+)`( \*value\*)? \| (\w+) \| (.*?) ?\|\n/).map { match in
            Row(
                short: match.1.map(String.init), name: String(match.2), takesValue: match.3 != nil, kind: String(match.4),
                why: String(match.5))
        }
    }

    /// Returns the names of the commands' options that take a value, and of those that do not.
    private func names(_ commands: [String]) async throws -> (options: Set<String>, flags: Set<String>) {
        let result = try await Tool.run(["--experimental-dump-help"])
        let dump = try JSONDecoder().decode(Dump.self, from: result.output)
        var (options, flags): (Set<String>, Set<String>) = ([], [])
        for command in dump.command.subcommands ?? [] where commands.contains(command.commandName) {
            for argument in command.arguments ?? [] {
                let names = (argument.names ?? []).map { $0.kind == "long" ? "--\($0.name)" : "-\($0.name)" }
                if argument.kind == "option" { options.formUnion(names) }
                if argument.kind == "flag" { flags.formUnion(names) }
            }
        }
        return (options, flags)
    }

    @Test func `the table lists exactly the options of curl`() async throws {
        let help = try await Tool.run([], preparation: "curl --version | head -1; curl --help all; exit 0")
        let lines = help.text.split(separator: "\n")
        try #require(lines.first?.hasPrefix("curl 7.88.") == true, "the table is of curl 7.88")
        let curl = lines.compactMap { $0.firstMatch(of: /^ *(?:-(.), +)?--(\S+)( [<\[])?/) }.map {
            "\($0.1 ?? "") \($0.2) \($0.3 != nil)"
        }
        #expect(try Set(rows().map { "\($0.short ?? "") \($0.name) \($0.takesValue)" }) == Set(curl))
        #expect(try rows().count == curl.count && curl.count > 200)
        #expect(try rows().allSatisfy { $0.kind == "same" || ["otherwise", "no"].contains($0.kind) && !$0.why.isEmpty })
    }

    @Test func `the parser accepts every option that the table marks as the same in curl and the tool`() async throws {
        let (options, flags) = try await names(["get"])
        // These options are rewritten before parsing.
        let words = ["config", "next", "socks4", "socks4a", "socks5", "socks5-hostname", "form-string", "help", "version"]
        for row in try rows() where row.kind == "same" && !words.contains(row.name) {
            #expect((row.takesValue ? options : flags).contains("--\(row.name)"), "--\(row.name)")
        }
        for row in try rows() where row.kind == "no" { #expect(!options.union(flags).contains("--\(row.name)"), "--\(row.name)") }
        let folder = try TemporaryDirectory()
        try folder.write(Array("silent".utf8), to: "config")
        func check(_ words: [String]) async throws {
            // An error about an invalid value is acceptable here, but an error about an unknown option is not.
            let result = try await Tool.run(words + ["data:,x"], in: folder)
            #expect(!result.errors.contains("nknown option") && !result.errors.contains("Missing"), "\(words): \(result.errors)")
        }
        let letters = try rows().filter { $0.kind == "same" && !words.contains($0.name) }
        try await check(["-" + letters.compactMap { $0.takesValue ? nil : $0.short }.joined()])
        try await check(letters.filter(\.takesValue).compactMap(\.short).flatMap { ["-\($0)", "1"] })
        for row in try rows() where row.kind == "same" && words.contains(row.name) {
            let value = row.takesValue && row.name != "help" ? [row.name == "config" ? "config" : "a=1"] : []
            for spelling in ["--\(row.name)"] + (row.short.map { ["-\($0)"] } ?? []) { try await check([spelling] + value) }
        }
    }

    @Test func `every option that takes a value is in the list of those whose values may begin with a dash`() async throws {
        let file = Self.root.appendingPathComponent("Sources/urlsession/Commands/CommandLineWords.swift")
        let source = try String(contentsOf: file, encoding: .utf8)
        let list = try #require(source.firstMatch(of: /longOptions: Set<String> = \[(.*?)\]/.dotMatchesNewlines())).1
        let listed = Set(list.matches(of: /"([^"]+)"/).map { "--\($0.1)" })
        let options = try await names(["get", "download", "upload"]).options.filter { $0.hasPrefix("--") }
        #expect(listed.symmetricDifference(options.subtracting(["--url"])).isEmpty)
        #expect(try await Tool.run(["--data", "--x", "-A", "-y", "data:,x"]).text == "x")
    }
}
