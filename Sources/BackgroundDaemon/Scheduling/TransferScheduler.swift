// SPDX-License-Identifier: Apache-2.0

/// Decides which background transfers run, and when.
///
/// There are few slots, and programs have equal shares of them: the program with the fewest running transfers is next; among
/// equals, the program that was served longest ago. Within a program the highest priority comes first, then the oldest transfer;
/// waiting compensates for a low priority over time. Discretionary transfers run on unmetered networks and external power, in at
/// most half of the slots, and give way to others.
///
/// Transfers that could run immediately are queued per session and host, so that a queue whose host is busy costs one check; others
/// wait for a time in one ordered queue. Only changes of the conditions, the network or the clock require work for every transfer.
package struct TransferScheduler: Sendable {
    enum Queue: Hashable, Sendable {
        /// The transfer is queued, ready to run.
        case ready
        /// Waits for an instant.
        case timed
        /// Waits for its origin to respond to another transfer.
        case origin
        /// Waits for the network or disk space, or is suspended.
        case parked
        case running
        case stopping(StopReason)
    }

    struct Entry: Sendable {
        var item: Item
        var place = Queue.parked
        /// When the transfer started to wait, for its position in the queue; a pause does not count as waiting.
        var since: Double
        /// Whether the transfer is queued behind the others, whatever its priority.
        var isDemoted = false
        /// The transfer's key in the queue of instants.
        var instant = 0.0
        /// The failure of the last attempt, until the next attempt.
        var failure: Failure?
        /// Whether the disk has less space than the transfer needs.
        var lacksSpace = false
        /// Whether the transfer is running, and has found no route to its host.
        var lacksNetwork = false
        /// The running attempt.
        var attempt = Exchange()
        /// How often in a row the transfer lost its slot because no response began.
        var unansweredStops = 0
        /// The earliest time of the next attempt according to the server.
        var serverBound: Double?
        var isExpired = false
        /// When the transfer's last attempt began.
        var startTime = -Double.infinity
        /// When the measurement of the transfer's speed began; nil if no other transfer waits for its slot.
        var sampleTime: Double?
        var sampleBytes: Int64 = 0
        var bytes: Int64 = 0
        var line: QueueKey { QueueKey(program: item.program, session: item.session, host: item.host) }
    }

    typealias QueueKey = ReadyTransfers.QueueKey
    typealias Rank = ReadyTransfers.Rank
    typealias Turn = ReadyTransfers.Turn

    let limits: Limits
    var conditions = Conditions()
    var entries: [ID: Entry] = [:]
    /// The transfers by session and host.
    var members: [QueueKey: Set<ID>] = [:]
    var ordinary = ReadyTransfers()
    var discretionary = ReadyTransfers()
    /// The turns of the programs with running or ready transfers.
    var turns: [Int64: Turn] = [:]
    var instants = PriorityQueue<ID, Rank>()
    var deadlines = PriorityQueue<ID, Rank>()
    /// All origins, and when the next attempt is due at each origin that does not respond.
    var origins: [String: Origin] = [:]
    var originInstants = PriorityQueue<String, Double>()
    var running: Set<ID> = []
    /// The number of running discretionary transfers, and the number of stopping transfers.
    var runningDiscretionary = 0
    var stoppingCount = 0
    var hostCounts: [String: Int] = [:]
    /// The hosts that have reached their limit.
    var fullHosts: Set<String> = []
    var sessionHostCounts: [QueueKey: Int] = [:]
    /// The queues in which a transfer has found no route since the last network change, while the machine is not connected.
    var offline: Set<QueueKey> = []
    var networkChange = -Double.infinity
    var served = 0
    /// When a transfer's speed is to be judged.
    var sampleDue = Double.infinity
    /// Whether something changed that affects the assignment of slots.
    var needsReassignment = false
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
            if let origin = entries[id]?.item.origin { bringForward(origin, now) }
            reconsider(id, now)
        case .priorityChanged(let id, let priority):
            guard entries[id] != nil else { break }
            entries[id]?.item.priority = Self.cleaned(priority)
            reconsider(id, now)
        case .progressed(let id, let bytes): progressed(id, bytes)
        case .answered(let id): noteResponse(id, now)
        case .sentAll(let id, let hasSentAll, let pause): noteSent(id, hasSentAll, now + pause, &actions)
        case .receivedResponse(let id): noteResponseHead(id)
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
            // The timer sleeps for a duration, not until an instant.
            isTimerGone = true
        // The timer may have fired early.
        case .tick: isTimerGone = true
        }
        processDue(now, &actions)
        settle(now, &actions)
        setTimer(isTimerGone, &actions)
        return actions
    }

    // MARK: Adding and removing

    private mutating func add(_ item: Item, _ now: Double) {
        guard entries[item.id] == nil else { return }
        var item = item
        // A pause from before the clock was set, or from an earlier daemon, is limited to the longest pause that is possible now.
        item.notBefore = item.notBefore.map { min($0, now + limits.longestRetryAfter) }
        item.priority = Self.cleaned(item.priority)
        if item.deadline.isNaN { item.deadline = .infinity }
        entries[item.id] = Entry(item: item, since: max(now, item.earliestBegin ?? now))
        deadlines.insert(item.id, at: Rank(at: item.deadline, id: item.id))
        let line = QueueKey(program: item.program, session: item.session, host: item.host)
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
        // The transfer's speed no longer matters.
        needsReassignment = true
        actions.append(.stop(id, reason))
    }

    private mutating func progressed(_ id: ID, _ bytes: Int64) {
        guard let entry = entries[id], entry.place == .running else { return }
        entries[id]?.bytes = bytes
        if bytes > entry.bytes { entries[id]?.lacksNetwork = false }
        // The transfer has started over.
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
            entries[id]?.isDemoted = true
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
        if failure == .network, !madeProgress { noteNoResponse(entry, share: Self.share(random), now) }
        park(id)
        let attempts = madeProgress ? 1 : max(0, min(entry.item.attempts, 1 << 30)) + 1
        // Exponential backoff with full jitter, so that transfers that failed together are not retried together.
        let end = now + longestPause(after: attempts) * Self.share(random)
        let bound = retryAfter.map { now + min(max(0, $0), limits.longestRetryAfter) }
        let notBefore = max(end, bound ?? end)
        entries[id]?.item.attempts = attempts
        entries[id]?.item.notBefore = notBefore
        entries[id]?.failure = failure
        entries[id]?.serverBound = bound
        // A transfer without progress counts as newly queued; otherwise such transfers would occupy all slots in turn.
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
        for id in running.sorted() where !next.allow(entries[id]?.item) && entries[id]?.attempt.hasSentAll != true {
            stop(id, .conditions, &actions)
        }
        let isBack = next.isConnected && !before.isConnected
        if isBack {
            offline = []
            endPauses(now)
        }
        if before.isConnected, !next.isConnected {
            for id in running.sorted() where entries[id]?.lacksNetwork == true { lacksNetwork(id, now, &actions) }
        }
        // Ready and timed transfers may have to be parked, and parked transfers released.
        var random = random
        for id in entries.keys.sorted() {
            guard let entry = entries[id], !running.contains(id) else { continue }
            if isBack, entry.failure == .network {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let soon = max(now + limits.spread * Self.share(random), entry.serverBound ?? now)
                // Transfers whose pause has already ended must not all start together.
                let notBefore = entry.item.notBefore.map { $0 > now ? min($0, soon) : soon } ?? soon
                entries[id]?.item.notBefore = notBefore
                entries[id]?.since = min(entry.since, notBefore)
            }
            reconsider(id, now)
        }
    }

    /// Resumes a transfer whose disk space is available; its pause was only an estimate of when there would be enough space.
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
            entry.attempt.unansweredSince = entry.attempt.unansweredSince.map { $0 + seconds }
            entry.since += seconds
            entry.startTime += seconds
            entries[id] = entry
            if !entry.isExpired { deadlines.insert(id, at: Rank(at: entry.item.deadline, id: id)) }
            reconsider(id, now)
        }
        needsReassignment = true
    }

    /// Returns a number from 0 up to, but not including, 1.
    private static func share(_ random: UInt64) -> Double { Double(random >> 11) / Double(1 << 53) }

    // MARK: Waiting

    /// Puts a transfer that is not running into the right queue.
    mutating func reconsider(_ id: ID, _ now: Double) {
        guard let entry = entries[id], !running.contains(id) else { return }
        park(id)
        let item = entry.item
        guard !item.isHeld, !entry.isExpired, !isOffline(entry), item.isUpload || conditions.hasSpace,
            !entry.lacksSpace, conditions.allow(item)
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
        let rank = entry.since - (entry.isDemoted ? 0 : Double(item.priority) * limits.aging)
        if queueAtOrigin(entry, at: rank, now) { return }
        let turn = turns[item.program, default: Turn(program: item.program)]
        turns[item.program] = turn
        entries[item.id]?.place = .ready
        if item.isDiscretionary {
            discretionary.insert(item.id, at: rank, in: entry.line, turn: turn)
        } else {
            ordinary.insert(item.id, at: rank, in: entry.line, turn: turn)
        }
        needsReassignment = true
    }

    /// Removes a transfer from its queue.
    private mutating func park(_ id: ID) {
        guard let entry = entries[id] else { return }
        entries[id]?.place = .parked
        switch entry.place {
        case .parked: return
        case .timed: return instants.remove(id)
        case .origin: return removeFromOriginQueue(entry.item)
        case .ready:
            removeFromQueue(entry)
            giveUpProbe(entry.item)
        case .running, .stopping:
            if case .stopping = entry.place { stoppingCount -= 1 }
            giveUpProbe(entry.item)
            entries[id]?.sampleTime = nil
            running.remove(id)
            count(entry, by: -1)
        }
        needsReassignment = true
        let program = entry.item.program
        if turns[program]?.running == 0, !ordinary.has(program), !discretionary.has(program) { turns[program] = nil }
    }

    mutating func removeFromQueue(_ entry: Entry) {
        if entry.item.isDiscretionary {
            discretionary.remove(entry.item.id, from: entry.line)
        } else {
            ordinary.remove(entry.item.id, from: entry.line)
        }
    }

    /// Updates the counts for a transfer that starts or stops running.
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
