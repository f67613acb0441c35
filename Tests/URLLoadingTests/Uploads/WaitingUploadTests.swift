// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Hundreds of uploads that wait for a connection.
@Suite(.timeLimit(.minutes(1)))
struct WaitingUploadTests {
    /// How many file descriptors of the process refer to a file.
    private static func openCount(of file: URL) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == file.path }
    }

    @Test func `queued uploads do not keep their files open`() async throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(10_000)
        let file = try directory.write(content, to: "body").resolvingSymlinksInPath()
        let count = 300
        let most = Mutex(0)
        // The test's own descriptor shows that the count works.
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
        // The open descriptors are the test's own, that of the upload being sent, and a few that file threads may be examining.
        let found = most.withLock { $0 }
        #expect(1..<50 ~= found, "\(found)")
    }
}
