//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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

    @Test func `an idempotent request on a stale connection is sent again once`() {
        // RFC 9110, section 9.2.2.
        #expect(mayRetry(attempts: 1))
        #expect(!mayRetry(attempts: 2))
    }

    @Test func `only methods that may be repeated are`() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND"] { #expect(mayRetry(method), "\(method)") }
        for method in ["POST", "PATCH", "CONNECT", "get", "X-OWN", ""] { #expect(!mayRetry(method), "\(method)") }
    }

    @Test func `nothing is sent again when the server may have acted or the body is gone`() {
        #expect(!mayRetry(reused: false))
        #expect(!mayRetry(received: true))
        #expect(!mayRetry("PUT", replayable: false))
    }
}
