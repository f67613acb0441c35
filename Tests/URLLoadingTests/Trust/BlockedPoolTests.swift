// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// An app that blocks every thread of Swift's cooperative pool.
///
/// Runs in a separate process, where no other test needs the pool.
@Suite(.timeLimit(.minutes(2))) struct BlockedPoolTests {
    @Test func `loads do not need the threads of the cooperative pool`() async throws {
        try await SeparateProcess.run("WithBlockedPoolTests", environment: [:])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("WithBlockedPoolTests")), .serialized, .timeLimit(.minutes(1)))
struct WithBlockedPoolTests {
    private final class Answer: Sendable {
        let text = Mutex<String?>(nil)
        let isThere = DispatchSemaphore(value: 0)
    }

    /// Loads while tasks occupy every thread of the cooperative pool, including the calling thread.
    ///
    /// - Returns: The text, and whether the pool was blocked until the load ended.
    private func load(_ url: URL, by session: URLSession) -> (text: String?, wasBlocked: Bool) {
        let gate = DispatchSemaphore(value: 0)
        let count = 4 * ProcessInfo.processInfo.activeProcessorCount + 64
        for _ in 0..<count { Task { Self.block(gate) } }
        let probe = Probe()
        Task { probe.run() }
        let answer = Answer()
        let task = session.dataTask(with: url) { data, _, error in
            answer.text.withLock { $0 = data.map { String(decoding: $0, as: UTF8.self) } ?? "\(String(describing: error))" }
            answer.isThere.signal()
        }
        task.resume()
        // The wait has a timeout, so that a load that does need the pool fails instead of hanging.
        _ = answer.isThere.wait(timeout: .now() + 20)
        let outcome = (answer.text.withLock { $0 }, !probe.hasRun)
        task.cancel()
        for _ in 0..<count { gate.signal() }
        return outcome
    }

    private final class Probe: Sendable {
        private let state = Mutex(false)
        var hasRun: Bool { state.withLock { $0 } }
        func run() { state.withLock { $0 = true } }
    }

    private static func block(_ gate: DispatchSemaphore) { gate.wait() }

    @Test(arguments: [false, true])
    func `a load completes while every thread of the pool is blocked`(isSecure: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: isSecure ? certificates.valid : nil, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { _ in .ok("there") }
        ) { (server, session) async throws in
            let (text, wasBlocked) = load(server.url(), by: session)
            #expect(text == "there")
            #expect(wasBlocked)
        }
    }
}
