// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// What shell users expect of any tool: it ends quietly when its pipe is closed, and file names are completed.
@Suite(.timeLimit(.minutes(3)))
struct ShellTests {
    /// Runs the tool with its output piped into the command `reader`, and returns how the tool ended.
    private func piped(
        _ arguments: [String], into reader: String, home: TemporaryDirectory? = nil
    ) async throws -> Tool.Result {
        let words = arguments.map { "'\($0)'" }.joined(separator: " ")
        // This needs bash, because a POSIX shell does not report how the first command of a pipe ended.
        let script =
            #"exec /bin/bash -c '"$1" \#(words.replacingOccurrences(of: "'", with: "")) | \#(reader); exit ${PIPESTATUS[0]}' bash "$0""#
        return try await Tool.run([], home: home, preparation: script)
    }

    @Test func `a list ends quietly when its pipe is closed`() async throws {
        let home = try TemporaryDirectory()
        let jar = try TemporaryDirectory()
        // The output exceeds the capacity of a pipe.
        let lines = (0..<2_900).map {
            "h\($0).example\tFALSE\t/\tFALSE\t4000000000\tname\($0)\t" + String(repeating: "v", count: 200)
        }
        try jar.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: "jar.txt")
        #expect(try await Tool.run(["cookies", "import", jar.path + "/jar.txt"], home: home).code == 0)
        for reader in ["head -n 1 >/dev/null", "true"] {
            let result = try await piped(["cookies", "list"], into: reader, home: home)
            #expect(result.errors == "", "\(reader)")
            #expect(result.code == 141, "\(reader): \(result.code)")
        }
    }

    @Test func `a response that cannot be written to the pipe is an error`() async throws {
        try await withScriptedServer(reply: { _ in .ok(String(repeating: "a", count: 1 << 20)) }) { server in
            let result = try await piped(["get", server.url("/a").absoluteString], into: "true")
            #expect(result.code == 23)
            #expect(result.errors.contains("broken pipe") || result.errors.contains("Broken pipe"), "\(result.errors)")
        }
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `shells complete file names after options that name a file`(_ shell: String) async throws {
        let script = try await Tool.run(["--generate-completion-script", shell])
        #expect(script.code == 0)
        // The text in each shell's script that requests the completion of file names.
        let mark = ["bash": "__urlsession_add_completions -f", "zsh": ":_files", "fish": "-rF"][shell] ?? ""
        let lines = script.text.split(separator: "\n").map(String.init)
        for option in ["--output", "--cacert", "--cert", "--key", "--p12", "--unix-socket"] {
            let spelt = shell == "fish" ? "-l '\(option.dropFirst(2))'" : option
            let found = lines.indices.contains { index in
                lines[index].contains(spelt) && (lines[index] + (index + 1 < lines.count ? lines[index + 1] : "")).contains(mark)
            }
            #expect(found, "\(option)")
        }
    }
}
