// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Uploads of files whose content is made when it is read, so that their size is not its length.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct MadeContentTests {
    /// A file without a size, and one with a nominal size of 4096 bytes.
    private static let paths = ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"].filter {
        FileManager.default.isReadableFile(atPath: $0)
    }

    private static func content(_ path: String) throws -> Data {
        try #require(try FileHandle(forReadingFrom: URL(fileURLWithPath: path)).readToEnd())
    }

    @Test(arguments: paths, [true, false]) func `the whole content is sent`(path: String, resumable: Bool) async throws {
        try await withScenario(
            configure: { $0.usesResumableUploads = resumable }, reply: { .ok($0.body) }
        ) { (server, session) async throws in
            let request = URLRequest(server.url(), method: "PUT")
            let (data, _) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path))
            let content = try Self.content(path)
            #expect(data == content && !content.isEmpty)
            #expect(server.requests[0].header("Content-Length") == "\(content.count)")
        }
    }

    @Test(arguments: paths) func `the content is sent again after a challenge and a redirect`(path: String) async throws {
        let gate = DigestGate(DigestGate.Rules(qop: "auth-int"))
        let script = gate.script { $0.path == "/1" ? .redirect(307, to: "/2") : .ok($0.body) }
        try await withScenario(
            delegate: TaskInterviewer(Interview(user: "Mufasa", password: "Circle of Life")), reply: script
        ) { (server, session) async throws in
            for _ in 0..<2 {
                let request = URLRequest(server.url("/1"), method: "PUT")
                let (data, _) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path))
                #expect(try data == Self.content(path))
            }
            #expect(gate.problems == [])
        }
    }
}
