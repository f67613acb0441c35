//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// What a load is to do, and what it came to.
extension TransferObserver {
    struct Plan: Sendable {
        var redirects = RedirectRule()
        var showsHeaders = false
        var failsOnHTTPError = false
        /// The body of an HTTP error is shown before the failure.
        var keepsErrorBody = false
        var isVerbose = false
        var isSilent = false
        /// A response after which another attempt follows is a failure, whose body nobody sees.
        var attempts: RetryOptions.Attempts
        var connectTimeout: Double?
        /// Where the heads of all responses go, besides.
        var headSink: BodySink?
        /// The most bytes that a body may have.
        var maximumSize: Int64?
        /// The most bytes in a second.
        var rate: Int64?
        var slowest: SpeedWatch.Limit?
        /// Is told how many bytes of a body came.
        var count: (@Sendable (Int) -> Void)?
        /// What is heard of the task for an archive.
        var recording: LoadRecording?
    }

    struct State: Sendable {
        var continuation: CheckedContinuation<Void, Never>?
        var response: URLResponse?
        var error: (any Error)?
        /// Why the tool itself stopped the load; it explains the cancellation that follows.
        var failure: ToolFailure?
        /// What is wrong though the load goes well.
        var verdict: ToolFailure?
        var metrics: URLSessionTaskMetrics?
        var redirects = 0
        var received: Int64 = 0
        var offset: Int64?
        /// What was received came in several loads, of which there are the first one's metrics.
        var isOfParts = false
        /// Whether a request went out since the last response.
        var isSent = false
        /// Stops the load, should it still be waiting for a connection by then.
        var connectTimer: Task<Void, Never>?
        /// The heads of responses that `--verbose` has shown.
        var shownHeads: [String] = []
        var speedWatch: SpeedWatch?
        /// What the last server showed.
        var certificates: CertificateText?
    }
}
