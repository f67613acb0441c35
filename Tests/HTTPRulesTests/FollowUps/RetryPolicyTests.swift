// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct RetryPolicyTests {
    private func mayRetry(
        _ method: String = "GET", reused: Bool = true, received: Bool = false, replayable: Bool = true, attempts: Int = 1
    ) -> Bool {
        RetryPolicy.mayRetry(
            method: method,
            connectionWasReused: reused,
            receivedAnyBytes: received,
            bodyIsReplayable: replayable,
            attempts: attempts
        )
    }

    @Test func `an idempotent request on a stale connection is retried once`() {
        // RFC 9110, section 9.2.2.
        #expect(mayRetry(attempts: 1))
        #expect(!mayRetry(attempts: 2))
    }

    @Test func `only idempotent methods are retried`() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND"] { #expect(mayRetry(method), "\(method)") }
        for method in ["POST", "PATCH", "CONNECT", "get", "X-OWN", ""] { #expect(!mayRetry(method), "\(method)") }
    }

    @Test func `a request is not retried if the server may have processed it, or if its body cannot be sent again`() {
        #expect(!mayRetry(reused: false))
        #expect(!mayRetry(received: true))
        #expect(!mayRetry("PUT", replayable: false))
    }

    // MARK: Refusals

    private typealias Refusal = RetryEvidence.Refusal

    private func count(_ refusals: [Refusal]) -> RefusalCount {
        var count = RefusalCount()
        for refusal in refusals { count.count(refusal) }
        return count
    }

    @Test func `a request refused by closing connections is retried without limit`() {
        let refusal = Refusal(endsConnection: true)
        let count = count(Array(repeating: refusal, count: 1_000))
        #expect(count.allowsRetry && count.pause(jitter: 1) == 0)
        #expect(
            RetryPolicy.mayRetry(
                method: "POST", connectionWasReused: false, receivedAnyBytes: false, bodyIsReplayable: true, attempts: 1,
                evidence: .notProcessed(refusal), refusals: count))
    }

    @Test func `a request is not retried after its origin has been given up`() {
        let last = Refusal(endsConnection: true, isLast: true)
        #expect(!count([last]).allowsRetry)
        #expect(
            !RetryPolicy.mayRetry(
                method: "GET", connectionWasReused: false, receivedAnyBytes: false, bodyIsReplayable: true, attempts: 1,
                evidence: .notProcessed(last), refusals: count([last])))
    }

    @Test func `five connections in a row without a response are the limit`() {
        var connections = FruitlessConnections()
        #expect((1...5).map { _ in connections.add() } == [false, false, false, false, true])
        // The count starts again.
        #expect((1...5).map { _ in connections.add() } == [false, false, false, false, true])
        for _ in 1...4 { _ = connections.add() }
        connections.reset()
        #expect((1...5).map { _ in connections.add() } == [false, false, false, false, true])
    }

    @Test func `an open connection may refuse a request ten times in a row`() {
        let refused = Refusal(endsConnection: false)
        #expect(count(Array(repeating: refused, count: 9)).allowsRetry)
        #expect(!count(Array(repeating: refused, count: 10)).allowsRetry)
    }

    @Test func `pauses double up to ten seconds, and are twice as long after ENHANCE_YOUR_CALM`() {
        let refused = Refusal(endsConnection: false)
        let pauses = (1...9).map { count(Array(repeating: refused, count: $0)).pause(jitter: 1) }
        for (pause, expected) in zip(pauses, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]) {
            #expect(abs(pause - expected) < 1e-9)
        }
        // Requests that were refused together are not retried at the same time.
        #expect(count([refused]).pause(jitter: 0) == 0.05)
        var connections = FruitlessConnections()
        #expect(connections.pause(asksForCalm: false, jitter: 1) == 0)
        #expect(connections.pause(asksForCalm: true, jitter: 1) == 0.2)
        for expected in [0.1, 0.2, 0.4, 0.8] {
            _ = connections.add()
            #expect(abs(connections.pause(asksForCalm: false, jitter: 1) - expected) < 1e-9)
            #expect(abs(connections.pause(asksForCalm: true, jitter: 1) - 2 * expected) < 1e-9)
        }
    }
}
