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
        /// For its origin to answer another one.
        case origin
        /// For the network, room on the disk, or whoever holds it.
        case parked
        case running
        case stopping(StopReason)
    }

    struct Entry: Sendable {
        var item: Item
        var place = Place.parked
        /// Since when it waits, as far as its order goes; the time of a pause is not waited.
        var since: Double
        /// It goes behind the others, whatever its priority.
        var isBehind = false
        /// For the list of instants.
        var instant = 0.0
        /// Of the last attempt, as long as there is no other.
        var failure: Failure?
        /// The disk has less room than it needs.
        var lacksSpace = false
        /// It runs, and has found no way to its host.
        var lacksNetwork = false
        /// Not before that, as the server asked for it.
        var serverBound: Double?
        var isExpired = false
        /// When its last attempt began.
        var startTime = -Double.infinity
        /// When its speed began to be measured; nil where nobody waits for its place.
        var sampleTime: Double?
        var sampleBytes: Int64 = 0
        var bytes: Int64 = 0
        var line: LineKey { LineKey(program: item.program, session: item.session, host: item.host) }
    }

    typealias LineKey = ReadyTransfers.LineKey
    typealias Rank = ReadyTransfers.Rank
    typealias Turn = ReadyTransfers.Turn

    let limits: Limits
    var conditions = Conditions()
    var entries: [ID: Entry] = [:]
    /// Which of them are of one session and host.
    var members: [LineKey: Set<ID>] = [:]
    var ordinary = ReadyTransfers()
    var discretionary = ReadyTransfers()
    /// Of each program that has transfers that run or are ready.
    var turns: [Int64: Turn] = [:]
    var instants = OrderedLine<ID, Rank>()
    var deadlines = OrderedLine<ID, Rank>()
    /// Of all transfers, and of those that do not answer when the next attempt is due.
    var origins: [String: Origin] = [:]
    var originInstants = OrderedLine<String, Double>()
    var running: Set<ID> = []
    /// Of those that run, and of these those that are to stop.
    var runningDiscretionary = 0
    var stoppingCount = 0
    var hostCounts: [String: Int] = [:]
    /// Those that have as many as they may.
    var fullHosts: Set<String> = []
    var sessionHostCounts: [LineKey: Int] = [:]
    /// Without a way to other networks: the lines of which one found none to its host since the network last changed.
    var offline: Set<LineKey> = []
    var networkChange = -Double.infinity
    var served = 0
    /// When somebody's speed is to be judged.
    var sampleDue = Double.infinity
    /// Whether something changed that places are given by.
    var isUnsettled = false
    var wakeTime: Double?

    package init(limits: Limits = Limits()) { self.limits = limits }

    package mutating func handle(_ event: Event, now: Double) -> [Action] {
        var actions: [Action] = []
        var isTimerGone = false
        switch event {
        case .added(let item): add(item, now)
        case .removed(let id): remove(id)
        case .held(let id): hold(id, &actions)
        case .released(let id):
            guard entries[id]?.item.isHeld == true else { break }
            entries[id]?.item.isHeld = false
            entries[id]?.since = now
            if let origin = entries[id]?.item.origin { hasten(origin, now) }
            reconsider(id, now)
        case .priorityChanged(let id, let priority):
            guard entries[id] != nil else { break }
            entries[id]?.item.priority = Self.cleaned(priority)
            reconsider(id, now)
        case .progressed(let id, let bytes): progressed(id, bytes)
        case .answered(let id): noteAnswer(id, now)
        case .stopped(let id): stopped(id, now)
        case .failed(let id, let failure, let madeProgress, let retryAfter, let random):
            failed(id, failure, madeProgress, retryAfter, random, now)
        case .conditionsChanged(let next, let random): change(next, random, now, &actions)
        case .lacksNetwork(let id): lacksNetwork(id, now, &actions)
        case .networkChanged: tryNetwork(now)
        case .lacksSpace(let id):
            guard let entry = entries[id], !entry.lacksSpace else { break }
            entries[id]?.lacksSpace = true
            reconsider(id, now)
        case .foundSpace(let id, let endsPause): foundSpace(id, endsPause, now)
        case .clockMoved(let seconds):
            moveClock(by: seconds, now)
            // Whoever sleeps does so for a time, not until an instant.
            isTimerGone = true
        // It may have come early.
        case .tick: isTimerGone = true
        }
        bringDue(now, &actions)
        settle(now, &actions)
        setTimer(isTimerGone, &actions)
        return actions
    }

    // MARK: Coming and going

    private mutating func add(_ item: Item, _ now: Double) {
        guard entries[item.id] == nil else { return }
        var item = item
        // A pause from before the clock was set, or from another life, is no longer than it could be now.
        item.notBefore = item.notBefore.map { min($0, now + limits.longestRetryAfter) }
        item.priority = Self.cleaned(item.priority)
        if item.deadline.isNaN { item.deadline = .infinity }
        entries[item.id] = Entry(item: item, since: max(now, item.earliestBegin ?? now))
        deadlines.insert(item.id, at: Rank(at: item.deadline, id: item.id))
        let line = LineKey(program: item.program, session: item.session, host: item.host)
        members[line, default: []].insert(item.id)
        join(item.origin, now)
        reconsider(item.id, now)
    }

    private static func cleaned(_ priority: Float) -> Float { priority.isNaN ? 0.5 : min(max(priority, 0), 1) }

    private mutating func remove(_ id: ID) {
        guard let entry = entries[id] else { return }
        park(id)
        deadlines.remove(id)
        entries[id] = nil
        members[entry.line]?.remove(id)
        if members[entry.line]?.isEmpty == true { members[entry.line] = nil }
        leave(entry.item.origin)
    }

    private mutating func hold(_ id: ID, _ actions: inout [Action]) {
        guard let entry = entries[id], !entry.item.isHeld else { return }
        entries[id]?.item.isHeld = true
        switch entry.place {
        case .running: stop(id, .held, &actions)
        case .ready, .timed, .origin: park(id)
        case .parked, .stopping: break
        }
    }

    mutating func stop(_ id: ID, _ reason: StopReason, _ actions: inout [Action]) {
        guard entries[id]?.place == .running else { return }
        entries[id]?.place = .stopping(reason)
        stoppingCount += 1
        // Its speed does not matter any more.
        isUnsettled = true
        actions.append(.stop(id, reason))
    }

    private mutating func progressed(_ id: ID, _ bytes: Int64) {
        guard let entry = entries[id], entry.place == .running else { return }
        entries[id]?.bytes = bytes
        if bytes > entry.bytes { entries[id]?.lacksNetwork = false }
        // It began anew.
        if bytes < entry.bytes { entries[id]?.sampleBytes = min(entry.sampleBytes, bytes) }
    }

    private mutating func stopped(_ id: ID, _ now: Double) {
        guard let entry = entries[id] else { return }
        var isTooSlow = false
        switch entry.place {
        case .stopping(let reason): isTooSlow = reason == .tooSlow
        case .running: break
        case .ready, .timed, .origin, .parked: return
        }
        park(id)
        if isTooSlow {
            entries[id]?.item.notBefore = now + limits.firstPause
            entries[id]?.since = now + limits.firstPause
            entries[id]?.isBehind = true
        }
        reconsider(id, now)
    }

    private mutating func failed(
        _ id: ID, _ failure: Failure, _ madeProgress: Bool, _ retryAfter: Double?, _ random: UInt64, _ now: Double
    ) {
        guard let entry = entries[id] else { return }
        switch entry.place {
        case .running, .stopping: break
        case .ready, .timed, .origin, .parked: return
        }
        if failure == .network, !madeProgress { noteSilence(entry, share: Self.share(random), now) }
        park(id)
        let attempts = madeProgress ? 1 : max(0, min(entry.item.attempts, 1 << 30)) + 1
        // Exponential, with full jitter: those that failed together do not come back together.
        let end = now + longestPause(after: attempts) * Self.share(random)
        let bound = retryAfter.map { now + min(max(0, $0), limits.longestRetryAfter) }
        let notBefore = max(end, bound ?? end)
        entries[id]?.item.attempts = attempts
        entries[id]?.item.notBefore = notBefore
        entries[id]?.failure = failure
        entries[id]?.serverBound = bound
        // Those that get nowhere do not keep their age, or they would have all the places in turn.
        if !madeProgress { entries[id]?.since = notBefore }
        reconsider(id, now)
    }

    func longestPause(after attempts: Int) -> Double {
        var longest = limits.firstPause
        for _ in 1..<max(1, min(attempts, 32)) where longest < limits.longestPause { longest *= 2 }
        return min(longest, limits.longestPause)
    }

    private mutating func change(_ next: Conditions, _ random: UInt64, _ now: Double, _ actions: inout [Action]) {
        let before = conditions
        guard before != next else { return }
        conditions = next
        if !next.allowDiscretionary {
            for id in running.sorted() where entries[id]?.item.isDiscretionary == true { stop(id, .conditions, &actions) }
        }
        let isBack = next.isConnected && !before.isConnected
        if isBack {
            offline = []
            endPauses(now)
        }
        if before.isConnected, !next.isConnected {
            for id in running.sorted() where entries[id]?.lacksNetwork == true { lacksNetwork(id, now, &actions) }
        }
        // What is in a line or waits for an instant may have to be parked, and the other way round.
        var random = random
        for id in entries.keys.sorted() {
            guard let entry = entries[id], !running.contains(id) else { continue }
            if isBack, entry.failure == .network {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let soon = max(now + limits.spread * Self.share(random), entry.serverBound ?? now)
                // A pause that is over is no reason to begin together with all the others.
                let notBefore = entry.item.notBefore.map { $0 > now ? min($0, soon) : soon } ?? soon
                entries[id]?.item.notBefore = notBefore
                entries[id]?.since = min(entry.since, notBefore)
            }
            reconsider(id, now)
        }
    }

    /// Where what it waited for has come, a pause is no more than a guess of when that is.
    private mutating func foundSpace(_ id: ID, _ endsPause: Bool, _ now: Double) {
        guard let entry = entries[id], entry.lacksSpace else { return }
        entries[id]?.lacksSpace = false
        if endsPause {
            entries[id]?.item.notBefore = entry.item.notBefore.map { min($0, now) }
            entries[id]?.since = min(entry.since, now)
        }
        reconsider(id, now)
    }

    private mutating func moveClock(by seconds: Double, _ now: Double) {
        guard seconds.isFinite else { return }
        moveOrigins(by: seconds)
        networkChange += seconds
        for id in entries.keys.sorted() {
            guard var entry = entries[id] else { continue }
            entry.item.deadline += seconds
            entry.item.notBefore = entry.item.notBefore.map { $0 + seconds }
            entry.serverBound = entry.serverBound.map { $0 + seconds }
            entry.sampleTime = entry.sampleTime.map { $0 + seconds }
            entry.since += seconds
            entry.startTime += seconds
            entries[id] = entry
            if !entry.isExpired { deadlines.insert(id, at: Rank(at: entry.item.deadline, id: id)) }
            reconsider(id, now)
        }
        isUnsettled = true
    }

    /// 0 up to 1.
    private static func share(_ random: UInt64) -> Double { Double(random >> 11) / Double(1 << 53) }

    // MARK: Where a transfer waits

    /// Puts one that does not run where it belongs.
    mutating func reconsider(_ id: ID, _ now: Double) {
        guard let entry = entries[id], !running.contains(id) else { return }
        park(id)
        let item = entry.item
        guard !item.isHeld, !entry.isExpired, !isOffline(entry), item.isUpload || conditions.hasSpace,
            !entry.lacksSpace, conditions.allowDiscretionary || !item.isDiscretionary
        else { return }
        let instant = max(item.notBefore ?? -.infinity, item.earliestBegin ?? -.infinity)
        if instant > now {
            entries[id]?.place = .timed
            entries[id]?.instant = instant
            instants.insert(id, at: Rank(at: instant, id: id))
        } else {
            enqueue(entry, now)
        }
    }

    private mutating func enqueue(_ entry: Entry, _ now: Double) {
        let item = entry.item
        let rank = entry.since - (entry.isBehind ? 0 : Double(item.priority) * limits.aging)
        if holdBack(entry, at: rank, now) { return }
        let turn = turns[item.program, default: Turn(program: item.program)]
        turns[item.program] = turn
        entries[item.id]?.place = .ready
        if item.isDiscretionary {
            discretionary.insert(item.id, at: rank, in: entry.line, turn: turn)
        } else {
            ordinary.insert(item.id, at: rank, in: entry.line, turn: turn)
        }
        isUnsettled = true
    }

    /// Takes a transfer out of wherever it is.
    private mutating func park(_ id: ID) {
        guard let entry = entries[id] else { return }
        entries[id]?.place = .parked
        switch entry.place {
        case .parked: return
        case .timed: return instants.remove(id)
        case .origin: return takeFromOrigin(entry.item)
        case .ready:
            takeFromLine(entry)
            giveUpProbe(entry.item)
        case .running, .stopping:
            if case .stopping = entry.place { stoppingCount -= 1 }
            giveUpProbe(entry.item)
            entries[id]?.sampleTime = nil
            running.remove(id)
            count(entry, by: -1)
        }
        isUnsettled = true
        let program = entry.item.program
        if turns[program]?.running == 0, !ordinary.has(program), !discretionary.has(program) { turns[program] = nil }
    }

    mutating func takeFromLine(_ entry: Entry) {
        if entry.item.isDiscretionary {
            discretionary.remove(entry.item.id, from: entry.line)
        } else {
            ordinary.remove(entry.item.id, from: entry.line)
        }
    }

    /// Counts one that runs, or did.
    mutating func count(_ entry: Entry, by change: Int) {
        let item = entry.item
        if item.isDiscretionary { runningDiscretionary += change }
        let ofHost = hostCounts[item.host, default: 0] + change
        hostCounts[item.host] = ofHost == 0 ? nil : ofHost
        if ofHost >= limits.perHost { fullHosts.insert(item.host) } else { fullHosts.remove(item.host) }
        let ofSession = sessionHostCounts[entry.line, default: 0] + change
        sessionHostCounts[entry.line] = ofSession == 0 ? nil : ofSession
        var turn = turns[item.program, default: Turn(program: item.program)]
        turn.running += change
        if change > 0 {
            served += 1
            turn.lastServed = served
        }
        turns[item.program] = turn
        ordinary.move(to: turn)
        discretionary.move(to: turn)
    }
}
