// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Limits the total growth of the windows of a connection's streams, because data within the windows occupies memory until loads
/// read it.
struct WindowLoan {
    private static let connectionLimit = 67_108_864
    private static let processLimit = 268_435_456
    private static let lentInProcess = Atomic<Int>(0)

    private var left = Self.connectionLimit

    /// Lends up to `count` bytes, within the limits of the connection and of the process, and returns how many.
    mutating func take(_ count: Int) -> Int {
        let wanted = min(count, left)
        guard wanted > 0 else { return 0 }
        let before = Self.lentInProcess.add(wanted, ordering: .relaxed).oldValue
        let lent = max(0, min(wanted, Self.processLimit - before))
        if lent < wanted { Self.lentInProcess.subtract(wanted - lent, ordering: .relaxed) }
        left -= lent
        return lent
    }

    mutating func giveBack(_ count: Int) {
        guard count > 0 else { return }
        left += count
        Self.lentInProcess.subtract(count, ordering: .relaxed)
    }
}
