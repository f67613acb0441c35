// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Parts of a cache that belong to one session each and exist only in memory.
///
/// Removing entries from the cache also removes them from its parts.
extension ResponseCache {
    /// Weak references to the parts: a part lives as long as its session.
    struct Parts: Sendable {
        private struct Part: Sendable {
            weak let cache: ResponseCache?
        }

        /// The maximum number of parts; each has the capacity of the whole cache's memory.
        private static let maximumCount = 64
        private var known: [Part] = []

        var all: [ResponseCache] { known.compactMap(\.cache) }

        /// Adds a part.
        ///
        /// - Returns: The oldest part if there are too many, otherwise nil.
        mutating func add(_ cache: ResponseCache) -> ResponseCache? {
            known.append(Part(cache: cache))
            guard known.count > Self.maximumCount else { return nil }
            known.removeAll { $0.cache == nil }
            return known.count > Self.maximumCount ? known.removeFirst().cache : nil
        }
    }

    /// Makes an empty part with the memory capacity of the cache.
    ///
    /// If there are too many parts, the oldest one is emptied and stores nothing more (``isRetired``).
    package func makePart() -> ResponseCache {
        let part = ResponseCache(memoryCapacity: memoryCapacity, diskCapacity: 0, directory: nil)
        let surplus = parts.withLock { $0.add(part) }
        surplus?.memoryCapacity = 0
        return part
    }

    /// Whether the part stores nothing any more.
    package var isRetired: Bool { memoryCapacity == 0 }

    func forEachPart(_ change: (ResponseCache) -> Void) {
        for part in parts.withLock({ $0.all }) { change(part) }
    }
}
