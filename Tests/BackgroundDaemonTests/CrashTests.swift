// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Runs `Scripts/crash-test` for a short time; the script describes what it verifies.
@Suite struct CrashTests {
    @Test func `nothing is lost, mixed up, told twice or left behind if the daemon and programs are killed at random`()
        async throws
    {
        let folder = try TemporaryDirectory()
        let build = try SeparateProcess.executable().deletingLastPathComponent().path
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        // If the script finds a fault, it exits with 1, and this call throws.
        let text = try await ServerProcess.run(
            ServerProcess.Command(
                ["/usr/bin/env", "python3", root.appending(path: "Scripts/crash-test").path],
                environment: ["KILLS": "20", "BUILD": build, "LIMIT": "120", "POWER": "0"], output: folder.file("output")))
        #expect(text.contains("kills of a daemon"))
    }
}
