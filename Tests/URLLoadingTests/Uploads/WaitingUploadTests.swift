//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Glibc
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Uploads that wait for a connection, by the hundred.
@Suite(.timeLimit(.minutes(1)))
struct WaitingUploadTests {
    /// How many of the process's descriptors are of a file.
    private static func openCount(of file: URL) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == file.path }
    }

    @Test func `uploads that wait do not keep their files open`() async throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(10_000)
        let file = try directory.write(content, to: "body").resolvingSymlinksInPath()
        let count = 300
        let most = Mutex(0)
        // Of the test itself: what is counted is found.
        let own = try FileHandle(forReadingFrom: file)
        defer { try? own.close() }
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { request in
                let open = Self.openCount(of: file)
                most.withLock { $0 = max($0, open) }
                return .ok("\(request.bodyLength)")
            }
        ) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Data.self) { group in
                for _ in 0..<count {
                    group.addTask { try await session.upload(for: URLRequest(server.url(), method: "PUT"), fromFile: file).0 }
                }
                for try await answer in group { #expect(answer == Data("10000".utf8)) }
            }
            #expect(server.requests.count == count && server.requests.allSatisfy { $0.body == content })
        }
        // The test's own, and one is sent at a time; some more may just be looked at by the threads for files.
        let found = most.withLock { $0 }
        #expect(1..<50 ~= found, "\(found)")
    }
}
