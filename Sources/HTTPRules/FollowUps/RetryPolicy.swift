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
        /// Whether there were so many such connections that the origin is given up (``FruitlessConnections``).
        package var isLast: Bool

        package init(endsConnection: Bool, isLast: Bool = false) {
            self.endsConnection = endsConnection
            self.isLast = isLast
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
/// To be refused by a connection that takes no more is no failure: a server may take a hundred requests of each. Only a request that a
/// connection refuses again and again and stands, or whose origin is given up, fails.
package struct RefusalCount: Sendable, Hashable {
    /// How often in a row a connection that stands may refuse it.
    package static let most = 10

    private var count = 0
    private var isOver = false
    private var isForConnection = false

    package init() {}

    package mutating func count(_ refusal: RetryEvidence.Refusal) {
        isForConnection = refusal.endsConnection
        if !refusal.endsConnection { count += 1 }
        isOver = refusal.isLast
    }

    /// Whether the request may be sent once more.
    package var mayGoOn: Bool { !isOver && count < Self.most }

    /// How long to wait before that, in seconds: longer each time, and not the same for all.
    ///
    /// - Parameter jitter: From 0 to 1.
    /// - Returns: Zero where it was a connection that took no more: another may be dialled as soon as its origin may be
    ///   (``FruitlessConnections/pause(asksForCalm:jitter:)``).
    package func pause(jitter: Double) -> Double { isForConnection ? 0 : Backoff.pause(before: count, jitter: jitter) }
}

/// How many of an origin's connections, one after the other, took no more requests before the server had worked on any, and what
/// follows from that for all requests to it.
package struct FruitlessConnections: Sendable, Hashable {
    /// After so many in a row the requests fail that wait for the origin.
    package static let most = 5

    private var count = 0

    package init() {}

    /// A connection served a request: what comes is counted anew.
    package mutating func reset() { count = 0 }

    /// Counts one more.
    ///
    /// - Returns: Whether it was the last; what comes after it is counted anew.
    package mutating func add() -> Bool {
        count += 1
        guard count == Self.most else { return false }
        count = 0
        return true
    }

    /// How long to wait before the next connection is dialled, in seconds: longer each time.
    ///
    /// - Parameters:
    ///   - asksForCalm: The server was asked for too much (ENHANCE_YOUR_CALM): it has twice the time, and some in any case.
    ///   - jitter: From 0 to 1.
    /// - Returns: Zero where the last connection served somebody.
    package func pause(asksForCalm: Bool, jitter: Double) -> Double {
        Backoff.pause(before: max(count, asksForCalm ? 1 : 0), isDoubled: asksForCalm, jitter: jitter)
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
        return connectionWasReused && !receivedAnyBytes && attempts < Self.attempts
            && mayRepeat(method: method, bodyIsReplayable: bodyIsReplayable)
    }

    /// Whether a request may be sent twice without asking anybody, as its server may have got it the first time.
    package static func mayRepeat(method: String, bodyIsReplayable: Bool) -> Bool { bodyIsReplayable && isIdempotent(method) }

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
