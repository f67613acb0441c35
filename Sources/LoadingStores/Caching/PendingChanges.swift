//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Changes of the cache that are on the queue: what a look-up has to wait for.
package struct PendingChanges: Sendable {
    /// A disk that does not answer must not have changes gather without end.
    package static let limit = 10_000

    private var byKey: [CacheEntryName: Int] = [:]
    private var forAll = 0
    /// Of these, those that remove everything.
    private var removals = 0
    private var count = 0
    /// Those of which a part was made; the rest is on the queue.
    private var unfinished = 0
    /// The last of them removes everything, and has not begun.
    package private(set) var endInRemoval = false

    package init() {}

    package var areNone: Bool { count == 0 }
    package var areUnfinished: Bool { unfinished > 0 }
    /// All that is there goes.
    package var includeRemoval: Bool { removals > 0 }

    package func mayConcern(_ name: CacheEntryName) -> Bool { forAll > 0 || byKey[name] != nil }
    package func concern(_ name: CacheEntryName) -> Bool { byKey[name] != nil }

    /// A change of a key, or without one of all; false where too much waits already.
    package mutating func begin(_ key: CacheEntryName?, removesAll: Bool) -> Bool {
        if key != nil, count >= Self.limit { return false }
        count += 1
        endInRemoval = removesAll
        if let key { byKey[key, default: 0] += 1 } else { forAll += 1 }
        if removesAll { removals += 1 }
        return true
    }

    package mutating func removalRuns() { endInRemoval = false }

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

    /// The rest of a change is on the queue; and was made.
    package mutating func goOn() { unfinished += 1 }
    package mutating func wentOn() { unfinished -= 1 }
}
