// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPWire
internal import LoadingModel

/// The items to deliver to a task's delegates, and whether an operation is scheduled to deliver them.
///
/// Delivery is paused while the delegate decides about one part of a `multipart/x-mixed-replace` body: the engine does not know
/// about parts, and so does not wait for these answers.
struct DelegateMailbox: Sendable {
    enum Item: Sendable {
        case event(TaskEvent)
        case question(TaskQuestion, reply: @Sendable (TaskAnswer) -> Void)
        /// A challenge from a `URLProtocol` of the app.
        case challenge(URLAuthenticationChallenge, reply: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
        /// The head of one part of a body, about which the delegate is asked.
        case part(MultipartParts.Part)
        /// Bytes of a part.
        case partData(Data)
        /// Calls a completion handler of a WebSocket or stream task.
        case call(@Sendable () -> Void)
        /// Returns this number of bytes to the engine as credit, after the preceding items have been delivered.
        case credit(Int)
    }

    private var items: ArraySlice<Item> = []
    private var isScheduled = false
    private(set) var isPaused = false

    /// Adds an item.
    ///
    /// Returns true if the caller must schedule an operation to deliver it.
    mutating func post(_ item: Item) -> Bool {
        if isPaused, case .event(.finished(let outcome)) = item, case .failure = outcome.result {
            // The load failed: do not wait for the delegate's answer, and drop the items after the question.
            items = []
            isPaused = false
            isScheduled = false
        }
        if !mergeLast(with: item) { items.append(item) }
        guard !isPaused, !isScheduled else { return false }
        isScheduled = true
        return true
    }

    mutating func take() -> ArraySlice<Item> {
        defer { items = [] }
        return items
    }

    /// Pauses delivery, and puts back the items that were not delivered.
    ///
    /// Returns false if the load has failed meanwhile. The delegate is not asked then: the caller must schedule an operation that
    /// delivers the end.
    mutating func pause(_ rest: ArraySlice<Item>) -> Bool {
        if let end = items.last, case .event(.finished(let outcome)) = end, case .failure = outcome.result {
            items = [end]
            return false
        }
        // Most of the time nothing has arrived meanwhile, and the rest may be thousands of parts.
        items = items.isEmpty ? rest : rest + items
        isPaused = true
        isScheduled = false
        return true
    }

    /// Resumes delivery.
    ///
    /// Returns true if the caller must schedule an operation.
    mutating func resume() -> Bool {
        guard isPaused else { return false }
        isPaused = false
        guard !items.isEmpty else { return false }
        isScheduled = true
        return true
    }

    /// Ends the delivery of the items from ``take()``.
    ///
    /// Returns true if more items have arrived, for which the caller must schedule another operation.
    mutating func finishDelivery() -> Bool {
        isScheduled = !items.isEmpty
        return isScheduled
    }

    /// Merges progress events: adds the counts to the last item if it is of the same kind.
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
