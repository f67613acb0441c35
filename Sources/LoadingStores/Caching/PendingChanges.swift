// SPDX-License-Identifier: Apache-2.0

/// The cache changes that are queued, which lookups have to wait for.
package struct PendingChanges: Sendable {
    /// The limit on queued changes, in case the disk does not respond.
    package static let limit = 10_000

    private var byKey: [CacheEntryName: Int] = [:]
    private var forAll = 0
    /// The number of queued changes that remove everything.
    private var removals = 0
    private var count = 0
    /// The number of changes that are partly done, with the rest queued.
    private var unfinished = 0
    /// Whether the last queued change removes everything and has not begun.
    package private(set) var endsInRemoval = false

    package init() {}

    package var isEmpty: Bool { count == 0 }
    package var hasUnfinished: Bool { unfinished > 0 }
    /// Whether a queued change removes everything.
    package var includesRemoval: Bool { removals > 0 }

    package func mayAffect(_ name: CacheEntryName) -> Bool { forAll > 0 || byKey[name] != nil }
    package func affects(_ name: CacheEntryName) -> Bool { byKey[name] != nil }

    /// Registers a change of a key, or of everything if the key is nil; false if too many changes are pending.
    package mutating func begin(_ key: CacheEntryName?, removesAll: Bool) -> Bool {
        if key != nil, count >= Self.limit { return false }
        count += 1
        endsInRemoval = removesAll
        if let key { byKey[key, default: 0] += 1 } else { forAll += 1 }
        if removesAll { removals += 1 }
        return true
    }

    package mutating func removalStarted() { endsInRemoval = false }

    package mutating func end(_ key: CacheEntryName?, removesAll: Bool) {
        count -= 1
        if removesAll { removals -= 1 }
        guard let key else {
            forAll -= 1
            return
        }
        let left = (byKey[key] ?? 1) - 1
        byKey[key] = left > 0 ? left : nil
    }

    /// Registers that the rest of a change was queued; ``continuationEnded()`` registers that the rest is done.
    package mutating func proceed() { unfinished += 1 }
    package mutating func continuationEnded() { unfinished -= 1 }
}
