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
import URLLoading

/// Bytes of a server that a load would have refused do not reach it by resume data.
@Suite(.timeLimit(.minutes(1)))
struct ResumeTrustTests {
    private static let content = ScriptedFile.pattern(600_000)
    private static let cut = 200_000
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Loses a download whose server the app vouches for, and resumes it in another session.
    private func resumed(
        _ later: TestCertificates.Identity, _ delegate: (any URLSessionDelegate)?, roots: [Data]
    ) async throws -> (bytes: Data, ranges: [String?]) {
        let file = ScriptedFile(Self.content)
        let server = try await ScriptedServer.start(identity: certificates.selfSigned, laterIdentities: [later]) {
            $0.order == 0 ? file.reply(to: $0, cutAfter: Self.cut) : file.reply(to: $0)
        }
        defer { Task { try await server.close() } }
        var resumeData: Data?
        try await withSession(delegate: SessionJudge(.trusting)) { session in
            let error = await expectFailure(.networkConnectionLost) { try await session.download(from: server.url()) }
            resumeData = error?.downloadTaskResumeData
        }
        var bytes = Data()
        try await withSession(delegate: delegate) {
            $0.tlsTrustRoots = roots
        } test: { session in
            let (location, _) = try await session.download(resumeFrom: try #require(resumeData))
            bytes = try Data(contentsOf: location)
            try FileManager.default.removeItem(at: location)
        }
        return (bytes, server.requests.map { $0.header("Range") })
    }

    @Test func `what came from a server that the app vouched for is not continued by one that the roots vouch for`() async throws
    {
        let (bytes, ranges) = try await resumed(certificates.valid, nil, roots: [certificates.root])
        #expect(bytes == Data(Self.content))
        #expect(ranges == [nil, "bytes=\(Self.cut)-", nil])
    }

    @Test func `it is continued where the app vouches for the server again`() async throws {
        let (bytes, ranges) = try await resumed(certificates.selfSigned, SessionJudge(.trusting), roots: [])
        #expect(bytes == Data(Self.content))
        #expect(ranges == [nil, "bytes=\(Self.cut)-"])
    }
}
