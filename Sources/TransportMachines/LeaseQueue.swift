// SPDX-License-Identifier: Apache-2.0

/// The leases that wait for a connection to one origin: by priority, and FIFO within a priority.
///
/// When seven leases of the highest priority have been served in a row while others waited, the next lease is the one of a lower
/// priority that joined first. This prevents starvation.
///
/// A lease that leaves from the middle is only removed from the table of `Waiter`s. Its entry is dropped when it reaches the front,
/// or when half of the queue consists of such entries, so every operation takes amortized constant time.
struct LeaseQueue {
    /// The state of a queued lease.
    struct Waiter {
        var origin: OriginID
        var priority: Float
        /// Whether the lease needs a connection that has not been used before.
        var onlyNew: Bool
        /// Changes when the lease moves to another priority, so that its former entry is recognized as removed.
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

        /// Drops removed entries from the front; returns whether any entry is left.
        mutating func trim(_ waiters: [LeaseID: Waiter]) -> Bool {
            while head < entries.count, waiters[entries[head].lease]?.ticket != entries[head].ticket { head += 1 }
            // The consumed front of a long band is released when it makes up half of the band.
            if head > 32, 2 * head > entries.count {
                entries.removeFirst(head)
                head = 0
            }
            return head < entries.count
        }
    }

    /// The number of highest-priority leases served before a lease of a lower priority gets its turn.
    private static let longestRun = 7

    /// Sorted, the highest priority last.
    ///
    /// Apps use only a few priorities, so there are few bands.
    private var bands: [Band] = []
    private var entryCount = 0
    /// The number of highest-priority leases served in a row while others waited.
    private var run = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// Whether all leases have the same priority, so that a joining lease is the last.
    var isFIFO: Bool { bands.count < 2 }

    /// The highest priority of the queued leases; this may be the priority of a lease that has just left.
    var highestPriority: Float? { bands.last?.priority }

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

    /// Removes the first lease from the queue and from `waiters`.
    mutating func popFirst(from waiters: inout [LeaseID: Waiter]) -> LeaseID? {
        trim(waiters)
        guard let index = next(after: run, heads: bands.map(\.head)) else { return nil }
        run = bands.count > 1 && index == bands.count - 1 ? run + 1 : 0
        let lease = bands[index].entries[bands[index].head].lease
        bands[index].head += 1
        entryCount -= 1
        count -= 1
        waiters.removeValue(forKey: lease)
        if bands[index].head == bands[index].entries.count { bands.remove(at: index) }
        return lease
    }

    /// The first lease, which stays in the queue.
    mutating func first(of waiters: [LeaseID: Waiter]) -> LeaseID? {
        trim(waiters)
        return next(after: run, heads: bands.map(\.head)).map { bands[$0].entries[bands[$0].head].lease }
    }

    /// The leases that are served next if no other lease joins, at most `maximum`.
    mutating func first(_ maximum: Int, of waiters: [LeaseID: Waiter]) -> [LeaseID] {
        trim(waiters)
        var leases: [LeaseID] = []
        var heads = bands.map(\.head)
        var run = run
        while leases.count < maximum, let index = next(after: run, heads: heads) {
            let waiting = heads.indices.filter { heads[$0] < bands[$0].entries.count }
            run = waiting.count > 1 && index == waiting.last ? run + 1 : 0
            leases.append(bands[index].entries[heads[index]].lease)
            repeat {
                heads[index] += 1
            } while heads[index] < bands[index].entries.count && isRemoved(index, heads[index], waiters)
        }
        return leases
    }

    /// Updates the queue after one of its leases was removed from `waiters`, or got another ticket.
    mutating func didRemove(waiters: [LeaseID: Waiter]) {
        count -= 1
        if count == 0 { run = 0 }
        guard entryCount > 32, entryCount > 2 * count else { return }
        for index in bands.indices {
            let current = bands[index].entries[bands[index].head...].filter { waiters[$0.lease]?.ticket == $0.ticket }
            bands[index].entries = current
            bands[index].head = 0
        }
        bands.removeAll { $0.entries.isEmpty }
        entryCount = bands.reduce(0) { $0 + $1.entries.count }
    }

    private func isRemoved(_ band: Int, _ place: Int, _ waiters: [LeaseID: Waiter]) -> Bool {
        let entry = bands[band].entries[place]
        return waiters[entry.lease]?.ticket != entry.ticket
    }

    /// The index of the band to serve next, if each band is consumed up to its element of `heads`.
    private func next(after run: Int, heads: [Int]) -> Int? {
        guard let top = heads.indices.last(where: { heads[$0] < bands[$0].entries.count }) else { return nil }
        guard run >= Self.longestRun else { return top }
        let lower = heads.indices.filter { $0 < top && heads[$0] < bands[$0].entries.count }
        return lower.min { bands[$0].entries[heads[$0]].ticket < bands[$1].entries[heads[$1]].ticket } ?? top
    }

    /// Makes every band begin with a queued lease.
    private mutating func trim(_ waiters: [LeaseID: Waiter]) {
        var isLeft = true
        for index in bands.indices {
            let before = bands[index].entries.count - bands[index].head
            if !bands[index].trim(waiters) { isLeft = false }
            entryCount -= before - (bands[index].entries.count - bands[index].head)
        }
        if !isLeft { bands.removeAll { $0.head == $0.entries.count } }
    }
}
