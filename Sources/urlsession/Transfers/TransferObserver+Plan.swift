// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The options and the outcome of a load.
extension TransferObserver {
    struct Plan: Sendable {
        var redirects = RedirectRule()
        var showsHeaders = false
        var failsOnHTTPError = false
        /// Whether the body of an HTTP error is shown before the failure.
        var keepsErrorBody = false
        var isVerbose = false
        var isSilent = false
        /// The remaining retries; a response that is followed by a retry is a failure, and its body is not shown.
        var attempts = RetryOptions.Attempts()
        var connectTimeout: Double?
        /// An additional destination for all response heads.
        var headSink: BodySink?
        /// The maximum size of a body.
        var maximumSize: Int64?
        /// The maximum number of bytes per second.
        var rate: Int64?
        var slowest: SpeedMonitor.Limit?
        /// Called with the number of bytes of each received piece of a body.
        var count: (@Sendable (Int) -> Void)?
        /// Collects the events of the task for an archive.
        var recording: LoadRecording?
        /// Shows the progress.
        var meter: ProgressMeter?
        /// Returns the request body.
        var bodyStream: (@Sendable () -> InputStream?)?
        /// Returns why a response's body is not wanted; nil if it is.
        var objection: (@Sendable (URLResponse) -> ToolFailure?)?
        /// Called with the data that can resume the download if the tool is killed.
        var saveResumeData: (@Sendable (Data) -> Void)?
        /// Moves the downloaded file to its place.
        var moveDownloadedFile: (@Sendable (URL, URLResponse?) throws -> Void)?
    }

    struct State: Sendable {
        var continuation: CheckedContinuation<Void, Never>?
        var response: URLResponse?
        var httpResponse: HTTPURLResponse? { response as? HTTPURLResponse }
        var error: (any Error)?
        /// The reason why the tool itself cancelled the load or rejects its result; it is reported instead of the task's error.
        var failure: ToolFailure?
        /// The failure of a load that nevertheless runs to completion.
        var verdict: ToolFailure?
        var metrics: URLSessionTaskMetrics?
        /// The status code and the target of each redirect.
        var redirects: [(status: Int, to: URL?)] = []
        /// The URL of a redirect that was not followed, with the octets of its Location.
        var redirectNotFollowed: URL?
        var received: Int64 = 0
        var offset: Int64?
        /// Whether the body was received in several loads; the metrics are those of the first completed one.
        var isSegmented = false
        /// Whether a request was sent since the last response.
        var isSent = false
        /// Stops the load if it is still waiting for a connection after the time of `--connect-timeout`.
        var connectTimer: Task<Void, Never>?
        /// The response heads that `--verbose` has shown.
        var shownHeads: [String] = []
        var speedMonitor: SpeedMonitor?
        /// The last server's certificates.
        var certificates: CertificateText?
    }
}
