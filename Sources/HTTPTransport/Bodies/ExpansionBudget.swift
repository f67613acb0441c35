// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Synchronization

/// Limits the total number of bytes by which all bodies collected in memory may exceed their expansion ratios.
///
/// Each body may exceed its ratio until its size reaches the floor of its limit, because short bodies often expand far. A few
/// kilobytes from each of many servers, or from one server repeatedly, could thus expand to gigabytes in total. If the budget is
/// used up, a body that needs more of it fails, and releases its share.
package final class ExpansionBudget: Sendable {
    /// The budget of the process: as much as a single body may use.
    package static let shared = ExpansionBudget(limit: 64 << 20)

    private let limit: Int64
    private let used = Atomic<Int64>(0)

    package init(limit: Int64) { self.limit = limit }

    /// The number of bytes in use.
    package var usage: Int64 { used.load(ordering: .relaxed) }

    /// One body's share of the budget, released when the object is deinitialized; one thread at a time may use it.
    final class Share {
        private let budget: ExpansionBudget
        private var taken: Int64 = 0

        init(of budget: ExpansionBudget) { self.budget = budget }

        deinit { _ = budget.used.wrappingSubtract(taken, ordering: .relaxed) }

        /// Grows the share to `count` bytes; returns false if the budget is used up.
        func grow(to count: Int64) -> Bool {
            guard count > taken else { return true }
            let (used, isTooMuch) = budget.used.load(ordering: .relaxed).addingReportingOverflow(count - taken)
            guard !isTooMuch, used <= budget.limit else { return false }
            _ = budget.used.wrappingAdd(count - taken, ordering: .relaxed)
            taken = count
            return true
        }
    }
}
