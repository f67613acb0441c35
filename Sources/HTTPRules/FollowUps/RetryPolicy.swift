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
    case notProcessed
    /// The same, and it wants HTTP/1.1 (RFC 9113, section 7).
    case wantsHTTP1

    /// Whether the server has not begun to work on the request.
    package var saysUnprocessed: Bool { self == .notProcessed || self == .wantsHTTP1 }
}

/// Decides whether a request whose connection broke is sent again without asking anybody (RFC 9110, section 9.2.2; RFC 9112,
/// section 9.3.1).
package enum RetryPolicy {
    /// How often one request is sent in all: the second time over a new connection, whose failure is an answer.
    package static let attempts = 2
    /// How often one is sent that the server refuses to work on.
    package static let unprocessedAttempts = 5

    /// Decides on one failure.
    ///
    /// - Parameters:
    ///   - method: The method of the request.
    ///   - connectionWasReused: Whether another request went over the connection before.
    ///   - receivedAnyBytes: Whether the server began to answer.
    ///   - bodyIsReplayable: Whether the body can be read again; true where there is none.
    ///   - attempts: How often the request was sent, the failed time included.
    ///   - evidence: What the server said of it.
    /// - Returns: Whether to send it again.
    package static func mayRetry(
        method: String,
        connectionWasReused: Bool,
        receivedAnyBytes: Bool,
        bodyIsReplayable: Bool,
        attempts: Int,
        evidence: RetryEvidence = .none
    ) -> Bool {
        switch evidence {
        case .none: break
        case .failedAlone: return false
        case .notProcessed, .wantsHTTP1: return bodyIsReplayable && attempts < Self.unprocessedAttempts
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
