// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// The built program `urlsession`, run as users run it.
final class Tool: Sendable {
    struct Result: Sendable {
        var code: Int32
        var output: Data
        var errors: String
        var text: String { String(decoding: output, as: UTF8.self) }
    }

    struct NotBuilt: Error {
        let path: String
    }

    private struct Progress: Sendable {
        var output = Data()
        var errors = Data()
        var openPipes = 2
        var errorText: String { String(decoding: errors, as: UTF8.self) }
    }

    private let progress = Watched(Progress())
    private let process: ServerProcess
    /// Holds the tool's cookies and responses, separate from those of the user.
    private let home: TemporaryDirectory

    /// Returns the path of the tool, which the build puts next to the test bundle.
    private static func path() throws -> String {
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        for start in [bundle] + CommandLine.arguments {
            let path = URL(fileURLWithPath: start).deletingLastPathComponent().appendingPathComponent("urlsession").path
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        throw NotBuilt(path: bundle)
    }

    /// Starts the tool in a folder.
    ///
    /// - Parameters:
    ///   - arguments: The command line.
    ///   - folder: The tool's working directory.
    ///   - home: The folder for cookies and responses; nil for a new folder.
    ///   - input: The tool's standard input; nil for none.
    ///   - environment: Variables in addition to this process's.
    ///   - preparation: Shell commands that the tool's process executes before it becomes the tool.
    /// - Throws: If the tool cannot be started.
    init(
        _ arguments: [String], in folder: TemporaryDirectory, home: TemporaryDirectory? = nil, input: URL? = nil,
        environment: [String: String] = [:], preparation: String? = nil
    ) throws {
        let home = try home ?? TemporaryDirectory()
        self.home = home
        let path = try Self.path()
        let shell = preparation.map { ["/bin/sh", "-c", $0 + #"; exec "$0" "$@""#] } ?? []
        let variables = ProcessInfo.processInfo.environment
            .merging(["XDG_DATA_HOME": home.path + "/data", "XDG_CACHE_HOME": home.path + "/cache"]) { $1 }
            .merging(environment) { $1 }
        let progress = progress
        func gathered(in part: @escaping @Sendable (inout Progress, Data) -> Void) -> ServerProcess.Output {
            .pipe { data in
                progress.change { progress in
                    part(&progress, data)
                    if data.isEmpty { progress.openPipes -= 1 }
                }
            }
        }
        process = try ServerProcess.start(
            ServerProcess.Command(
                shell + [path] + arguments, environment: variables, in: folder.url, input: input,
                output: gathered { $0.output += $1 }, errors: gathered { $0.errors += $1 }))
    }

    /// Interrupts the tool, as Ctrl-C does.
    func interrupt() {
        process.signal(SIGINT)
    }

    /// Kills the tool, as `kill -9` does.
    func kill() {
        process.signal(SIGKILL)
    }

    /// Waits until standard error contains `text`, or the tool's output has ended.
    func shown(_ text: String) async throws {
        try await progress.value { $0.errorText.contains(text) || $0.openPipes == 0 ? () : nil }
    }

    /// Waits for the end of the tool; if the test's time limit is exceeded, the tool is stopped.
    func result() async throws -> Result {
        let code = try await process.end()
        return try await progress.value { progress in
            guard progress.openPipes == 0 else { return nil }
            return Result(code: code, output: progress.output, errors: progress.errorText)
        }
    }

    static func run(
        _ arguments: [String], in folder: TemporaryDirectory? = nil, home: TemporaryDirectory? = nil, input: URL? = nil,
        environment: [String: String] = [:], preparation: String? = nil
    ) async throws -> Result {
        let folder = try folder ?? TemporaryDirectory()
        let tool = try Tool(
            arguments, in: folder, home: home, input: input, environment: environment, preparation: preparation
        )
        return try await tool.result()
    }
}
