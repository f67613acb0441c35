//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import Foundation

/// A suite of this test program in a process of its own: for what a program reads once, and to trace its files.
package enum OwnProcess {
    private static let variable = "URL_LOADING_OWN_PROCESS"

    /// Whether this process was made for the suite, which is enabled by nothing else.
    package static func isHere(_ suite: String) -> Bool { ProcessInfo.processInfo.environment[variable] == suite }

    package static func executable() throws -> URL {
        URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    }

    /// How a process of the suite is started: its arguments, and what its environment must have.
    package static func command(_ suite: String, by executable: URL) -> (arguments: [String], variables: [String: String]) {
        (
            [executable.path, "--testing-library", "swift-testing", "--no-parallel", "--filter", "\(suite)/"],
            [variable: suite]
        )
    }

    /// Runs the suite and says what it wrote; fails with that if it fails or finds nothing to do.
    ///
    /// - Parameters:
    ///   - suite: Its name.
    ///   - executable: A copy of this program, or this one if nil.
    ///   - environment: What it has besides, or in place of, this process's; nil for what it has not.
    ///   - wrapper: A command that is given the program to run.
    /// - Returns: What it wrote.
    /// - Throws: What it wrote, where it failed.
    @discardableResult
    package static func run(
        _ suite: String, by executable: URL? = nil, environment: [String: String?], wrapper: [String] = []
    ) async throws -> String {
        let directory = try TemporaryDirectory()
        let program = try executable ?? Self.executable()
        var variables = ProcessInfo.processInfo.environment
        for (name, value) in environment { variables[name] = value }
        let command = command(suite, by: program)
        let text = try await ServerProcess.run(
            ServerProcess.Order(
                wrapper + command.arguments, environment: variables.merging(command.variables) { $1 },
                output: directory.file("output")))
        guard text.contains("Suite \(suite) passed") else {
            throw ServerProcess.Failure(description: "\(suite) was not run: \(text.suffix(2000))")
        }
        return text
    }
}
