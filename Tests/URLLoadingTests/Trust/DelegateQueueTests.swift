// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Tasks with delegates of their own that wait for one server, until a handshake has to ask a delegate.
@Suite(.timeLimit(.minutes(1)))
struct DelegateQueueTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a server for whose first connection the roots vouch, and not for the next ones.
    ///
    /// The first connection is busy until the test opens the gate, and then closed.
    private func withBusyServer(
        _ delegate: (any URLSessionDelegate)? = nil, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        let server = try await ScriptedServer.start(
            identity: certificates.valid, laterIdentities: [certificates.selfSigned],
            reply: { request in
                ScriptedReply([.gate("end")] + ScriptedReply.ok(request.path, [("Connection", "close")]).effects)
            })
        try await withSession(delegate: delegate) {
            $0.tlsTrustRoots = [certificates.root]
            $0.httpMaximumConnectionsPerHost = 1
            $0.timeoutIntervalForResource = 40
        } test: { (session) async throws in
            let first = session.dataTask(with: server.url("/first")) { _, _, _ in }
            first.delegate = TaskJudge(.trusting)
            first.resume()
            try await server.reached("end")
            try await test(server, session)
        }
        try await server.close()
    }

    @Test func `thousands of delegates leave a queue that is closed to them at once`() async throws {
        let judge = Judge.silent
        try await withBusyServer(TaskJudge(judge)) { (server, session) async throws in
            let urgent = session.dataTask(with: server.url("/urgent")) { _, _, _ in }
            urgent.priority = 1
            let others = (0..<4_000).map { _ in
                let task = session.dataTask(with: server.url("/other")) { _, _, _ in }
                task.delegate = TaskJudge(.silent)
                return task
            }
            for task in [urgent] + others { task.resume() }
            // Tasks begin in the order in which they are resumed.
            try await withScriptedServer(reply: { _ in .ok() }) { (other) async throws in
                _ = try await session.data(from: other.url())
            }
            server.open("end")
            let question = try await judge.question(0)
            #expect(question.task == urgent.taskIdentifier)
        }
    }

    @Test func `a host whose queue was forgotten gets a new one`() async throws {
        let judge = Judge.silent
        let refusing = try RefusingPort()
        try await withBusyServer { (server, session) async throws in
            let task = session.dataTask(with: server.url("/own")) { _, _, _ in }
            task.delegate = TaskJudge(judge)
            task.resume()
            // With the server's, these are as many queues as are kept without looking for unused ones.
            for number in 1...255 {
                await expectFailure(.cannotConnectToHost) {
                    try await session.data(from: try url("127.1.0.\(number)", refusing))
                }
            }
            server.open("end")
            // The question belongs to a queue of its own, for which unused ones are forgotten.
            _ = try await judge.question(0)
            await expectFailure(.cannotConnectToHost) { try await session.data(from: try url("127.1.0.255", refusing)) }
        }
    }

    private func url(_ host: String, _ port: RefusingPort) throws -> URL {
        try #require(URL(string: "https://\(host):\(port.number)/"))
    }
}
