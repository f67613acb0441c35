// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A built program of Examples/, run the way a user runs it.
enum ExampleProgram {
    struct Outcome {
        var code: Int32
        var output: String
    }

    struct NotBuilt: Error {
        let name: String
    }

    /// The path of a program, which the build puts next to the test bundle.
    private static func path(of name: String) throws -> String {
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        for start in [bundle] + CommandLine.arguments {
            let path = URL(fileURLWithPath: start).deletingLastPathComponent().appendingPathComponent(name).path
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        throw NotBuilt(name: name)
    }

    static func run(
        _ name: String, _ arguments: [String], in folder: TemporaryDirectory, environment: [String: String] = [:]
    ) async throws -> Outcome {
        let output = folder.file("output-\(UUID().uuidString)")
        let variables = [
            "XDG_DATA_HOME": folder.path + "/data", "XDG_CACHE_HOME": folder.path + "/cache", "TMPDIR": folder.path,
        ].merging(SanitizerEnvironment.variables) { $1 }
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [try path(of: name)] + arguments, environment: variables.merging(environment) { $1 }, in: folder.url,
                output: .file(output)))
        let code = try await process.end()
        return Outcome(code: code, output: String(decoding: try Data(contentsOf: output), as: UTF8.self))
    }
}
