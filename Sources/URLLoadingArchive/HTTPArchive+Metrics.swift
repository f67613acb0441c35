// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import URLLoading

extension HTTPArchive {
    /// The options for entries made from a task's metrics.
    public struct Detail: Sendable, Equatable {
        /// The secrets to remove; nil keeps all secrets.
        public var redaction: Redaction? = Redaction()
        /// Whether available bodies are kept; default false.
        public var keepsBodies = false
        /// The maximum size of a body to keep, in bytes; default 1 MiB.
        public var maximumBodySize = 1 << 20

        /// Creates the default options: secrets are removed, and bodies are not kept.
        public init() {}
    }

    /// Information about a task that is not part of its metrics.
    public struct Particulars: Sendable {
        /// The heads of the task's requests as reported by `urlSession(_:task:didSendRequestHead:)`, in order.
        ///
        /// Without these heads, entries have the header fields that the app set.
        public var sentHeads: [[String]] = []
        /// The request body, or nil.
        public var requestBody: Data?
        /// The decoded response body, or nil.
        public var responseBody: Data?
        /// The task's error, or nil.
        public var error: (any Error)?

        /// Creates an empty value.
        public init() {}
    }

    /// Appends an entry for each transaction of a task, including redirects, authentication attempts, retries and cache hits.
    ///
    /// - Parameters:
    ///   - metrics: The task's metrics, as its delegate receives them.
    ///   - particulars: Other information about the task.
    ///   - detail: The options for the entries.
    public mutating func append(
        _ metrics: URLSessionTaskMetrics, _ particulars: Particulars = Particulars(), detail: Detail = Detail()
    ) {
        let transactions = metrics.transactionMetrics
        var heads = particulars.sentHeads[...]
        for (index, transaction) in transactions.enumerated() {
            let isLast = index == transactions.count - 1
            let end = isLast ? metrics.taskInterval.end : transactions[index + 1].fetchStartDate ?? metrics.taskInterval.end
            let maker = EntryMaker(
                transaction: transaction, begin: transaction.fetchStartDate ?? metrics.taskInterval.start, end: end,
                head: Self.head(of: transaction, in: &heads), particulars: particulars, isLast: isLast, detail: detail)
            let entry = maker.entry()
            append(detail.redaction?.entry(entry) ?? entry)
        }
    }

    /// Returns the head with which a transaction was sent.
    ///
    /// Earlier heads belong to no transaction and are dropped.
    private static func head(
        of transaction: URLSessionTaskTransactionMetrics, in heads: inout ArraySlice<[String]>
    ) -> [String]? {
        guard transaction.resourceFetchType == .networkLoad, transaction.requestStartDate != nil else { return nil }
        let method = transaction.request.httpMethod ?? "GET"
        guard let place = heads.firstIndex(where: { $0.first?.hasPrefix(method + " ") == true }) else { return nil }
        defer { heads = heads[(place + 1)...] }
        return heads[place]
    }
}
