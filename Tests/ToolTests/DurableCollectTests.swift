// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// A background download is durable under its final name before the daemon forgets it.
@Suite(.timeLimit(.minutes(3)))
struct DurableCollectTests {
    /// Selects whether the file's content or its name cannot be made durable.
    enum Lost: String, Sendable, CaseIterable { case file, name }

    @Test(arguments: Lost.allCases, [false, true]) func `a download that cannot be made durable is kept for the next run`(
        lost: Lost, isForced: Bool
    ) async throws {
        let shim = try FaultShim()
        try await withBackgroundTool { (place) async throws in
            try await withScriptedServer(reply: { _ in .ok("whole") }) { (server) async throws in
                let folder =
                    switch lost {
                    case .file: place.home.file("state/urlloading/background/spool/1/done-1")
                    case .name: place.folder.url
                    }
                let arguments = ["download", "--wait", "-o", "f"] + (isForced ? ["--force"] : [])
                let first = try await Tool.run(
                    ["background"] + arguments + [server.url("/f").absoluteString], in: place.folder, home: place.home,
                    environment: place.environment.merging(
                        shim.environment(.init(kind: "sync", at: 1, error: EIO), in: folder)
                    ) { $1 })
                #expect(shim.happened())
                #expect(first.code == 23 && first.errors.contains("keeps the file"), "\(first.errors)")
                // The next command starts a new daemon, whose system calls do not fail.
                place.killDaemon()
                _ = try await place.settled()
                #expect(try String(contentsOf: place.folder.file("f"), encoding: .utf8) == "whole")
                #expect(try place.folder.names.filter { $0 != "f.error" } == ["f"])
                #expect(try await place.list().isEmpty)
                #expect(server.requests.count == 1)
            }
        }
    }
}
