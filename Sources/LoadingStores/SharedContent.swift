// SPDX-License-Identifier: Apache-2.0

/// A value that can be stored in a file and shared by processes: cookies, HSTS hosts.
protocol SharedContent: Sendable {
    associatedtype Change: Hashable, Sendable
    associatedtype Key: Hashable

    /// The name of the content in warnings.
    static var title: String { get }
    static var envelope: StoreEnvelope { get }

    init()
    mutating func apply(_ changes: [Change])

    /// Encodes the content that outlives the process and has not expired. Equal values have equal encodings.
    func encoded(now: Double) -> [UInt8]
    /// Decodes the content, which begins at `start`; nil if the bytes are malformed.
    ///
    /// Entries that this library could not have written are left out.
    static func decoded(_ file: [UInt8], from start: Int) -> Self?

    /// Combines the file's content with what only this process knows: the `pending` changes and content that is never written.
    static func merged(disk: Self, memory: Self, pending: [Change]) -> Self
    /// The item that a change concerns.
    static func key(of change: Change) -> Key
    /// Whether this process can observe a change; other processes may observe changes that this one cannot.
    static func isVisible(_ change: Change) -> Bool
    /// Whether both values look the same to an observer.
    func isSame(as other: Self) -> Bool
}

extension SharedContent {
    static func isVisible(_ change: Change) -> Bool { true }

    /// Returns only the last change of each item.
    static func condensed(_ changes: [Change]) -> [Change] {
        var seen: Set<Key> = []
        return changes.reversed().filter { seen.insert(key(of: $0)).inserted }.reversed()
    }
}
