//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
public import URLLoading

extension HTTPArchive {
    /// What an entry that is made of a task's metrics holds.
    public struct Detail: Sendable, Equatable {
        /// Which secrets are taken out; nil keeps all.
        public var redaction: Redaction? = Redaction()
        /// Whether bodies that are given are kept.
        public var keepsBodies = false
        /// The most bytes that a body may have to be kept: 1 MiB.
        public var maximumBodySize = 1 << 20

        /// No secrets, and no bodies.
        public init() {}
    }

    /// What is known of a task besides its metrics.
    public struct Particulars: Sendable {
        /// The heads of the task's requests as `urlSession(_:task:didSendRequestHead:)` tells them, in their order.
        ///
        /// Without them, entries have the header fields that the app gave its requests.
        public var sentHeads: [[String]] = []
        /// The body that was sent, or nil.
        public var requestBody: Data?
        /// The body that came, decoded, or nil.
        public var responseBody: Data?
        /// How the task failed, or nil.
        public var error: (any Error)?

        /// Nothing more.
        public init() {}
    }

    /// Appends an entry for each transaction of a task: redirects, answers to challenges, attempts and hits of the cache among them.
    ///
    /// - Parameters:
    ///   - metrics: The task's metrics, as its delegate is given them.
    ///   - particulars: What is known besides.
    ///   - detail: What the entries hold.
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

    /// The head that a transaction was sent with; those before it were of none.
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
