// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Runs a suite of this test program in its own process, with its own home, and traces the process's files.
///
/// The suite must be enabled only if ``SeparateProcess/isCurrentSuite(_:)`` is true for it.
enum TracedRun {
    struct Result: Sendable {
        let output: String
        let lines: [FileTrace.Line]

        /// The calls that changed something, except on devices and in virtual file systems.
        var changes: [FileTrace.Line] {
            lines.filter { line in line.changes && !["/dev", "/proc", "/sys"].contains { line.isBelow($0) } }
        }
    }

    /// Runs the suite; the home's folders are `data`, `cache`, `state` and `tmp`, of which only `tmp` exists at first.
    static func run(_ suite: String, home: TemporaryDirectory, environment: [String: String] = [:]) async throws -> Result {
        let trace = try FileTrace()
        try FileManager.default.createDirectory(at: home.file("tmp"), withIntermediateDirectories: true)
        let variables = [
            "HOME": home.path, "TMPDIR": home.path + "/tmp", "XDG_DATA_HOME": home.path + "/data",
            "XDG_CACHE_HOME": home.path + "/cache", "XDG_STATE_HOME": home.path + "/state",
        ]
        .merging(trace.environment) { $1 }
        .merging(environment) { $1 }
        let output = try await SeparateProcess.run(suite, environment: variables)
        return Result(output: output, lines: try trace.takeLines())
    }
}
