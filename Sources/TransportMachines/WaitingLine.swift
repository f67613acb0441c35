//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The leases that wait for a connection to one origin: the highest priority first, and within a priority the first come.
///
/// Leaving from the middle only strikes a lease out of `Waiter`'s table; its entry is dropped when it comes to the front, or when
/// half of the line is such entries, so every operation is constant on average.
struct WaitingLine {
    /// What is known of a lease while it waits.
    struct Waiter {
        var origin: OriginID
        var priority: Float
        /// A connection that served before is not for it.
        var onlyNew: Bool
        /// Changes when the lease moves to another priority, so that its former entry is recognised as struck out.
        var ticket: Int
    }

    private struct Entry {
        var lease: LeaseID
        var ticket: Int
    }

    private struct Band {
        var priority: Float
        var entries: [Entry]
        var head = 0
    }

    /// Sorted, the highest priority last; apps use a handful of priorities, so there are a handful of bands.
    private var bands: [Band] = []
    private var entryCount = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ lease: LeaseID, _ waiter: Waiter) {
        let entry = Entry(lease: lease, ticket: waiter.ticket)
        let index = bands.firstIndex { $0.priority >= waiter.priority } ?? bands.count
        if index < bands.count, bands[index].priority == waiter.priority {
            bands[index].entries.append(entry)
        } else {
            bands.insert(Band(priority: waiter.priority, entries: [entry]), at: index)
        }
        entryCount += 1
        count += 1
    }

    /// Takes the first in line out of it, and out of `waiters`.
    mutating func popFirst(from waiters: inout [LeaseID: Waiter]) -> LeaseID? {
        while let last = bands.indices.last {
            while bands[last].head < bands[last].entries.count {
                let entry = bands[last].entries[bands[last].head]
                bands[last].head += 1
                entryCount -= 1
                guard waiters[entry.lease]?.ticket == entry.ticket else { continue }
                waiters.removeValue(forKey: entry.lease)
                count -= 1
                trim(last)
                return entry.lease
            }
            bands.removeLast()
        }
        return nil
    }

    /// The first in line, which stays there.
    func first(of waiters: [LeaseID: Waiter]) -> LeaseID? {
        for band in bands.reversed() {
            for entry in band.entries[band.head...] where waiters[entry.lease]?.ticket == entry.ticket { return entry.lease }
        }
        return nil
    }

    /// To be called after a lease of this line was struck out of `waiters`, or given another ticket.
    mutating func didStrikeOut(waiters: [LeaseID: Waiter]) {
        count -= 1
        guard entryCount > 32, entryCount > 2 * count else { return }
        for index in bands.indices {
            let current = bands[index].entries[bands[index].head...].filter { waiters[$0.lease]?.ticket == $0.ticket }
            bands[index].entries = current
            bands[index].head = 0
        }
        bands.removeAll { $0.entries.isEmpty }
        entryCount = bands.reduce(0) { $0 + $1.entries.count }
    }

    /// Gives the front of a long band back once half of it is behind the head.
    private mutating func trim(_ last: Int) {
        if bands[last].head == bands[last].entries.count {
            bands.removeLast()
        } else if bands[last].head > 32, 2 * bands[last].head > bands[last].entries.count {
            bands[last].entries.removeFirst(bands[last].head)
            bands[last].head = 0
        }
    }
}
