//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a server said of a request that it did not answer.
package enum RetryEvidence: Sendable, Hashable {
    /// Nothing that could be relied on.
    case none
    /// It answered with an error of the one request, on a connection that stands: to send it again would bring the same.
    case failedAlone
    /// It has not begun to work on the request, which may be sent again whatever it does (RFC 9113, section 8.7).
    case notProcessed(Refusal)
    /// The same, and it wants HTTP/1.1 (RFC 9113, section 7).
    case wantsHTTP1

    /// How a connection refused a request.
    package struct Refusal: Sendable, Hashable {
        /// Whether the connection takes no more requests at all.
        package var endsConnection: Bool
        /// Whether it has answered others, or is working on them.
        package var connectionWorks: Bool
        /// The server was asked for too much (ENHANCE_YOUR_CALM).
        package var asksForCalm: Bool

        package init(endsConnection: Bool, connectionWorks: Bool, asksForCalm: Bool = false) {
            self.endsConnection = endsConnection
            self.connectionWorks = connectionWorks
            self.asksForCalm = asksForCalm
        }
    }

    /// Whether the server has not begun to work on the request.
    package var saysUnprocessed: Bool {
        switch self {
        case .notProcessed, .wantsHTTP1: true
        case .none, .failedAlone: false
        }
    }
}

/// How often a request was refused, one time after the other, and what follows from that.
///
/// To be refused by a connection that serves others is no failure: a server may take a hundred requests of each. Only who is refused by
/// connections that serve nobody, or again and again by one that stands, is told of it.
package struct RefusalCount: Sendable, Hashable {
    /// How many connections in a row may have worked on nothing.
    package static let mostFruitless = 5
    /// How often in a row a connection that stands may refuse it.
    package static let mostStreams = 10
    private static let firstPause = 0.1
    private static let longestPause = 10.0

    private var fruitless = 0
    private var streams = 0

    package init() {}

    package mutating func count(_ refusal: RetryEvidence.Refusal) {
        fruitless = refusal.connectionWorks ? 0 : fruitless + 1
        if !refusal.endsConnection { streams += 1 }
    }

    /// Whether the request may be sent once more.
    package var mayGoOn: Bool { fruitless < Self.mostFruitless && streams < Self.mostStreams }

    /// How long to wait before that, in seconds: longer each time, and not the same for all.
    ///
    /// - Parameters:
    ///   - refusal: The last one, which was counted.
    ///   - jitter: From 0 to 1.
    /// - Returns: Zero where the next connection may do better at once.
    package func pause(after refusal: RetryEvidence.Refusal, jitter: Double) -> Double {
        let times = max(fruitless, streams, refusal.asksForCalm ? 1 : 0)
        guard times > 0 else { return 0 }
        var pause = Self.firstPause * (refusal.asksForCalm ? 2 : 1)
        for _ in 1..<times where pause < Self.longestPause { pause *= 2 }
        return min(pause, Self.longestPause) * (1 + min(max(jitter, 0), 1)) / 2
    }
}

/// Decides whether a request whose connection broke is sent again without asking anybody (RFC 9110, section 9.2.2; RFC 9112,
/// section 9.3.1).
package enum RetryPolicy {
    /// How often one request is sent in all: the second time over a new connection, whose failure is an answer.
    package static let attempts = 2
    /// How often one is sent to a server that wants HTTP/1.1.
    private static let versionAttempts = 5

    /// Decides on one failure.
    ///
    /// - Parameters:
    ///   - method: The method of the request.
    ///   - connectionWasReused: Whether another request went over the connection before.
    ///   - receivedAnyBytes: Whether the server began to answer.
    ///   - bodyIsReplayable: Whether the body can be read again; true where there is none.
    ///   - attempts: How often the request was sent, the failed time included, and those not at which it was refused.
    ///   - evidence: What the server said of it.
    ///   - refusals: How often it was refused in a row, the last time included.
    /// - Returns: Whether to send it again.
    package static func mayRetry(
        method: String,
        connectionWasReused: Bool,
        receivedAnyBytes: Bool,
        bodyIsReplayable: Bool,
        attempts: Int,
        evidence: RetryEvidence = .none,
        refusals: RefusalCount = RefusalCount()
    ) -> Bool {
        switch evidence {
        case .none: break
        case .failedAlone: return false
        case .notProcessed: return bodyIsReplayable && refusals.mayGoOn
        case .wantsHTTP1: return bodyIsReplayable && attempts < Self.versionAttempts
        }
        return connectionWasReused && !receivedAnyBytes && bodyIsReplayable && attempts < Self.attempts && isIdempotent(method)
    }

    /// RFC 9110, section 9.2.2, and the registry's other safe methods.
    ///
    /// Methods are case-sensitive.
    package static func isIdempotent(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH", "QUERY": true
        default: false
        }
    }
}
