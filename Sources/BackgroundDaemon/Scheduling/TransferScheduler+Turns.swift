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
        while let (id, instant) = instants.first, instant <= now {
            if entries[id] == nil { instants.remove(id, at: instant) } else { reconsider(id, now) }
        }
        while let (id, deadline) = deadlines.first, deadline <= now {
            deadlines.remove(id, at: deadline)
            guard let entry = entries[id], !entry.isExpired else { continue }
            entries[id]?.isExpired = true
            reconsider(id, now)
            actions.append(.expire(id))
        }
    }

    /// Has those that hardly move give their places to others that wait for them.
    mutating func judgeSpeed(_ now: Double, _ actions: inout [Action]) {
        guard isSampling else { return }
        for id in running.sorted() {
            guard let entry = entries[id], entry.place == .running, now - entry.sampleTime >= limits.floorWindow else { continue }
            let speed = Double(entry.bytes - entry.sampleBytes) / (now - entry.sampleTime)
            entries[id]?.sampleTime = now
            entries[id]?.sampleBytes = entry.bytes
            if speed < limits.floor, isWanted(entry) { stop(id, .tooSlow, &actions) }
        }
    }

    /// Speeds matter only while others wait for places.
    private var isSampling: Bool { !running.isEmpty && !lines.isEmpty }

    /// Whether another transfer would run in its place.
    private func isWanted(_ entry: Entry) -> Bool {
        if running.count >= limits.simultaneous { return true }
        return lines.keys.contains { $0.host == entry.item.host }
    }

    /// Gives free places to those whose turn it is.
    mutating func fill(_ now: Double, _ actions: inout [Action]) {
        while running.count < limits.simultaneous, let id = next(isDiscretionary: false) { start(id, now, &actions) }
        // One that the system may put off makes room for one that it may not.
        if runningDiscretionary > 0, running.count >= limits.simultaneous {
            let leaving = running.reduce(0) { if case .stopping = entries[$1]?.place { $0 + 1 } else { $0 } }
            if leaving == 0, next(isDiscretionary: false) != nil,
                let id = running.filter({ entries[$0]?.item.isDiscretionary == true }).max()
            {
                stop(id, .yields, &actions)
            }
        }
        guard conditions.allowDiscretionary else { return }
        let limit = max(1, limits.simultaneous / 2)
        while running.count < limits.simultaneous, runningDiscretionary < limit, let id = next(isDiscretionary: true) {
            start(id, now, &actions)
        }
    }

    private mutating func start(_ id: ID, _ now: Double, _ actions: inout [Action]) {
        guard var entry = entries[id] else { return }
        lines[entry.line]?.remove(id, at: entry.rank)
        if lines[entry.line]?.isEmpty == true {
            lines[entry.line] = nil
            shares[entry.item.program]?.lines.remove(entry.line)
        }
        entry.place = .running
        entry.sampleTime = now
        entry.sampleBytes = entry.bytes
        entries[id] = entry
        running.insert(id)
        if entry.item.isDiscretionary { runningDiscretionary += 1 }
        count(entry, by: 1)
        served += 1
        shares[entry.item.program]?.lastServed = served
        actions.append(.start(id))
    }

    /// The next one to run, of the program that has the least.
    private func next(isDiscretionary: Bool) -> ID? {
        var best: (running: Int, lastServed: Int, rank: Double, id: ID)?
        for share in shares.values {
            var first: (id: ID, rank: Double)?
            for line in share.lines where line.isDiscretionary == isDiscretionary {
                guard hasRoom(line), let candidate = lines[line]?.first else { continue }
                if let known = first, (known.rank, known.id) <= (candidate.at, candidate.id) { continue }
                first = (candidate.id, candidate.at)
            }
            guard let first else { continue }
            if let best, (best.running, best.lastServed, best.id) <= (share.running, share.lastServed, first.id) { continue }
            best = (share.running, share.lastServed, first.rank, first.id)
        }
        return best?.id
    }

    private func hasRoom(_ line: LineKey) -> Bool {
        guard hostCounts[line.host, default: 0] < limits.perHost, let id = lines[line]?.first?.id, let entry = entries[id] else {
            return false
        }
        let key = LineKey(session: line.session, host: line.host, isDiscretionary: false)
        return sessionHostCounts[key, default: 0] < max(1, entry.item.hostLimit)
    }

    // MARK: The timer

    mutating func setTimer(_ now: Double, _ actions: inout [Action]) {
        var time = min(instants.first?.at ?? .infinity, deadlines.first?.at ?? .infinity)
        if isSampling {
            for id in running {
                guard let entry = entries[id], entry.place == .running else { continue }
                time = min(time, entry.sampleTime + limits.floorWindow)
            }
        }
        let next = time == .infinity ? nil : time
        guard next != wakeTime else { return }
        wakeTime = next
        actions.append(.wake(at: next))
    }

    // MARK: For people

    /// Why a transfer does not run; nil where it does, or is not known.
    package func waitReason(of id: ID) -> WaitReason? {
        guard let entry = entries[id] else { return nil }
        let item = entry.item
        switch entry.place {
        case .running, .stopping: return nil
        case .timed:
            if let begin = item.earliestBegin, begin >= entry.instant { return .earliestBegin(begin) }
            return .retry(at: entry.instant, attempts: item.attempts)
        case .ready: return hasRoom(entry.line) || running.count >= limits.simultaneous ? .turn : .host
        case .parked:
            if item.isHeld { return .held }
            if !conditions.isConnected, !item.isLocal { return .network }
            if !conditions.hasSpace, !item.isUpload { return .space }
            return item.isDiscretionary ? .meteredOrBattery : .turn
        }
    }
}
