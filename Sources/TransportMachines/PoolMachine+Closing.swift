// SPDX-License-Identifier: Apache-2.0

/// Closing idle connections, and shutting down the pool.
extension PoolMachine {
    mutating func startedIdling(since instant: Int64) {
        idleCount += 1
        if idleCount == 1 { idleSince = instant }
    }

    mutating func stoppedIdling() {
        idleCount -= 1
        if idleCount == 0 { idleSince = nil }
    }

    /// Handles a failed dial: refuses the lease that is the reason, or, if the remaining dials are too few for all queued leases,
    /// the first lease.
    ///
    /// The next lease then gets a dial of its own.
    mutating func fail(_ connection: ConnectionID, because reason: LeaseID? = nil) -> [Action] {
        guard let entry = connections[connection], case .dialing = entry.stage else { return [] }
        let origin = entry.origin
        var actions: [Action] = []
        if let place = origins.index(forKey: origin),
            // A lease that waits for a second connection falls back to the first.
            origins.values[place].shared.isEmpty,
            let lease = remove(reason, from: origin)
                ?? (origins.values[place].queue.count > origins.values[place].dials.count - 1 ? popFirst(origin) : nil)
        {
            actions.append(.refuse(lease, failedDial: connection))
        }
        // The leases that waited for this dial get dials of their own from now on.
        origins[origin]?.mayBeShared = false
        origins[origin]?.mayHaveSecond = false
        remove(connection)
        return actions + dialIfNeeded(origin)
    }

    mutating func close(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection] else { return [] }
        if case .dialing = entry.stage { return fail(connection) }
        remove(connection)
        return dialIfNeeded(entry.origin)
    }

    /// One timer serves all idle connections; it is moved only if a connection has to be closed earlier.
    mutating func startSweep(at instant: Int64, now: Int64) -> [Action] {
        let delay = max(instant - now, Self.shortestSweep)
        if let sweepDue, sweepDue <= now + delay { return [] }
        sweepDue = now + delay
        return [.startTimer(after: delay)]
    }

    mutating func sweep(_ now: Int64) -> [Action] {
        guard sweepDue != nil else { return [] }
        sweepDue = nil
        var actions: [Action] = []
        var next: Int64?
        var left: [OriginID] = []
        for connection in connections.keys.sorted(by: { $0.number < $1.number }) {
            guard case .idle(let since, let until) = connections[connection]?.stage else { continue }
            let due = until ?? now + Self.idleLimit
            if due <= now {
                if let shared = sharedOrigin(connection) { left.append(shared) }
                remove(connection)
                actions.append(.close(connection))
            } else {
                connections[connection]?.stage = .idle(since: since, until: due)
                next = min(next ?? due, due)
            }
        }
        if let next { actions += startSweep(at: next, now: now) }
        return actions + dial(for: left)
    }

    /// The origin of a shared connection; nil for any other connection.
    ///
    /// Leases may wait for a shared connection that is idle.
    func sharedOrigin(_ connection: ConnectionID) -> OriginID? {
        connections[connection].flatMap { $0.sharing == nil ? nil : $0.origin }
    }

    /// Dials for the leases that waited for shared connections that are gone.
    mutating func dial(for origins: [OriginID]) -> [Action] {
        var actions: [Action] = []
        for origin in origins { actions += dialIfNeeded(origin) }
        return actions
    }

    mutating func closeIdle(of origin: OriginID) -> [Action] {
        var idle = origins[origin]?.idle ?? []
        idle += (origins[origin]?.shared ?? []).filter { connections[$0]?.sharing?.leaseCount == 0 }
        for connection in idle { remove(connection) }
        return idle.map { .close($0) }
    }

    mutating func closeIdle() -> [Action] {
        var actions: [Action] = []
        var left: [OriginID] = []
        for connection in connections.keys.sorted(by: { $0.number < $1.number }) {
            if let shared = sharedOrigin(connection) { left.append(shared) }
            switch connections[connection]?.stage {
            case .idle:
                remove(connection)
                actions.append(.close(connection))
            case .leased: retire(connection)
            case .dialing, nil: continue
            }
        }
        return actions + stopSweep() + dial(for: left)
    }

    mutating func shutDown() -> [Action] {
        guard !isShutDown else { return [] }
        isShutDown = true
        var actions: [Action] = []
        for lease in waiters.keys.sorted(by: { $0.number < $1.number }) {
            actions.append(.refuse(lease, failedDial: nil))
        }
        waiters = [:]
        for origin in origins.keys { origins[origin]?.clearQueue() }
        starved = OriginQueue()
        for connection in connections.keys.sorted(by: { $0.number < $1.number }) {
            guard case .dialing = connections[connection]?.stage else { continue }
            remove(connection)
            actions.append(.cancelDial(connection))
        }
        unsettled = []
        return actions + closeIdle()
    }

    private mutating func stopSweep() -> [Action] {
        guard sweepDue != nil else { return [] }
        sweepDue = nil
        return [.stopTimer]
    }
}
