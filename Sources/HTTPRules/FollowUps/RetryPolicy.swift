//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Decides whether a request whose connection broke is sent again without asking anybody (RFC 9110, section 9.2.2; RFC 9112,
/// section 9.3.1).
package enum RetryPolicy {
    /// How often one request is sent in all: the second time over a new connection, whose failure is an answer.
    package static let attempts = 2

    /// Decides on one failure.
    ///
    /// - Parameters:
    ///   - method: The method of the request.
    ///   - connectionWasReused: Whether another request went over the connection before.
    ///   - receivedAnyBytes: Whether the server began to answer.
    ///   - bodyIsReplayable: Whether the body can be read again; true where there is none.
    ///   - attempts: How often the request was sent, the failed time included.
    /// - Returns: Whether to send it again.
    package static func mayRetry(
        method: String,
        connectionWasReused: Bool,
        receivedAnyBytes: Bool,
        bodyIsReplayable: Bool,
        attempts: Int
    ) -> Bool {
        connectionWasReused && !receivedAnyBytes && bodyIsReplayable && attempts < Self.attempts && isIdempotent(method)
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
