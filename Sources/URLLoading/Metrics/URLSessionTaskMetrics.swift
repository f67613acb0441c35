// SPDX-License-Identifier: Apache-2.0

public import Foundation
package import LoadingModel

/// The metrics of a task: its transactions in order, its duration, and the number of redirects.
///
/// Sendable because it is immutable.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    /// The source of a response.
    ///
    /// Raw values are Apple's.
    public enum ResourceFetchType: Int, Sendable {
        /// Not known.
        case unknown = 0
        /// From the network.
        case networkLoad = 1
        /// Pushed by the server before the request; deprecated by Apple, and never used here.
        case serverPush = 2
        /// From the cache.
        case localCache = 3
    }

    /// The protocol of a host name lookup.
    ///
    /// Raw values are Apple's.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// Not known: on Linux the system's resolver does not report the protocol.
        case unknown = 0
        /// Plain DNS over UDP.
        case udp = 1
        /// Plain DNS over TCP.
        case tcp = 2
        /// DNS over TLS.
        case tls = 3
        /// DNS over HTTPS.
        case https = 4
    }

    private let transactions: [URLSessionTaskTransactionMetrics]
    private let interval: DateInterval
    private let redirects: Int

    /// Makes the metrics of a task from the engine's measurements.
    ///
    /// - Parameters:
    ///   - timelines: One timeline for each request that was sent, in order.
    ///   - interval: The time from the creation of the task to its completion.
    ///   - redirectCount: The number of redirects followed.
    ///   - template: The task's request, for properties that the engine does not know.
    package init(
        timelines: [TransactionTimeline], interval: DateInterval, redirectCount: Int, template: URLRequest? = nil
    ) {
        transactions = timelines.map { URLSessionTaskTransactionMetrics(timeline: $0, template: template) }
        self.interval = Self.interval(interval, around: timelines)
        redirects = redirectCount
        super.init()
    }

    /// Extends the interval to contain all transactions, because the engine's monotonic clock may have drifted from the system's clock.
    private static func interval(_ interval: DateInterval, around timelines: [TransactionTimeline]) -> DateInterval {
        var (start, end) = (interval.start, interval.end)
        for timeline in timelines {
            start = min(start, Date(timeIntervalSinceReferenceDate: timeline.fetchStart))
            end = max(end, Date(timeIntervalSinceReferenceDate: timeline.responseEnd ?? timeline.fetchStart))
        }
        return DateInterval(start: start, end: end)
    }

    /// The metrics of each request and its response in order, including redirects and challenges.
    open var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }

    /// The time from the creation of the task to its completion.
    open var taskInterval: DateInterval { interval }

    /// The number of redirects followed.
    open var redirectCount: Int { redirects }

    /// The redirects, the interval and the transactions.
    open override var description: String {
        "(Task Interval) \(taskInterval)\n(Redirect Count) \(redirectCount)\n"
            + transactions.map(\.description).joined(separator: "\n")
    }
}
