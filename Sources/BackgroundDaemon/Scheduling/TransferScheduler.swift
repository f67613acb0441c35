//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Decides which background transfer runs when.
///
/// Places are few, and programs have equal shares in them: whose transfers run least is next, and of equals the one that was served longest
/// ago. Of one program the highest priority comes first, of equals the oldest; waiting makes up for priority in time. Discretionary
/// transfers run on unmetered networks and external power, in at most half of the places, and give them to others.
///
/// Those that could run at once are in lines, one for each session and host, so that a line whose host is busy costs one look; those that
/// wait for a time are in one ordered list. Neither grows with what waits when something else happens.
package struct TransferScheduler: Sendable {
    enum Place: Hashable, Sendable {
        /// In a line.
        case ready
        /// For an instant.
        case timed
        /// For the network, room on the disk, or whoever holds it.
        case parked
        case running
        case stopping(StopReason)
    }

    struct Entry: Sendable {
        var item: Item
        var place = Place.parked
        /// What orders it in its line: smaller is sooner.
        var rank = 0.0
        /// For the list of instants.
        var instant = 0.0
        var failure: Failure?
        var isExpired = false
        /// Of the sample of its speed.
        var sampleTime = 0.0
        var sampleBytes: Int64 = 0
        var bytes: Int64 = 0
        var line: LineKey { LineKey(session: item.session, host: item.host, isDiscretionary: item.isDiscretionary) }
    }

    struct LineKey: Hashable, Sendable {
        var session: Int64
        var host: String
        var isDiscretionary: Bool
    }

    /// Those of one program that could run.
    struct Share: Sendable {
        var lines: Set<LineKey> = []
        var running = 0
        var lastServed = 0
    }

    let limits: Limits
    var conditions = Conditions()
    var entries: [ID: Entry] = [:]
    var lines: [LineKey: OrderedLine] = [:]
    var shares: [Int64: Share] = [:]
    var instants = OrderedLine()
    var deadlines = OrderedLine()
    var parked: Set<ID> = []
    var running: Set<ID> = []
    var runningDiscretionary = 0
    var hostCounts: [String: Int] = [:]
    var sessionHostCounts: [LineKey: Int] = [:]
    var served = 0
    var wakeTime: Double?

    package init(limits: Limits = Limits()) { self.limits = limits }

    package mutating func handle(_ event: Event, now: Double) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .added(let item): add(item, now)
        case .removed(let id): remove(id)
        case .held(let id): hold(id, &actions)
        case .released(let id):
            guard entries[id]?.item.isHeld == true else { break }
            entries[id]?.item.isHeld = false
            reconsider(id, now)
        case .priorityChanged(let id, let priority):
            guard entries[id] != nil else { break }
            entries[id]?.item.priority = priority
            reconsider(id, now)
        case .progressed(let id, let bytes): entries[id]?.bytes = bytes
        case .stopped(let id): stopped(id, now)
        case .failed(let id, let failure, let madeProgress, let retryAfter, let random):
            failed(id, failure, madeProgress, retryAfter, random, now)
        case .conditionsChanged(let next, let random): change(next, random, now, &actions)
        case .clockMoved(let seconds): moveClock(by: seconds, now)
        case .tick: break
        }
        bringDue(now, &actions)
        judgeSpeed(now, &actions)
        fill(now, &actions)
        setTimer(now, &actions)
        return actions
    }

    // MARK: Coming and going

    private mutating func add(_ item: Item, _ now: Double) {
        guard entries[item.id] == nil else { return }
        var item = item
        // A pause from before the clock was set, or from another life, is no longer than it could be now.
        item.notBefore = item.notBefore.map { min($0, now + limits.longestRetryAfter) }
        entries[item.id] = Entry(item: item)
        deadlines.insert(item.id, at: item.deadline)
        parked.insert(item.id)
        reconsider(item.id, now)
    }

    private mutating func remove(_ id: ID) {
        guard let entry = entries[id] else { return }
        leave(id)
        deadlines.remove(id, at: entry.item.deadline)
        entries[id] = nil
        parked.remove(id)
    }

    private mutating func hold(_ id: ID, _ actions: inout [Action]) {
        guard let entry = entries[id], !entry.item.isHeld else { return }
        entries[id]?.item.isHeld = true
        switch entry.place {
        case .running: stop(id, .held, &actions)
        case .ready, .timed: park(id)
        case .parked, .stopping: break
        }
    }

    mutating func stop(_ id: ID, _ reason: StopReason, _ actions: inout [Action]) {
        guard entries[id]?.place == .running else { return }
        entries[id]?.place = .stopping(reason)
        actions.append(.stop(id, reason))
    }

    private mutating func stopped(_ id: ID, _ now: Double) {
        guard let entry = entries[id] else { return }
        var isTooSlow = false
        switch entry.place {
        case .stopping(let reason): isTooSlow = reason == .tooSlow
        case .running: break
        case .ready, .timed, .parked: return
        }
        park(id)
        if isTooSlow {
            entries[id]?.item.notBefore = now + limits.firstPause
            // Behind all that wait.
            entries[id]?.item.attempts += 1
        }
        reconsider(id, now)
    }

    private mutating func failed(
        _ id: ID, _ failure: Failure, _ madeProgress: Bool, _ retryAfter: Double?, _ random: UInt64, _ now: Double
    ) {
        guard let entry = entries[id] else { return }
        switch entry.place {
        case .running, .stopping: break
        case .ready, .timed, .parked: return
        }
        park(id)
        let attempts = madeProgress ? 1 : entry.item.attempts + 1
        // Exponential, with full jitter: those that failed together do not come back together.
        var longest = limits.firstPause
        for _ in 1..<max(1, min(attempts, 32)) where longest < limits.longestPause { longest *= 2 }
        var pause = min(longest, limits.longestPause) * Self.share(random)
        if let retryAfter { pause = max(pause, min(max(0, retryAfter), limits.longestRetryAfter)) }
        entries[id]?.item.attempts = attempts
        entries[id]?.item.notBefore = now + pause
        entries[id]?.failure = failure
        reconsider(id, now)
    }

    private mutating func change(_ next: Conditions, _ random: UInt64, _ now: Double, _ actions: inout [Action]) {
        let before = conditions
        conditions = next
        if !next.allowDiscretionary {
            for id in running.sorted() where entries[id]?.item.isDiscretionary == true { stop(id, .conditions, &actions) }
        }
        guard before != next else { return }
        let isBack = next.isConnected && !before.isConnected
        // What is in a line or waits for an instant may have to be parked, and the other way round.
        var random = random
        for id in entries.keys.sorted() {
            guard let entry = entries[id], entry.place != .running else { continue }
            if case .stopping = entry.place { continue }
            if isBack, entry.failure == .network, let notBefore = entry.item.notBefore, notBefore > now {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                entries[id]?.item.notBefore = min(notBefore, now + limits.spread * Self.share(random))
            }
            reconsider(id, now)
        }
    }

    private mutating func moveClock(by seconds: Double, _ now: Double) {
        for id in entries.keys.sorted() {
            guard let entry = entries[id] else { continue }
            deadlines.remove(id, at: entry.item.deadline)
            entries[id]?.item.deadline += seconds
            deadlines.insert(id, at: entry.item.deadline + seconds)
            entries[id]?.sampleTime += seconds
            guard let notBefore = entry.item.notBefore else { continue }
            entries[id]?.item.notBefore = notBefore + seconds
            reconsider(id, now)
        }
    }

    /// 0 up to 1.
    private static func share(_ random: UInt64) -> Double { Double(random >> 11) / Double(1 << 53) }

    // MARK: Where a transfer waits

    /// Puts one that does not run where it belongs.
    mutating func reconsider(_ id: ID, _ now: Double) {
        guard let entry = entries[id] else { return }
        switch entry.place {
        case .running, .stopping: return
        case .ready, .timed, .parked: break
        }
        park(id)
        let item = entry.item
        guard !item.isHeld, !entry.isExpired, conditions.isConnected || item.isLocal, conditions.hasSpace || item.isUpload,
            conditions.allowDiscretionary || !item.isDiscretionary
        else { return }
        let instant = max(entries[id]?.item.notBefore ?? -.infinity, item.earliestBegin ?? -.infinity)
        parked.remove(id)
        if instant > now {
            entries[id]?.place = .timed
            entries[id]?.instant = instant
            instants.insert(id, at: instant)
        } else {
            enqueue(id, now)
        }
    }

    private mutating func enqueue(_ id: ID, _ now: Double) {
        guard let entry = entries[id] else { return }
        let rank = now - Double(entry.item.priority) * limits.aging
        entries[id]?.place = .ready
        entries[id]?.rank = rank
        lines[entry.line, default: OrderedLine()].insert(id, at: rank)
        shares[entry.item.program, default: Share()].lines.insert(entry.line)
    }

    /// Takes a transfer out of wherever it is.
    private mutating func leave(_ id: ID) {
        guard let entry = entries[id] else { return }
        switch entry.place {
        case .ready:
            lines[entry.line]?.remove(id, at: entry.rank)
            if lines[entry.line]?.isEmpty == true {
                lines[entry.line] = nil
                shares[entry.item.program]?.lines.remove(entry.line)
            }
        case .timed: instants.remove(id, at: entry.instant)
        case .parked: parked.remove(id)
        case .running, .stopping:
            running.remove(id)
            if entry.item.isDiscretionary { runningDiscretionary -= 1 }
            count(entry, by: -1)
        }
        if let share = shares[entry.item.program], share.lines.isEmpty, share.running == 0 { shares[entry.item.program] = nil }
    }

    private mutating func park(_ id: ID) {
        leave(id)
        entries[id]?.place = .parked
        parked.insert(id)
    }

    mutating func count(_ entry: Entry, by change: Int) {
        hostCounts[entry.item.host, default: 0] += change
        if hostCounts[entry.item.host] == 0 { hostCounts[entry.item.host] = nil }
        let key = LineKey(session: entry.item.session, host: entry.item.host, isDiscretionary: false)
        sessionHostCounts[key, default: 0] += change
        if sessionHostCounts[key] == 0 { sessionHostCounts[key] = nil }
        shares[entry.item.program, default: Share()].running += change
    }
}
