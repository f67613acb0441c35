// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// How loads are retried after transient failures, which are not reported to the app; default nil: loads are not retried.
    ///
    /// A load is retried if its connection cannot be made or is lost before the response, or if the server responds with one of
    /// ``RetryPolicy/statusCodes``. When the app has received any part of the response, the load is no longer retried. Each attempt
    /// has its own ``URLSessionTaskTransactionMetrics``. The request timeout does not run during the pauses between attempts, but the
    /// resource timeout does. Canceling the task ends a pause. Responses with one of these status codes are not cached.
    ///
    /// For a retry of a request whose body is a stream, the delegate's `needNewBodyStream` is called before the pause.
    ///
    /// These loads are not retried:
    /// - loads whose timeout has expired, or whose body is a stream for which the delegate provides no new one;
    /// - uploads whose server has announced, in a 104 response, that they can be resumed (``usesResumableUploads``), and the transfers
    ///   of background sessions, which have their own retries;
    /// - WebSockets, stream tasks, FTP, and loads of a ``URLProtocol`` class.
    ///
    /// Regardless of this policy, a request whose reused connection was lost is sent again once, as RFC 9110 allows. After this policy
    /// has first retried a load, that happens at most once for each request, so that the two kinds of retries do not multiply.
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
    /// Retries add little traffic to a failing host, because all sessions of the process share a budget of five retries for each host.
    /// Every ten responses from the host add one retry to its budget, and so does every period of ten seconds.
    public struct RetryPolicy: Sendable, Hashable {
        /// The status codes after which a load is retried; default 408, 429, 502, 503 and 504.
        public var statusCodes: Set<Int> = [408, 429, 502, 503, 504]
        /// The errors after which a load is retried; default `cannotFindHost`, `dnsLookupFailed`, `cannotConnectToHost`,
        /// `networkConnectionLost` and `notConnectedToInternet`.
        public var errorCodes: Set<URLError.Code> = [
            .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .networkConnectionLost, .notConnectedToInternet,
        ]
        /// The maximum number of retries of a load, counted over all its redirects; default 3.
        public var maximumRetryCount = 3
        /// The pause before the first retry in seconds; default 0.5.
        ///
        /// The pause doubles with each retry. The actual length of each pause is random, from half to all of that time.
        public var firstPause: TimeInterval = 0.5
        /// The longest pause in seconds; default 30.
        public var maximumPause: TimeInterval = 30
        /// The longest `Retry-After` to wait for, in seconds; default 60.
        ///
        /// If a response asks for a longer pause, the load is not retried and delivers that response.
        public var maximumRetryAfter: TimeInterval = 60
        /// Whether requests with a method that is not idempotent, such as POST, are retried; default false.
        ///
        /// The server may have processed the first attempt.
        public var repeatsNonidempotentMethods = false

        /// Creates a policy with the default values.
        public init() {}

        var rules: LoadRetries {
            LoadRetries(
                statuses: statusCodes,
                failures: Set(LoadError.Kind.allCases.filter { errorCodes.contains(ErrorTranslation.code(of: $0)) }),
                limit: max(0, maximumRetryCount), firstPause: Self.seconds(firstPause), maximumPause: Self.seconds(maximumPause),
                maximumRetryAfter: Self.seconds(maximumRetryAfter), retriesAnyMethod: repeatsNonidempotentMethods)
        }

        /// Returns an interval, limited to the range from zero to one day.
        private static func seconds(_ interval: TimeInterval) -> Double { interval > 0 ? min(interval, 86_400) : 0 }
    }
}
