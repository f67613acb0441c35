// SPDX-License-Identifier: Apache-2.0

package import Foundation

/// Runs a suite of this test program in a separate process, to test values that a program reads only once, or to trace its files.
package enum SeparateProcess {
    private static let variable = "URL_LOADING_OWN_PROCESS"

    /// Whether this process was started for the suite; the suite is only enabled in such a process.
    package static func isCurrentSuite(_ suite: String) -> Bool { ProcessInfo.processInfo.environment[variable] == suite }

    package static func executable() throws -> URL {
        URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    }

    /// The arguments to run a suite, and the environment variables that it requires.
    package static func command(_ suite: String, by executable: URL) -> (arguments: [String], variables: [String: String]) {
        (
            [executable.path, "--testing-library", "swift-testing", "--no-parallel", "--filter", "\(suite)/"],
            [variable: suite]
        )
    }

    /// Runs the suite; throws its output if a test fails or if there are no tests.
    ///
    /// - Parameters:
    ///   - suite: The name of the suite.
    ///   - executable: The program to run, which is a copy of this program; nil means this program.
    ///   - environment: Changes to this process's environment; nil removes a variable.
    ///   - wrapper: A command that runs the program in the arguments that follow it.
    /// - Returns: The output.
    /// - Throws: The output of a failed run.
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
            ServerProcess.Command(
                wrapper + command.arguments, environment: variables.merging(command.variables) { $1 },
                output: directory.file("output")))
        guard text.contains("Suite \(suite) passed") else {
            throw ServerProcess.Failure(description: "\(suite) did not run: \(text.suffix(2000))")
        }
        return text
    }
}
