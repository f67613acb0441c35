// SPDX-License-Identifier: Apache-2.0

/// The order of transfers, and the timer.
extension TransferScheduler {
    /// What is known of the request and the response of a running attempt.
    struct Exchange: Sendable {
        /// Whether the whole content was sent.
        var hasSentAll = false
        /// Whether the response has begun.
        var hasResponse = false
        /// When the whole content was sent, while no response has begun; otherwise nil.
        var unansweredSince: Double?
    }

    /// Processes the transfers whose time has come.
    mutating func processDue(_ now: Double, _ actions: inout [Action]) {
        // Due probes start first, because transfers that wait for an origin have waited longer than the transfer that probed it
        // last.
        startDueProbes(now)
        while let (id, rank) = instants.first, rank.at <= now { reconsider(id, now) }
        while let (id, rank) = deadlines.first, rank.at <= now {
            deadlines.remove(id)
            entries[id]?.isExpired = true
            needsReassignment = true
            reconsider(id, now)
            actions.append(.expire(id))
        }
        // The transfers above may have been probes.
        startDueProbes(now)
    }

    /// Assigns and withdraws slots until no more changes are due now.
    mutating func settle(_ now: Double, _ actions: inout [Action]) {
        guard needsReassignment || sampleDue <= now else { return }
        fill(now, &actions)
        judgeSpeed(now, &actions)
        needsReassignment = false
    }

    // MARK: Slots

    private var hasFreeSlot: Bool { running.count < limits.simultaneous }
    private var hasFreeDiscretionarySlot: Bool { hasFreeSlot && runningDiscretionary < max(1, limits.simultaneous / 2) }

    /// Assigns free slots to the next transfers.
    private mutating func fill(_ now: Double, _ actions: inout [Action]) {
        while hasFreeSlot, let id = next(of: ordinary) { start(id, now, &actions) }
        // Discretionary transfers give way to ordinary transfers, one at a time, because one slot may be enough.
        if runningDiscretionary > 0, stoppingCount == 0, !ordinary.isEmpty {
            let isAnyReady = !hasFreeSlot && next(of: ordinary) != nil
            let leaving = running.filter { id in
                guard let entry = entries[id], entry.item.isDiscretionary, !entry.isExpired, !entry.attempt.hasSentAll else {
                    return false
                }
                return isAnyReady || makesRoom(entry, for: ordinary)
            }
            if let id = leaving.max() { stop(id, .yields, &actions) }
        }
        while hasFreeDiscretionarySlot, let id = next(of: discretionary) { start(id, now, &actions) }
    }

    private mutating func start(_ id: ID, _ now: Double, _ actions: inout [Action]) {
        guard var entry = entries[id] else { return }
        removeFromQueue(entry)
        entry.place = .running
        entry.isDemoted = false
        entry.startTime = now
        entry.failure = nil
        entry.lacksNetwork = false
        entry.attempt = Exchange()
        entry.serverBound = nil
        entries[id] = entry
        running.insert(id)
        count(entry, by: 1)
        actions.append(.start(id))
    }

    /// Records whether the whole content of a transfer has been sent; if so, the wait for the response starts at `start`.
    mutating func noteSent(_ id: ID, _ hasSentAll: Bool, _ start: Double, _ actions: inout [Action]) {
        guard var attempt = entries[id]?.attempt, entries[id]?.place == .running, attempt.hasSentAll != hasSentAll else { return }
        attempt.hasSentAll = hasSentAll
        // A response to content that is sent again is still to come.
        if !hasSentAll { attempt.hasResponse = false }
        attempt.unansweredSince = hasSentAll && !attempt.hasResponse ? start : nil
        entries[id]?.attempt = attempt
        entries[id]?.sampleTime = nil
        needsReassignment = true
        if !hasSentAll, !conditions.allow(entries[id]?.item) { stop(id, .conditions, &actions) }
    }

    /// Records that the response of a transfer has begun.
    mutating func noteResponseHead(_ id: ID) {
        guard entries[id]?.place == .running else { return }
        entries[id]?.attempt.hasResponse = true
        entries[id]?.unansweredStops = 0
        guard entries[id]?.attempt.unansweredSince != nil else { return }
        entries[id]?.attempt.unansweredSince = nil
        entries[id]?.sampleTime = nil
        needsReassignment = true
    }

    private func next(of ready: ReadyTransfers) -> ID? {
        guard !ready.isEmpty else { return nil }
        return ready.next(full: fullHosts) { hasCapacity($0, in: ready) }
    }

    /// Returns whether the host's limits allow the first transfer of a queue to run, now or if `gone` were not running.
    private func hasCapacity(_ line: QueueKey, in ready: ReadyTransfers, without gone: Entry? = nil) -> Bool {
        guard let id = ready.front(of: line), let hostLimit = entries[id]?.item.hostLimit else { return false }
        let atHost = hostCounts[line.host, default: 0] - (gone?.item.host == line.host ? 1 : 0)
        let inSession = sessionHostCounts[line, default: 0] - (gone?.line == line ? 1 : 0)
        return atHost < limits.perHost && inSession < max(1, hostLimit)
    }

    /// Returns whether a waiting transfer to the same host could run if this transfer were not running.
    private func makesRoom(_ entry: Entry, for ready: ReadyTransfers) -> Bool {
        ready.hasQueue(at: entry.item.host) { hasCapacity($0, in: ready, without: entry) }
    }

    // MARK: Without a route to other networks

    func isOffline(_ entry: Entry) -> Bool {
        !conditions.isConnected && !entry.item.isLocal && offline.contains(entry.line)
    }

    /// Handles a transfer that found no route: without a network, its whole queue waits for a network change and occupies no
    /// slot.
    mutating func lacksNetwork(_ id: ID, _ now: Double, _ actions: inout [Action]) {
        guard let entry = entries[id], entry.place == .running else { return }
        entries[id]?.lacksNetwork = true
        entries[id]?.attempt.hasResponse = false
        // Content that was sent over a lost connection has to be sent again.
        noteSent(id, false, now, &actions)
        guard !conditions.isConnected, !entry.item.isLocal else { return }
        stop(id, .network, &actions)
        // If the network has changed since the attempt began, the transfer is retried.
        guard entry.startTime >= networkChange else { return }
        offline.insert(entry.line)
        for other in (members[entry.line] ?? []).sorted() { reconsider(other, now) }
    }

    mutating func tryNetwork(_ now: Double) {
        networkChange = now
        endPauses(now)
        guard !offline.isEmpty else { return }
        offline = []
        for id in entries.keys.sorted() { reconsider(id, now) }
    }

    // MARK: Speed

    /// Withdraws the slot of the slowest transfer if another transfer waits for that slot.
    ///
    /// Only one slot is withdrawn at a time, because one slot may be enough.
    ///
    /// Speed is measured only while transfers wait. While a rate limit slows all transfers, it is measured only for those that have
    /// waited too long for a response. A discretionary transfer does not
    /// get the slot of an ordinary transfer, because the discretionary transfer would lose the slot again.
    private mutating func judgeSpeed(_ now: Double, _ actions: inout [Action]) {
        sampleDue = .infinity
        let isOrdinaryReady = !hasFreeSlot && next(of: ordinary) != nil
        let isDiscretionaryReady = !hasFreeDiscretionarySlot && next(of: discretionary) != nil
        var overdue: [ID] = []
        var slowest: (speed: Double, id: ID)?
        for id in running {
            guard let entry = entries[id], entry.place == .running, !entry.isExpired else { continue }
            var isWanted = isOrdinaryReady || makesRoom(entry, for: ordinary)
            if entry.item.isDiscretionary { isWanted = isWanted || isDiscretionaryReady || makesRoom(entry, for: discretionary) }
            let unanswered = entry.attempt.unansweredSince
            guard isWanted, !conditions.isSlow || unanswered != nil else {
                if entry.sampleTime != nil { entries[id]?.sampleTime = nil }
                continue
            }
            let measurable = unanswered.map { $0 + limits.responseWait * Double(1 << min(entry.unansweredStops, 10)) } ?? now
            guard measurable <= now else {
                sampleDue = min(sampleDue, measurable)
                continue
            }
            if entry.sampleTime == nil { beginSample(of: id, now) }
            let begin = entry.sampleTime ?? now
            if begin + limits.floorWindow > now || entry.sampleTime == nil {
                sampleDue = min(sampleDue, begin + limits.floorWindow)
                continue
            }
            overdue.append(id)
            let speed = (Double(entry.bytes) - Double(entry.sampleBytes)) / (now - begin)
            if speed < limits.floor, (speed, id) < slowest ?? (.infinity, 0) { slowest = (speed, id) }
        }
        // While a transfer is stopping, the other transfers are not judged.
        guard stoppingCount == 0, !overdue.isEmpty else { return }
        if let slowest {
            if entries[slowest.id]?.attempt.unansweredSince != nil { entries[slowest.id]?.unansweredStops += 1 }
            return stop(slowest.id, .tooSlow, &actions)
        }
        for id in overdue { beginSample(of: id, now) }
        sampleDue = min(sampleDue, now + limits.floorWindow)
    }

    private mutating func beginSample(of id: ID, _ now: Double) {
        guard let bytes = entries[id]?.bytes else { return }
        entries[id]?.sampleTime = now
        entries[id]?.sampleBytes = bytes
    }

    // MARK: The timer

    mutating func setTimer(_ isGone: Bool, _ actions: inout [Action]) {
        let time = min(
            instants.first?.at.at ?? .infinity, deadlines.first?.at.at ?? .infinity, originInstants.first?.at ?? .infinity,
            sampleDue)
        let next = time == .infinity ? nil : time
        guard next != wakeTime || isGone && next != nil else { return }
        wakeTime = next
        actions.append(.wake(at: next))
    }

    // MARK: For display

    /// Returns until when a transfer waits after a failed attempt, and the number of consecutive failures; nil if no attempt
    /// failed.
    package func pause(of id: ID) -> (until: Double, attempts: Int)? {
        guard let item = entries[id]?.item, let until = item.notBefore else { return nil }
        return (until, item.attempts)
    }

    /// Returns why a transfer is not running; nil if the transfer is running or unknown.
    package func waitReason(of id: ID) -> WaitReason? {
        guard let entry = entries[id] else { return nil }
        let item = entry.item
        switch entry.place {
        case .running, .stopping: return nil
        case .origin:
            guard let pause = origins[item.origin]?.pause, pause.probe == nil else { return .host }
            return .origin(until: pause.until, attempts: pause.attempts)
        case .timed:
            if let begin = item.earliestBegin, begin >= entry.instant { return .earliestBegin(begin) }
            return .retry(at: entry.instant, attempts: item.attempts)
        case .ready:
            let canRun = hasCapacity(entry.line, in: item.isDiscretionary ? discretionary : ordinary)
            return canRun || !hasFreeSlot ? .turn : .host
        case .parked:
            if item.isHeld { return .held }
            if !conditions.isWithinHours { return .hours }
            if isOffline(entry) { return .network }
            if entry.lacksSpace || !conditions.hasSpace && !item.isUpload { return .space }
            return item.isDiscretionary ? .meteredOrBattery : .turn
        }
    }
}
