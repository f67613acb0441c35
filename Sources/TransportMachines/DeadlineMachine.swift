// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Tracks the timeouts of all loads of a session with one timer: the time without progress (the request timeout) and the total time
/// (the resource timeout).
///
/// Progress is noted for every piece of data, and only stores the instant. The timer is set to the earliest instant at which a load
/// may be due. When the timer fires, the loads that are due expire, and the timer is set again for the others. Because progress
/// does not move the timer, it may fire without effect, but at most once within the shortest timeout. Each run scans all loads, so
/// the timer fires less often if there are more loads. If many loads are due at once, they expire in batches, so that the owner of
/// the timer can do other work in between.
///
/// Instants and durations are nanoseconds on any monotonic clock. A load keeps its slot until it is removed. After the idle timeout
/// of a load, only its deadline can still expire; after its deadline, nothing can expire.
package struct DeadlineMachine: Sendable {
    package enum Expiry: Hashable, Sendable {
        /// There was no progress for the idle timeout.
        case idle
        /// The whole load took longer than allowed.
        case resource
    }

    package enum Action: Hashable, Sendable {
        /// Starts the one timer, or moves it.
        case startTimer(at: Int64)
        /// The load in a slot has timed out.
        case expire(slot: Int, Expiry)
    }

    private struct Watch {
        var idleTimeout: Int64
        var lastProgress: Int64
        var deadline: Int64

        var idleDue: Int64 { lastProgress.addingSaturating(idleTimeout) }
        var due: Int64 { min(idleDue, deadline) }
    }

    /// The number of loads that expire in one batch; the others follow after ``pause``.
    package static let batchSize = 128
    /// The pause between batches, in nanoseconds.
    package static let pause: Int64 = 100_000

    /// Free slots hold nil.
    private var watches: [Watch?] = []
    private var freeSlots: [Int] = []
    private var timerAt: Int64?

    package init() {}

    /// The minimum delay of the timer in nanoseconds: a millisecond, plus a microsecond per load.
    private var shortestDelay: Int64 { 1_000_000 + 1_000 * Int64(watches.count - freeSlots.count) }

    /// Starts to track a load.
    ///
    /// - Parameters:
    ///   - idleTimeout: The maximum time without progress; nil for no limit.
    ///   - deadline: The instant by which the load must be complete; nil for no deadline.
    ///   - now: The current instant, from which the idle time counts.
    /// - Returns: The slot that identifies the load from now on, and the actions.
    package mutating func add(idleTimeout: Int64?, deadline: Int64?, now: Int64) -> (slot: Int, actions: [Action]) {
        let watch = Watch(idleTimeout: max(0, idleTimeout ?? .max), lastProgress: now, deadline: deadline ?? .max)
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            watches[slot] = watch
        } else {
            slot = watches.count
            watches.append(watch)
        }
        return (slot, startTimer(for: watch.due, now: now))
    }

    /// Notes progress: the idle time counts from `now`.
    package mutating func progress(_ slot: Int, now: Int64) {
        watches[slot]?.lastProgress = now
    }

    /// Frees the slot.
    ///
    /// The timer stays set, and may fire without effect.
    package mutating func remove(_ slot: Int) {
        guard watches[slot] != nil else { return }
        watches[slot] = nil
        freeSlots.append(slot)
    }

    package mutating func timerFired(now: Int64) -> [Action] {
        timerAt = nil
        var actions: [Action] = []
        var next = Int64.max
        for slot in watches.indices {
            guard var watch = watches[slot], watch.due < .max else { continue }
            if watch.due <= now {
                guard actions.count < Self.batchSize else {
                    timerAt = now.addingSaturating(Self.pause)
                    return actions + [.startTimer(at: now.addingSaturating(Self.pause))]
                }
                let expiry = watch.deadline <= watch.idleDue ? Expiry.resource : .idle
                actions.append(.expire(slot: slot, expiry))
                watch.idleTimeout = .max
                if expiry == .resource { watch.deadline = .max }
                watches[slot] = watch
            }
            next = min(next, watch.due)
        }
        return actions + startTimer(for: next, now: now)
    }

    private mutating func startTimer(for due: Int64, now: Int64) -> [Action] {
        let instant = max(due, now.addingSaturating(shortestDelay))
        guard due < .max, instant < timerAt ?? .max else { return [] }
        timerAt = instant
        return [.startTimer(at: instant)]
    }
}
