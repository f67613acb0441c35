// SPDX-License-Identifier: Apache-2.0

/// The queue of leases that wait for a connection.
extension PoolMachine {
    mutating func want(
        _ lease: LeaseID, _ origin: OriginID, _ priority: Float, onlyNew: Bool, mayBeShared: Bool
    ) -> [Action] {
        guard !isShutDown else { return [.refuse(lease, failedDial: nil)] }
        if !onlyNew, let connection = takeIdle(origin) { return [.grant(lease, connection, reused: true)] }
        guard waiters[lease] == nil else { return [] }
        let actions = onlyNew ? closeIdle(of: origin) : []
        // A shared connection that carries other leases counts as new: if it were dead, those leases would have noticed first.
        if onlyNew, let connection = takeIdle(origin) { return actions + [.grant(lease, connection, reused: true)] }
        if origins[origin] == nil { origins[origin] = Origin(mayBeShared: mayBeShared) }
        join(lease, origin, Self.sortable(priority), onlyNew: onlyNew)
        return actions + dialIfNeeded(origin)
    }

    /// Moves queued leases and dials to another origin.
    ///
    /// Dials for which the other origin has no room stay. Dials that are then too many for the leases left behind are cancelled.
    mutating func regroup(
        _ leases: [LeaseID], _ dials: [ConnectionID], _ origin: OriginID, mayBeShared: Bool
    ) -> [Action] {
        var former: [OriginID] = []
        for dial in dials {
            guard let entry = connections[dial], case .dialing = entry.stage, entry.origin != origin, mayTakeDial(origin) else {
                continue
            }
            connections[dial]?.origin = origin
            origins[entry.origin]?.dials.removeAll { $0 == dial }
            origins[entry.origin]?.total -= 1
            origins[origin, default: Origin(mayBeShared: mayBeShared)].dials.append(dial)
            origins[origin]?.total += 1
            former.append(entry.origin)
        }
        var actions: [Action] = []
        let inOrder = leases.compactMap { lease in waiters[lease].map { (lease, -$0.priority, $0.ticket) } }
        for (lease, _, _) in inOrder.sorted(by: { ($0.1, $0.2) < ($1.1, $1.2) }) {
            guard let waiter = waiters[lease], waiter.origin != origin else { continue }
            let isSuspended = origins[waiter.origin]?.suspended.contains(lease) ?? false
            if origins[waiter.origin]?.connecting.contains(lease) ?? false { actions.append(.paused(lease)) }
            _ = remove(lease, from: waiter.origin)
            actions += want(lease, origin, waiter.priority, onlyNew: waiter.onlyNew, mayBeShared: mayBeShared)
            if isSuspended, waiters[lease] != nil { origins[origin]?.suspended.insert(lease) }
            former.append(waiter.origin)
        }
        unsettled += former + [origin]
        for origin in Set(former).sorted(by: { $0.number < $1.number }) {
            while let entry = origins[origin], entry.dials.count > entry.queue.count, let dial = entry.dials.last {
                remove(dial)
                actions.append(.cancelDial(dial))
            }
            forgetIfEmpty(origin)
            actions += dialIfNeeded(origin)
        }
        return actions
    }

    /// Whether a dial to another origin may become one to this origin.
    package func mayTakeDial(_ origin: OriginID) -> Bool {
        origins[origin].map { $0.countTowardLimit < maximumPerHost && $0.shared.isEmpty } ?? true
    }

    mutating func withdraw(_ lease: LeaseID, isLate: Bool) -> [Action] {
        guard let waiter = waiters.removeValue(forKey: lease) else { return [] }
        let origin = waiter.origin
        origins[origin]?.queue.didRemove(waiters: waiters)
        _ = left(lease, origin)
        guard let entry = origins[origin], entry.dials.count > entry.queue.count, let dial = entry.dials.last else {
            forgetIfEmpty(origin)
            // The only dial, which was to serve all leases, may never end: the remaining leases get dials of their own.
            guard isLate, origins[origin]?.mayBeShared == true, origins[origin]?.dials.isEmpty == false else { return [] }
            origins[origin]?.mayBeShared = false
            return dialIfNeeded(origin)
        }
        remove(dial)
        return [.cancelDial(dial)]
    }

    mutating func reprioritize(_ lease: LeaseID, _ priority: Float) -> [Action] {
        let priority = Self.sortable(priority)
        guard let waiter = waiters[lease], waiter.priority != priority else { return [] }
        let isSuspended = origins[waiter.origin]?.suspended.contains(lease) ?? false
        waiters.removeValue(forKey: lease)
        origins[waiter.origin]?.queue.didRemove(waiters: waiters)
        let wasConnecting = left(lease, waiter.origin)
        join(lease, waiter.origin, priority, onlyNew: waiter.onlyNew)
        if isSuspended { origins[waiter.origin]?.suspended.insert(lease) }
        return wasConnecting ? [.paused(lease)] : []
    }

    mutating func join(_ lease: LeaseID, _ origin: OriginID, _ priority: Float, onlyNew: Bool) {
        nextTicket += 1
        let waiter = LeaseQueue.Waiter(origin: origin, priority: priority, onlyNew: onlyNew, ticket: nextTicket)
        waiters[lease] = waiter
        origins[origin, default: Origin()].queue.append(lease, waiter)
        joined(lease, origin)
    }

    /// Removes the first lease from the queue.
    mutating func popFirst(_ origin: OriginID) -> LeaseID? {
        guard let place = origins.index(forKey: origin), !origins.values[place].queue.isEmpty,
            let lease = origins.values[place].queue.popFirst(from: &waiters)
        else { return nil }
        _ = left(lease, origin)
        return lease
    }

    /// Removes a lease from the queue; returns nil if it is not in the queue of this origin.
    mutating func remove(_ lease: LeaseID?, from origin: OriginID) -> LeaseID? {
        guard let lease, waiters[lease]?.origin == origin else { return nil }
        waiters.removeValue(forKey: lease)
        origins[origin]?.queue.didRemove(waiters: waiters)
        _ = left(lease, origin)
        return lease
    }

    /// A sortable priority; NaN counts as Apple's default priority.
    private static func sortable(_ priority: Float) -> Float { priority.isNaN ? 0.5 : priority }
}
