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

/// The items to deliver to a task's delegates, and whether an operation is scheduled to deliver them.
///
/// The mailbox is held while the delegate decides about one part of a `multipart/x-mixed-replace` body, because the engine waits
/// only for answers to its own questions.
struct DelegateMailbox: Sendable {
    enum Item: Sendable {
        case event(TaskEvent)
        case question(TaskQuestion, reply: @Sendable (TaskAnswer) -> Void)
        /// From a `URLProtocol` of the app.
        case challenge(URLAuthenticationChallenge, reply: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
        /// The head of one part of a body, about which the delegate is asked.
        case part(LoadResponse)
        /// Bytes of a part.
        case partData(Data)
        /// The number of bytes whose parts were all delivered.
        case credit(Int)
    }

    private var items: ArraySlice<Item> = []
    private var isScheduled = false
    private(set) var isHeld = false

    /// Adds an item.
    ///
    /// Returns true if an operation must be started to deliver it.
    mutating func post(_ item: Item) -> Bool {
        if isHeld, case .event(.finished(let outcome)) = item, case .failure = outcome.result {
            // The answer is no longer needed, and the items after the question are not delivered.
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

    /// Returns items that cannot be delivered yet.
    mutating func hold(_ rest: ArraySlice<Item>) {
        items = rest + items
        isHeld = true
        isScheduled = false
        // A load that failed meanwhile ends without the answer.
        if let end = items.last, case .event(.finished(let outcome)) = end, case .failure = outcome.result { items = [end] }
    }

    /// Continues the delivery.
    ///
    /// Returns true if an operation must be started.
    mutating func release() -> Bool {
        guard isHeld else { return false }
        isHeld = false
        guard !items.isEmpty else { return false }
        isScheduled = true
        return true
    }

    /// Called when the items taken were delivered.
    ///
    /// Returns true if more items have arrived, which need another operation.
    mutating func finishDelivery() -> Bool {
        isScheduled = !items.isEmpty
        return isScheduled
    }

    /// Adds the counts to the last item if it has the same kind.
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
    /// Removes the first item and overwrites it: the slice's buffer would otherwise keep its data alive.
    mutating func takeFirst() -> DelegateMailbox.Item? {
        guard let item = first else { return nil }
        self[startIndex] = .credit(0)
        removeFirst()
        return item
    }
}
