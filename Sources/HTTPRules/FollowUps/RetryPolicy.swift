// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// What is known about a request that failed without a response.
package enum RetryEvidence: Sendable, Hashable {
    /// There is no reliable information.
    case none
    /// The server reported a stream error for this request on a connection that is still usable. A retry would fail in the same
    /// way.
    case streamFailed
    /// The server has not started to process the request, so any request may be retried (RFC 9113, section 8.7).
    case notProcessed(Refusal)
    /// The request was not processed, because the server requires one of these versions (RFC 9113, section 7).
    case requires(HTTPVersions)

    /// How a connection refused a request.
    package struct Refusal: Sendable, Hashable {
        /// Whether the connection accepts no more requests.
        package var endsConnection: Bool
        /// Whether the limit of ``FruitlessConnections`` was reached, so that all requests waiting for the origin fail.
        package var isLast: Bool

        package init(endsConnection: Bool, isLast: Bool = false) {
            self.endsConnection = endsConnection
            self.isLast = isLast
        }
    }

    /// Whether the server has not started to process the request.
    package var isUnprocessed: Bool {
        switch self {
        case .notProcessed, .requires: true
        case .none, .streamFailed: false
        }
    }
}

/// Counts the consecutive refusals of a request and decides whether to retry it.
///
/// A refusal by a connection that accepts no more requests is not a failure: a server may limit each connection to a hundred
/// requests. A request only fails if a usable connection refuses it repeatedly, or if the limit of ``FruitlessConnections`` is
/// reached.
package struct RefusalCount: Sendable, Hashable {
    /// The maximum number of consecutive refusals by a usable connection.
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

    /// Whether the request may be retried.
    package var allowsRetry: Bool { !isOver && count < Self.most }

    /// Returns the delay before the retry, in seconds.
    ///
    /// The delay grows with each refusal and is randomized.
    ///
    /// - Parameter jitter: A random number from 0 to 1.
    /// - Returns: Zero if the connection accepted no more requests: ``FruitlessConnections/pause(asksForCalm:jitter:)`` determines
    ///   when another connection may be opened.
    package func pause(jitter: Double) -> Double { isForConnection ? 0 : Backoff.pause(before: count, jitter: jitter) }
}

/// Counts the consecutive fruitless connections to an origin, and decides how the count affects all requests to the origin.
///
/// A connection is fruitless if it stopped accepting requests before the server processed any request on it.
package struct FruitlessConnections: Sendable, Hashable {
    /// The number of consecutive fruitless connections after which the requests waiting for the origin fail.
    package static let most = 5

    private var count = 0

    package init() {}

    /// Restarts the count, because a connection served a request.
    package mutating func reset() { count = 0 }

    /// Counts a connection that served no request.
    ///
    /// - Returns: Whether the limit was reached. The count then restarts.
    package mutating func add() -> Bool {
        count += 1
        guard count == Self.most else { return false }
        count = 0
        return true
    }

    /// Returns the delay before the next connection is opened, in seconds.
    ///
    /// The delay grows with each fruitless connection.
    ///
    /// - Parameters:
    ///   - asksForCalm: Whether the server reported overload (ENHANCE_YOUR_CALM). An overload doubles the delay, and causes a delay
    ///     even after a successful connection.
    ///   - jitter: A random number from 0 to 1.
    /// - Returns: The delay. Zero if the last connection served a request and the server did not report overload.
    package func pause(asksForCalm: Bool, jitter: Double) -> Double {
        Backoff.pause(before: max(count, asksForCalm ? 1 : 0), isDoubled: asksForCalm, jitter: jitter)
    }
}

/// Decides whether a request is retried automatically after its connection failed (RFC 9110, section 9.2.2; RFC 9112, section
/// 9.3.1).
package enum RetryPolicy {
    /// The maximum number of attempts in total.
    ///
    /// The second attempt uses a new connection and is not retried.
    package static let attempts = 2
    /// The maximum number of attempts with a server that requires HTTP/1.1.
    private static let versionAttempts = 5

    /// Decides about one failure.
    ///
    /// - Parameters:
    ///   - method: The method of the request.
    ///   - connectionWasReused: Whether the connection carried another request before.
    ///   - receivedAnyBytes: Whether any byte of the response was received.
    ///   - bodyIsReplayable: Whether the body can be read again; true if there is no body.
    ///   - attempts: The number of attempts, including the failed attempt but not refused attempts.
    ///   - evidence: What is known about the failure.
    ///   - refusals: The number of consecutive refusals, including the last one.
    /// - Returns: Whether to retry the request.
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
        case .streamFailed: return false
        case .notProcessed: return bodyIsReplayable && refusals.allowsRetry
        case .requires: return bodyIsReplayable && attempts < Self.versionAttempts
        }
        return connectionWasReused && !receivedAnyBytes && attempts < Self.attempts
            && mayRepeat(method: method, bodyIsReplayable: bodyIsReplayable)
    }

    /// Whether a request may be sent again automatically, although the server may have received it before.
    package static func mayRepeat(method: String, bodyIsReplayable: Bool) -> Bool { bodyIsReplayable && isIdempotent(method) }

    /// Whether a method is idempotent: the methods of RFC 9110, section 9.2.2, and the other safe methods in the method registry.
    ///
    /// Methods are case-sensitive.
    package static func isIdempotent(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH", "QUERY": true
        default: false
        }
    }
}
