//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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

    private mutating func join(_ lease: LeaseID, _ origin: OriginID, _ priority: Float, onlyNew: Bool) {
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

    /// A sortable priority; NaN counts as Apple's default priority.
    private static func sortable(_ priority: Float) -> Float { priority.isNaN ? 0.5 : priority }
}
