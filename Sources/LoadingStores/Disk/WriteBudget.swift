//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// The memory of what waits to be written, for all that is given to one queue: a disk that is slower than the network must not have
/// bodies gather without end.
final class WriteBudget: Sendable {
    /// Bytes; the network brings as much in some tenths of a second.
    static let limit = 32 << 20

    private let taken = Atomic(0)

    /// Whether so many bytes more may wait.
    ///
    /// If so, they are to be given back.
    func take(_ count: Int, isLimited: Bool = true) -> Bool {
        let (_, total) = taken.add(count, ordering: .relaxed)
        guard isLimited, total > Self.limit else { return true }
        giveBack(count)
        return false
    }

    func giveBack(_ count: Int) { taken.subtract(count, ordering: .relaxed) }
}
