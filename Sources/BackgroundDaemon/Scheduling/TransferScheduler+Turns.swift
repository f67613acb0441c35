//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Whose turn it is, and when somebody has to look.
extension TransferScheduler {
    /// Those whose time has come.
    mutating func bringDue(_ now: Double, _ actions: inout [Action]) {
        // Those that wait for an origin have waited longer than the one that tried it last.
        bringProbes(now)
        while let (id, rank) = instants.first, rank.at <= now { reconsider(id, now) }
        while let (id, rank) = deadlines.first, rank.at <= now {
            deadlines.remove(id)
            entries[id]?.isExpired = true
            isUnsettled = true
            reconsider(id, now)
            actions.append(.expire(id))
        }
        // Some may have been the ones that try.
        bringProbes(now)
    }

    /// Gives and takes places until nothing more is to be done now.
    mutating func settle(_ now: Double, _ actions: inout [Action]) {
        guard isUnsettled || sampleDue <= now else { return }
        fill(now, &actions)
        judgeSpeed(now, &actions)
        isUnsettled = false
    }

    // MARK: Places

    private var hasPlace: Bool { running.count < limits.simultaneous }
    private var hasDiscretionaryPlace: Bool { hasPlace && runningDiscretionary < max(1, limits.simultaneous / 2) }

    /// Gives free places to those whose turn it is.
    private mutating func fill(_ now: Double, _ actions: inout [Action]) {
        while hasPlace, let id = next(of: ordinary) { start(id, now, &actions) }
        // One that the system may put off makes room for one that it may not: one at a time, as each may be all that is needed.
        if runningDiscretionary > 0, stoppingCount == 0, !ordinary.isEmpty {
            let isAnyReady = !hasPlace && next(of: ordinary) != nil
            let leaving = running.filter { id in
                guard let entry = entries[id], entry.item.isDiscretionary, !entry.isExpired else { return false }
                return isAnyReady || makesRoom(entry, for: ordinary)
            }
            if let id = leaving.max() { stop(id, .yields, &actions) }
        }
        while hasDiscretionaryPlace, let id = next(of: discretionary) { start(id, now, &actions) }
    }

    private mutating func start(_ id: ID, _ now: Double, _ actions: inout [Action]) {
        guard var entry = entries[id] else { return }
        takeFromLine(entry)
        entry.place = .running
        entry.isBehind = false
        entry.startTime = now
        entry.failure = nil
        entry.lacksNetwork = false
        entry.serverBound = nil
        entries[id] = entry
        running.insert(id)
        count(entry, by: 1)
        actions.append(.start(id))
    }

    private func next(of ready: ReadyTransfers) -> ID? {
        guard !ready.isEmpty else { return nil }
        return ready.next(full: fullHosts) { hasRoom($0, in: ready) }
    }

    /// Whether the first of a line could have a place, as far as its host goes; or could, if this one were gone.
    private func hasRoom(_ line: LineKey, in ready: ReadyTransfers, without gone: Entry? = nil) -> Bool {
        guard let id = ready.front(of: line), let hostLimit = entries[id]?.item.hostLimit else { return false }
        let atHost = hostCounts[line.host, default: 0] - (gone?.item.host == line.host ? 1 : 0)
        let inSession = sessionHostCounts[line, default: 0] - (gone?.line == line ? 1 : 0)
        return atHost < limits.perHost && inSession < max(1, hostLimit)
    }

    /// Whether somebody waits for the same host who could run if this one were gone.
    private func makesRoom(_ entry: Entry, for ready: ReadyTransfers) -> Bool {
        ready.hasLine(at: entry.item.host) { hasRoom($0, in: ready, without: entry) }
    }

    // MARK: Without a way to other networks

    func isOffline(_ entry: Entry) -> Bool {
        !conditions.isConnected && !entry.item.isLocal && offline.contains(entry.line)
    }

    /// One tries for all of its line: where it finds no way, they wait for the network to change, and none of them has a place.
    mutating func lacksNetwork(_ id: ID, _ now: Double, _ actions: inout [Action]) {
        guard let entry = entries[id], entry.place == .running else { return }
        entries[id]?.lacksNetwork = true
        guard !conditions.isConnected, !entry.item.isLocal else { return }
        stop(id, .network, &actions)
        // Since it was tried there may be a way: it is tried again.
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

    /// Has the one that moves least give its place to another that waits for it: one at a time, as each may be all that is needed.
    ///
    /// Speed is measured while somebody waits. A discretionary transfer does not have the place of one that is not, as it would lose it again.
    private mutating func judgeSpeed(_ now: Double, _ actions: inout [Action]) {
        sampleDue = .infinity
        let isOrdinaryReady = !hasPlace && next(of: ordinary) != nil
        let isDiscretionaryReady = !hasDiscretionaryPlace && next(of: discretionary) != nil
        var overdue: [ID] = []
        var slowest: (speed: Double, id: ID)?
        for id in running {
            guard let entry = entries[id], entry.place == .running, !entry.isExpired else { continue }
            var isWanted = isOrdinaryReady || makesRoom(entry, for: ordinary)
            if entry.item.isDiscretionary { isWanted = isWanted || isDiscretionaryReady || makesRoom(entry, for: discretionary) }
            guard isWanted else {
                if entry.sampleTime != nil { entries[id]?.sampleTime = nil }
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
        // While one stops, the others are not judged: they are when it is gone.
        guard stoppingCount == 0, !overdue.isEmpty else { return }
        if let slowest { return stop(slowest.id, .tooSlow, &actions) }
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

    // MARK: For people

    /// Until when a transfer waits after a failed attempt, and how many there were in a row; nil where there was none.
    package func pause(of id: ID) -> (until: Double, attempts: Int)? {
        guard let item = entries[id]?.item, let until = item.notBefore else { return nil }
        return (until, item.attempts)
    }

    /// Why a transfer does not run; nil where it does, or is not known.
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
            let isRoomy = hasRoom(entry.line, in: item.isDiscretionary ? discretionary : ordinary)
            return isRoomy || !hasPlace ? .turn : .host
        case .parked:
            if item.isHeld { return .held }
            if isOffline(entry) { return .network }
            if entry.lacksSpace || !conditions.hasSpace && !item.isUpload { return .space }
            return item.isDiscretionary ? .meteredOrBattery : .turn
        }
    }
}
