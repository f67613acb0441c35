//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// Parts of a cache that belong to one session each and are in memory alone.
///
/// A part is emptied with the whole: an app that removes what is stored means all of it.
extension ResponseCache {
    /// Weakly, since a part lives as long as its session.
    struct Parts: Sendable {
        private struct Part: Sendable {
            weak let cache: ResponseCache?
        }

        private var known: [Part] = []
        /// How many there may be before those that are gone are looked for.
        private var limit = 16

        var all: [ResponseCache] { known.compactMap(\.cache) }

        mutating func add(_ cache: ResponseCache) {
            if known.count >= limit {
                known.removeAll { $0.cache == nil }
                limit = max(16, known.count * 2)
            }
            known.append(Part(cache: cache))
        }
    }

    /// Makes a part.
    ///
    /// - Parameter capacity: In bytes.
    /// - Returns: An empty part.
    package func makePart(capacity: Int) -> ResponseCache {
        let part = ResponseCache(partCapacity: capacity)
        parts.withLock { $0.add(part) }
        return part
    }

    func forEachPart(_ change: (ResponseCache) -> Void) {
        for part in parts.withLock({ $0.all }) { change(part) }
    }
}
