//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing

/// A suite of this test program in a process of its own, for libraries that read their environment once.
enum OwnProcess {
    private static let variable = "URL_LOADING_OWN_PROCESS"

    /// Whether this process was made for the suite, which is enabled by nothing else.
    static func isHere(_ suite: String) -> Bool { ProcessInfo.processInfo.environment[variable] == suite }

    /// Runs the suite, and fails with all it wrote if it fails or finds nothing to do.
    ///
    /// The wrapper is a command that is given the program to run.
    static func run(_ suite: String, environment: [String: String], wrapper: [String] = []) throws {
        let directory = try TemporaryDirectory()
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        var all = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        all[variable] = suite
        let text = try ServerProcess.run(
            ServerProcess.Order(
                wrapper + [program, "--testing-library", "swift-testing", "--no-parallel", "--filter", "\(suite)/"],
                environment: all, output: directory.file("output")
            )
        )
        #expect(text.contains("Suite \(suite) passed"), "\(text)")
    }
}
