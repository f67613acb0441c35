//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
package import LoadingModel

/// What a task took: its transactions in order, its whole time, and how often it was redirected.
///
/// Sendable because it never changes once made.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    /// Where a response came from.
    ///
    /// Raw values are Apple's.
    public enum ResourceFetchType: Int, Sendable {
        /// Not known.
        case unknown = 0
        /// From the network.
        case networkLoad = 1
        /// Pushed by the server before it was asked for; deprecated by Apple, and never happens here.
        case serverPush = 2
        /// From the cache.
        case localCache = 3
    }

    /// How the host's name was resolved.
    ///
    /// Raw values are Apple's.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// Not known. On Linux the system's resolver does not tell.
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

    /// Makes the metrics of a task from what the engine noted.
    ///
    /// - Parameters:
    ///   - timelines: One for each request that was sent, in order.
    ///   - interval: From the making of the task to its end.
    ///   - redirectCount: How many redirects were followed.
    ///   - template: The task's request, for what the engine does not know of it.
    package init(
        timelines: [TransactionTimeline], interval: DateInterval, redirectCount: Int, template: URLRequest? = nil
    ) {
        transactions = timelines.map { URLSessionTaskTransactionMetrics(timeline: $0, template: template) }
        self.interval = Self.interval(interval, around: timelines)
        redirects = redirectCount
        super.init()
    }

    /// The engine's clock is the monotonic one, which may be some way off the system's by now: nothing is outside the task all the same.
    private static func interval(_ interval: DateInterval, around timelines: [TransactionTimeline]) -> DateInterval {
        var (start, end) = (interval.start, interval.end)
        for timeline in timelines {
            start = min(start, Date(timeIntervalSinceReferenceDate: timeline.fetchStart))
            end = max(end, Date(timeIntervalSinceReferenceDate: timeline.responseEnd ?? timeline.fetchStart))
        }
        return DateInterval(start: start, end: end)
    }

    /// One for each request that was sent and its response, redirects and challenges included, in order.
    open var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }

    /// From the making of the task to its end.
    open var taskInterval: DateInterval { interval }

    /// How many redirects were followed.
    open var redirectCount: Int { redirects }

    /// The redirects, the interval and the transactions.
    open override var description: String {
        "(Task Interval) \(taskInterval)\n(Redirect Count) \(redirectCount)\n"
            + transactions.map(\.description).joined(separator: "\n")
    }
}
