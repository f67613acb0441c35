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
    /// How loads that fail for reasons that pass are retried before the app hears of the failure; default nil: they are not.
    ///
    /// A load is retried only if the app has not yet received any of it: where the connection cannot be made or is lost before the
    /// response, or where the server answers with one of ``RetryPolicy/statusCodes``. Each attempt has its
    /// ``URLSessionTaskTransactionMetrics``. The request timeout does not run during the pauses; the resource timeout does, and cancelling
    /// ends them. A response that may be followed by another attempt is not cached.
    ///
    /// Not retried are:
    /// - loads whose timeout has run out, or whose body cannot be read again;
    /// - uploads that can be continued (``usesResumableUploads``), and the transfers of background sessions, which have their own attempts;
    /// - WebSockets, stream tasks, FTP, and what a ``URLProtocol`` class answers.
    ///
    /// A request that a kept connection lost is sent again once in any case, as RFC 9110 allows. That does not multiply with these attempts.
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

    /// When a load is retried, and how often.
    ///
    /// However many loads there are, a host that fails is hardly asked more often for it: it has five such attempts at once, for all sessions of
    /// the process, and another one for ten of its answers, or for ten seconds.
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
        /// Whether requests are retried whose method is not idempotent, such as POST; default false.
        ///
        /// The server may have carried out the first attempt.
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
