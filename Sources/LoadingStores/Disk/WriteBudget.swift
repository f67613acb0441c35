// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Limits the memory of all bodies that wait to be written on one queue, in case the disk is slower than the network.
final class WriteBudget: Sendable {
    /// The limit in bytes; a fast network delivers this many in a few tenths of a second.
    static let limit = 32 << 20

    private let taken = Atomic(0)

    /// Reserves `count` bytes; returns whether they are within the limit.
    ///
    /// The caller must return reserved bytes with ``release(_:)``.
    func take(_ count: Int, isLimited: Bool = true) -> Bool {
        let (_, total) = taken.add(count, ordering: .relaxed)
        guard isLimited, total > Self.limit else { return true }
        release(count)
        return false
    }

    func release(_ count: Int) { taken.subtract(count, ordering: .relaxed) }
}
