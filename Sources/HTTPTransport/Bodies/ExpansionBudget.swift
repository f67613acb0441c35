//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire
import Synchronization

/// How many bytes all bodies that are collected in memory may have, together, beyond the ratio to which each may expand.
///
/// Each body may be longer than its ratio allows by as much as its limit's floor, since short ones often are; of a few kilobytes from each of
/// many servers, or of one over and over, that would be gigabytes. A body that finds nothing left fails, and gives back what it has.
package final class ExpansionBudget: Sendable {
    /// That of the process: as much as one body alone may have.
    package static let shared = ExpansionBudget(limit: 64 << 20)

    private let limit: Int64
    private let used = Atomic<Int64>(0)

    package init(limit: Int64) { self.limit = limit }

    /// What is taken now.
    package var usage: Int64 { used.load(ordering: .relaxed) }

    /// One body's part, given back with it; by one thread at a time.
    final class Share {
        private let budget: ExpansionBudget
        private var taken: Int64 = 0

        init(of budget: ExpansionBudget) { self.budget = budget }

        deinit { _ = budget.used.wrappingSubtract(taken, ordering: .relaxed) }

        /// Has the part grow to so many bytes; false where there are not as many left.
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
