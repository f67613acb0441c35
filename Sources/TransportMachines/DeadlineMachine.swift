//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Watches the time of every load of a session with one timer: how long nothing came (the request timeout) and how long it took
/// altogether (the resource timeout).
///
/// Progress, which is noted for every piece of data, only stores the instant. The timer is set for the earliest instant at which
/// something may be due; when it fires, whatever is due expires, and it is set anew for the rest. So it fires now and then for nothing,
/// at most once per shortest timeout. Since it looks at every load, it fires the less often the more there are; and what is due at the
/// same time expires a part at a time, so that whoever owns the timer can do other things in between.
///
/// Instants and durations are nanoseconds on any monotonic clock. A load keeps its slot until it is removed; once it was idle for too
/// long only its deadline is left to come, and after its deadline nothing is.
package struct DeadlineMachine: Sendable {
    package enum Expiry: Hashable, Sendable {
        /// Nothing came for as long as the load allows.
        case idle
        /// The whole load took longer than it may.
        case resource
    }

    package enum Action: Hashable, Sendable {
        /// Starts the one timer, or moves it.
        case startTimer(at: Int64)
        /// The load in a slot is out of time.
        case expire(slot: Int, Expiry)
    }

    private struct Watch {
        var idleTimeout: Int64
        var lastProgress: Int64
        var deadline: Int64

        var idleDue: Int64 { lastProgress.addingSaturating(idleTimeout) }
        var due: Int64 { min(idleDue, deadline) }
    }

    /// How many loads expire at once; the others follow a moment later.
    package static let expiriesAtOnce = 128
    /// That moment, in nanoseconds.
    package static let pause: Int64 = 100_000

    /// Free slots hold nil.
    private var watches: [Watch?] = []
    private var freeSlots: [Int] = []
    private var timerAt: Int64?

    package init() {}

    /// The timer is never set to less than this ahead, in nanoseconds: a millisecond, and one more for each thousand loads.
    private var shortestDelay: Int64 { 1_000_000 + 1_000 * Int64(watches.count - freeSlots.count) }

    /// Begins to watch a load.
    ///
    /// - Parameters:
    ///   - idleTimeout: How long the load may be without progress; nil for ever.
    ///   - deadline: The instant by which it must be complete; nil for never.
    ///   - now: The present instant; the idle time counts from here.
    /// - Returns: The slot by which the load is known from now on, and what to do.
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

    /// Notes that something came or went: the idle time counts from here.
    package mutating func progress(_ slot: Int, now: Int64) {
        watches[slot]?.lastProgress = now
    }

    /// Gives the slot back; the timer stays as it is, and will find nothing to do.
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
                guard actions.count < Self.expiriesAtOnce else {
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
