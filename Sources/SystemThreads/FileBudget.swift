// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Limits how many files the loads of the process may have open together, so that the app never runs out of descriptors because of
/// the library.
///
/// The budget is the files' share of ``DescriptorLimit``, separate from the connections' share. When the budget is used up,
/// downloads and uploads wait in a queue; uses that can do without a descriptor do not wait.
///
/// A load that has a connection may wait for a file, and a load that has a file may wait for a connection. To rule out a deadlock,
/// loads of the second kind get at most half of the files (``Part/half``). The other half is reserved for loads that, while they
/// have their file, wait only for their server, the app and the disk (``Part/whole``).
package final class FileBudget: Sendable {
    /// The part of the budget that a load may use.
    package enum Part: Sendable {
        /// For loads that already have their connection, and do not keep the connection longer than the file.
        case whole
        /// For loads that may wait for a connection while they have the file, and for uses that can do without a descriptor.
        case half
    }

    package typealias Made = @Sendable (FileReservation) -> Void

    /// The waiters for one part, in FIFO order.
    fileprivate struct WaitQueue {
        var waiting: [Int: Made] = [:]
        private var head = 0
        private var tail = 0

        mutating func append(_ made: @escaping Made) -> Int {
            defer { tail += 1 }
            waiting[tail] = made
            return tail
        }

        mutating func popFirst() -> Made? {
            while head < tail {
                defer { head += 1 }
                if let made = waiting.removeValue(forKey: head) { return made }
            }
            return nil
        }
    }

    fileprivate struct State {
        var used = 0
        var usedOfHalf = 0
        var queues = (whole: WaitQueue(), half: WaitQueue())
        /// The number of waiters served from the `whole` queue since a waiter was last served from the `half` queue.
        var wholesInRow = 0
    }

    /// A position in the queue.
    package struct Ticket: Sendable {
        fileprivate let part: Part
        fileprivate let number: Int
    }

    package enum Answer: Sendable {
        case room(FileReservation)
        case queued(Ticket)
    }

    package static let shared = FileBudget()

    private let state = Mutex(State())
    private let descriptorLimit: @Sendable () -> Int

    /// - Parameter descriptorLimit: Returns the number of descriptors that ``DescriptorLimit`` divides.
    package init(descriptorLimit: @escaping @Sendable () -> Int = DescriptorLimit.divisible) {
        self.descriptorLimit = descriptorLimit
    }

    /// The descriptors that files use, the limit, and the number of waiters.
    package var usage: (used: Int, limit: Int, waiting: Int) {
        let limit = limit
        return state.withLock { ($0.used, limit, $0.queues.whole.waiting.count + $0.queues.half.waiting.count) }
    }

    private var limit: Int { DescriptorLimit.files(of: descriptorLimit()) }

    /// Takes `count` descriptors if they are available and no queued load comes first.
    package func take(_ part: Part, count: Int = 1) -> FileReservation? {
        let limit = limit
        let isThere = state.withLock { $0.hasNoWaiters(before: part) && $0.take(part, count, of: limit) }
        return isThere ? FileReservation(self, part, count) : nil
    }

    /// Requests a descriptor for a file: returns a reservation at once, or queues the request and later calls `made` with the
    /// reservation, on any thread.
    package func ask(_ part: Part, _ made: @escaping Made) -> Answer {
        let limit = limit
        let place = state.withLock { state -> Ticket? in
            if state.hasNoWaiters(before: part), state.take(part, 1, of: limit) { return nil }
            return Ticket(part: part, number: state.append(made, part))
        }
        guard let place else { return .room(FileReservation(self, part, 1)) }
        // The app may have raised the process's limit in the meantime.
        serve(limit)
        return .queued(place)
    }

    /// Leaves the queue; `made` may still be called if a descriptor is already being handed over.
    package func leave(_ place: Ticket) {
        _ = state.withLock { $0.leave(place.part, place.number) }
    }

    fileprivate func giveBack(_ part: Part, _ count: Int) {
        state.withLock { $0.release(part, count) }
        serve(limit)
    }

    private func serve(_ limit: Int) {
        let served = state.withLock { $0.serve(limit) }
        for (made, part) in served { made(FileReservation(self, part, 1)) }
    }
}

extension FileBudget.State {
    /// Returns whether no queued load takes precedence over a new request for this part.
    fileprivate func hasNoWaiters(before part: FileBudget.Part) -> Bool {
        queues.whole.waiting.isEmpty && (part == .whole || queues.half.waiting.isEmpty)
    }

    fileprivate mutating func take(_ part: FileBudget.Part, _ count: Int, of limit: Int) -> Bool {
        guard used + count <= limit else { return false }
        if part == .half {
            guard usedOfHalf + count <= limit / 2 else { return false }
            usedOfHalf += count
        }
        used += count
        return true
    }

    fileprivate mutating func release(_ part: FileBudget.Part, _ count: Int) {
        used -= count
        if part == .half { usedOfHalf -= count }
    }

    fileprivate mutating func append(_ made: @escaping FileBudget.Made, _ part: FileBudget.Part) -> Int {
        part == .whole ? queues.whole.append(made) : queues.half.append(made)
    }

    fileprivate mutating func leave(_ part: FileBudget.Part, _ number: Int) -> FileBudget.Made? {
        part == .whole ? queues.whole.waiting.removeValue(forKey: number) : queues.half.waiting.removeValue(forKey: number)
    }

    /// Hands free descriptors to the waiters: loads that have a connection come first, but after seven of them in a row, one of the
    /// other waiters is served.
    fileprivate mutating func serve(_ limit: Int) -> [(FileBudget.Made, FileBudget.Part)] {
        var served: [(FileBudget.Made, FileBudget.Part)] = []
        while true {
            let isHalfsTurn = queues.whole.waiting.isEmpty || wholesInRow >= Self.longestRun
            if isHalfsTurn, !queues.half.waiting.isEmpty, take(.half, 1, of: limit) {
                wholesInRow = 0
                if let made = queues.half.popFirst() { served.append((made, .half)) }
            } else if !queues.whole.waiting.isEmpty, take(.whole, 1, of: limit) {
                wholesInRow += 1
                if let made = queues.whole.popFirst() { served.append((made, .whole)) }
            } else {
                return served
            }
        }
    }

    private static let longestRun = 7
}

/// A reservation for an open file, or for several descriptors, which ends when the last reference to it is released.
package final class FileReservation: Sendable {
    private let budget: FileBudget
    private let part: FileBudget.Part
    private let count: Int

    fileprivate init(_ budget: FileBudget, _ part: FileBudget.Part, _ count: Int) {
        self.budget = budget
        self.part = part
        self.count = count
    }

    deinit { budget.giveBack(part, count) }
}
