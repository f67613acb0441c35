//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import HTTPWire
internal import LoadingModel

/// What waits to be delivered to a task's delegates, and whether an operation is under way that will.
///
/// Held back while the delegate thinks about one part of a `multipart/x-mixed-replace` body: the engine waits for answers of its own
/// accord only where it asked.
struct DelegateMailbox: Sendable {
    enum Item: Sendable {
        case event(TaskEvent)
        case question(TaskQuestion, reply: @Sendable (TaskAnswer) -> Void)
        /// From an app's `URLProtocol`.
        case challenge(URLAuthenticationChallenge, reply: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
        /// The head of one part of a body, which the delegate is asked about.
        case part(LoadResponse)
        /// Bytes of a part.
        case partData(Data)
        /// Bytes whose parts were all delivered.
        case credit(Int)
    }

    private var items: ArraySlice<Item> = []
    private var isScheduled = false
    private(set) var isHeld = false

    /// Adds an item.
    ///
    /// True if an operation must be started to deliver it.
    mutating func post(_ item: Item) -> Bool {
        if isHeld, case .event(.finished(let outcome)) = item, case .failure = outcome.result {
            // The answer is not awaited any more, and what stands behind it is not delivered.
            items = []
            isHeld = false
            isScheduled = false
        }
        if !mergeLast(with: item) { items.append(item) }
        guard !isHeld, !isScheduled else { return false }
        isScheduled = true
        return true
    }

    mutating func take() -> ArraySlice<Item> {
        defer { items = [] }
        return items
    }

    /// Puts back what was taken and cannot be delivered yet.
    mutating func hold(_ rest: ArraySlice<Item>) {
        items = rest + items
        isHeld = true
        isScheduled = false
        // A load that failed meanwhile ends without the answer.
        if let end = items.last, case .event(.finished(let outcome)) = end, case .failure = outcome.result { items = [end] }
    }

    /// Lets things go on.
    ///
    /// True if an operation must be started.
    mutating func release() -> Bool {
        guard isHeld else { return false }
        isHeld = false
        guard !items.isEmpty else { return false }
        isScheduled = true
        return true
    }

    /// What was taken is delivered.
    ///
    /// True if more came meanwhile, which needs another operation.
    mutating func finishDelivery() -> Bool {
        isScheduled = !items.isEmpty
        return isScheduled
    }

    /// Adds a count to the last item if that is a count of the same kind which was not delivered yet.
    private mutating func mergeLast(with item: Item) -> Bool {
        switch (items.last, item) {
        case (.event(.sent(let earlier, _, _)), .event(.sent(let bytes, let total, let expected))):
            items[items.endIndex - 1] = .event(.sent(bytes: earlier.addingSaturating(bytes), total: total, expected: expected))
        case (.event(.wrote(let earlier, _, _)), .event(.wrote(let bytes, let total, let expected))):
            items[items.endIndex - 1] = .event(.wrote(bytes: earlier.addingSaturating(bytes), total: total, expected: expected))
        default:
            return false
        }
        return true
    }
}

extension ArraySlice<DelegateMailbox.Item> {
    /// Takes the first item out of the memory that the others lie in, too: a slice that only became shorter would keep its data.
    mutating func takeFirst() -> DelegateMailbox.Item? {
        guard let item = first else { return nil }
        self[startIndex] = .credit(0)
        removeFirst()
        return item
    }
}
