//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
public import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether, and how, loads that failed for reasons that pass are tried again before the app hears of it; default nil: never.
    ///
    /// Tried again is what the app has seen nothing of: the request is sent once more where it cannot be connected or the connection is
    /// lost before the response, or where the server answers with one of ``RetryPolicy/statusCodes``. Each attempt has its
    /// ``URLSessionTaskTransactionMetrics``. The request timeout does not run during the pauses; the resource timeout does, and cancelling
    /// ends them. A load whose timeout has run out, one whose body cannot be read again, WebSockets, streams and FTP are not tried
    /// again, nor are uploads that can be continued (``usesResumableUploads``), which have their own attempts. Background sessions have
    /// theirs, too, and no use for this. A response that may be followed by another attempt is not cached.
    ///
    /// Requests that a kept connection lost are sent again anyway, once, as RFC 9110 allows. That does not multiply with these attempts.
    ///
    /// ```swift
    /// let configuration = URLSessionConfiguration.default
    /// var retries = URLSessionConfiguration.RetryPolicy()
    /// retries.maximumRetryCount = 5
    /// configuration.retryPolicy = retries
    /// ```
    ///
    /// Not in Apple's API.
    public var retryPolicy: RetryPolicy? {
        get { get { $0.retryPolicy } }
        set { set { $0.retryPolicy = newValue } }
    }

    /// When a load is tried again, and how often.
    ///
    /// However many loads there are, a host that fails is not asked more often for it: five failures in a row end these attempts for the host
    /// and all sessions of the process, until ten times as many requests have been answered.
    public struct RetryPolicy: Sendable, Hashable {
        /// Statuses that may pass; default 408, 429, 502, 503 and 504.
        public var statusCodes: Set<Int> = [408, 429, 502, 503, 504]
        /// Failures that may pass; default `cannotFindHost`, `dnsLookupFailed`, `cannotConnectToHost`, `networkConnectionLost` and
        /// `notConnectedToInternet`.
        public var errorCodes: Set<URLError.Code> = [
            .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .networkConnectionLost, .notConnectedToInternet,
        ]
        /// How often a load is tried again at most, redirects included; default 3.
        public var maximumRetryCount = 3
        /// The pause before the first of these attempts in seconds; default 0.5.
        ///
        /// It is doubled before each that follows. Of the pause a random part, from the half to the whole, is waited.
        public var firstPause: TimeInterval = 0.5
        /// The longest such pause in seconds; default 30.
        public var maximumPause: TimeInterval = 30
        /// The longest `Retry-After` that is waited for, in seconds; default 60.
        ///
        /// A response that asks for more is the result.
        public var maximumRetryAfter: TimeInterval = 60
        /// Whether requests are sent again that have a method that is not idempotent, such as POST, although the server may have carried out
        /// the first; default false.
        public var repeatsNonidempotentMethods = false

        /// The defaults.
        public init() {}

        var rules: LoadRetries {
            LoadRetries(
                statuses: statusCodes,
                failures: Set(LoadError.Kind.allCases.filter { errorCodes.contains(ErrorTranslation.code(of: $0)) }),
                limit: max(0, maximumRetryCount), firstPause: Self.seconds(firstPause), longestPause: Self.seconds(maximumPause),
                longestRetryAfter: Self.seconds(maximumRetryAfter), repeatsAnyMethod: repeatsNonidempotentMethods)
        }

        /// A day at most, which no resource timeout of a session that tries again needs more of.
        private static func seconds(_ interval: TimeInterval) -> Double { interval > 0 ? min(interval, 86_400) : 0 }
    }
}
