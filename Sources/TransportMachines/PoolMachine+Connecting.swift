// SPDX-License-Identifier: Apache-2.0

/// Determines which queued leases count as connecting.
///
/// As many leases count as there are dials, from the front of the queue; suspended leases are skipped. While the app is asked, no
/// lease counts.
///
/// All leases count if one dial may serve all of them, or if only the peer of a shared connection blocks them.
extension PoolMachine {
    /// Removes a lease that left the queue; returns whether it was connecting.
    mutating func left(_ lease: LeaseID, _ origin: OriginID) -> Bool {
        guard let place = origins.index(forKey: origin) else { return false }
        if !origins.values[place].suspended.isEmpty { origins.values[place].suspended.remove(lease) }
        guard
            !origins.values[place].dials.isEmpty || !origins.values[place].connecting.isEmpty
                || !origins.values[place].shared.isEmpty
        else { return false }
        unsettled.append(origin)
        return origins.values[place].connecting.remove(lease) != nil
    }

    /// Adds a lease that joined the queue; it is the last lease in the queue unless priorities differ.
    mutating func joined(_ lease: LeaseID, _ origin: OriginID) {
        guard let place = origins.index(forKey: origin) else { return }
        origins.values[place].lastJoined = lease
        guard !origins.values[place].dials.isEmpty || !origins.values[place].shared.isEmpty else { return }
        if !origins.values[place].queue.isFIFO { origins.values[place].isReordered = true }
        unsettled.append(origin)
    }

    /// Suspends or resumes a queued lease.
    mutating func suspend(_ lease: LeaseID, _ isSuspended: Bool) -> [Action] {
        guard let origin = waiters[lease]?.origin, let place = origins.index(forKey: origin),
            origins.values[place].suspended.contains(lease) != isSuspended
        else { return [] }
        unsettled.append(origin)
        guard isSuspended else {
            origins.values[place].suspended.remove(lease)
            origins.values[place].isReordered = true
            return []
        }
        origins.values[place].suspended.insert(lease)
        return origins.values[place].connecting.remove(lease) == nil ? [] : [.paused(lease)]
    }

    mutating func ask(_ origin: OriginID, _ isAsked: Bool) -> [Action] {
        guard let place = origins.index(forKey: origin) else { return [] }
        origins.values[place].questionCount += isAsked ? 1 : -1
        unsettled.append(origin)
        return []
    }

    /// The actions for leases whose state changed in this event.
    mutating func settle() -> [Action] {
        var actions: [Action] = []
        for origin in unsettled { actions += settle(origin) + watch(origin) }
        unsettled = []
        return actions
    }

    private mutating func settle(_ origin: OriginID) -> [Action] {
        guard let place = origins.index(forKey: origin) else { return [] }
        let suspended = origins.values[place].suspended
        let lineCount = origins.values[place].queue.count - suspended.count
        let before = origins.values[place].connecting.count
        let count = origins.values[place].questionCount > 0 ? 0 : min(connectingLimit(origins.values[place]), lineCount)
        let isReordered = origins.values[place].isReordered
        origins.values[place].isReordered = false
        guard before != count || isReordered && count < lineCount else { return [] }
        // The most common case: one lease joined and has a dial of its own.
        if count == lineCount, before == count - 1, suspended.isEmpty, let last = origins.values[place].lastJoined,
            waiters[last]?.origin == origin, origins.values[place].connecting.insert(last).inserted
        {
            return [.connecting(last)]
        }
        var front = origins.values[place].queue.first(count + suspended.count, of: waiters)
        if !suspended.isEmpty { front = Array(front.filter { !suspended.contains($0) }.prefix(count)) }
        let connecting = origins.values[place].connecting
        origins.values[place].connecting = Set(front)
        let paused = connecting.subtracting(front).sorted { $0.number < $1.number }
        return paused.map { .paused($0) } + front.filter { !connecting.contains($0) }.map { .connecting($0) }
    }

    private func connectingLimit(_ origin: Origin) -> Int {
        guard !origin.shared.isEmpty else { return origin.mayBeShared && !origin.dials.isEmpty ? .max : origin.dials.count }
        // Leases that wait for streams of other loads do not count as connecting while a second connection is dialed.
        let isBarred = origin.shared.allSatisfy { connections[$0]?.sharing?.isBarred ?? false }
        return isBarred ? .max : 0
    }
}

extension PoolMachine.Origin {
    /// Removes all queued leases.
    mutating func clearQueue() {
        queue = LeaseQueue()
        connecting = []
        suspended = []
        isStarved = false
    }
}
