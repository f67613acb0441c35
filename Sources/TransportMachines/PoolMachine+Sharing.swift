// SPDX-License-Identifier: Apache-2.0

/// Connections that carry many leases at a time, such as HTTP/2 connections.
///
/// Whether a connection can be shared is known only after its dial. If this is possible, one dial runs for the whole queue. If the
/// connection turns out not to be shared, or the dial fails, the queued leases get dials as usual. While a shared connection takes
/// leases, a second one is dialed only if the first one blocks the queue for a while, or may be dead: "Clients SHOULD NOT open more
/// than one HTTP/2 connection to a given host and port pair" (RFC 9113, section 9.1).
extension PoolMachine {
    struct Sharing {
        /// The maximum number of leases; zero while the peer allows none.
        var capacity: Int
        /// The peer has announced its limit.
        var isSettled = false
        var leaseCount = 0

        var hasPlace: Bool { leaseCount < capacity }
        /// Only the peer blocks the leases: it has not announced a limit, or allows none.
        var isBarred: Bool { !isSettled || leaseCount == 0 && capacity == 0 }
    }

    /// Whether the origin has one dial and no other connection, and the app is not being asked about it.
    package func hasSingleDial(_ origin: OriginID) -> Bool {
        origins[origin].map { $0.dials.count == 1 && $0.total == 1 && $0.questionCount == 0 } ?? false
    }

    /// Whether a dial to the origin waits for an answer from the app, or for other host name lookups.
    package func appIsAsked(_ origin: OriginID) -> Bool { origins[origin].map { $0.questionCount > 0 } ?? false }

    /// Whether a shared connection takes leases, now or once it has capacity again.
    package func takesLeases(_ connection: ConnectionID) -> Bool {
        connections[connection].map { $0.sharing != nil && !$0.isRetired } ?? false
    }

    /// Takes a lease on a shared connection with free capacity; returns nil if no connection has free capacity.
    mutating func takeShared(_ place: Dictionary<OriginID, Origin>.Index) -> ConnectionID? {
        for connection in origins.values[place].shared {
            guard let slot = connections.index(forKey: connection), connections.values[slot].sharing?.hasPlace == true else {
                continue
            }
            connections.values[slot].sharing?.leaseCount += 1
            origins.values[place].sharedGrants &+= 1
            if case .idle = connections.values[slot].stage {
                connections.values[slot].stage = .leased
                stoppedIdling()
            }
            return connection
        }
        return nil
    }

    mutating func openShared(_ connection: ConnectionID, _ capacity: Int) -> [Action] {
        guard let entry = connections[connection], case .dialing = entry.stage else { return [] }
        dialEnded(connection, entry)
        connections[connection]?.sharing = Sharing(capacity: max(0, capacity))
        connections[connection]?.stage = .idle(since: 0, until: nil)
        startedIdling(since: 0)
        origins[entry.origin]?.mayBeShared = true
        origins[entry.origin]?.mayHaveSecond = false
        origins[entry.origin]?.shared.append(connection)
        var actions = serve(connection, reused: false)
        // One connection is enough.
        for dial in origins[entry.origin]?.dials ?? [] {
            remove(dial)
            actions.append(.cancelDial(dial))
        }
        if case .idle? = connections[connection]?.stage { actions += startFirstSweep() }
        return actions
    }

    mutating func changeCapacity(_ connection: ConnectionID, _ capacity: Int) -> [Action] {
        guard let entry = connections[connection], entry.sharing != nil else { return [] }
        connections[connection]?.sharing?.capacity = max(0, capacity)
        connections[connection]?.sharing?.isSettled = true
        // Its peer is alive and takes requests.
        if capacity > 0 { origins[entry.origin]?.mayHaveSecond = false }
        unsettled.append(entry.origin)
        return serve(connection, reused: true)
    }

    mutating func drain(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], let sharing = entry.sharing, !entry.isRetired else { return [] }
        guard sharing.leaseCount > 0 else {
            remove(connection)
            return [.close(connection)] + dialIfNeeded(entry.origin)
        }
        retire(connection)
        return dialIfNeeded(entry.origin)
    }

    /// Stops the connection from taking further leases.
    mutating func retire(_ connection: ConnectionID) {
        guard let entry = connections[connection], !entry.isRetired else { return }
        connections[connection]?.isRetired = true
        guard entry.sharing != nil else { return }
        origins[entry.origin]?.drainingCount += 1
        origins[entry.origin]?.shared.removeAll { $0 == connection }
        unsettled.append(entry.origin)
    }

    mutating func releaseShared(_ connection: ConnectionID, reusable: Bool, now: Int64) -> [Action] {
        guard let entry = connections[connection], let sharing = entry.sharing, sharing.leaseCount > 0 else { return [] }
        connections[connection]?.sharing?.leaseCount -= 1
        if !reusable { retire(connection) }
        guard reusable, !entry.isRetired, !isShutDown else {
            let isLast = sharing.leaseCount == 1
            if isLast { remove(connection) }
            return (isLast ? [.close(connection)] : []) + dialIfNeeded(entry.origin)
        }
        let actions = serve(connection, reused: true)
        guard connections[connection]?.sharing?.leaseCount == 0 else { return actions }
        // Any lease that still waits is blocked by the peer.
        unsettled.append(entry.origin)
        connections[connection]?.stage = .idle(since: now, until: now + Self.idleLimit)
        startedIdling(since: now)
        return actions + startSweep(at: now + Self.idleLimit, now: now)
    }

    // MARK: Second connections

    /// Whether queued leases wait for the origin's only connection, a shared one without capacity.
    private func isQueuedBehindOne(_ entry: Origin) -> Bool {
        guard entry.total == 1, !entry.queue.isEmpty, let only = entry.shared.first, let sharing = connections[only]?.sharing
        else {
            return false
        }
        return !sharing.hasPlace && entry.questionCount == 0
    }

    /// Whether to dial a second shared connection: the origin may have it, and a lease waits for it.
    func needsSecond(_ entry: Origin) -> Bool { entry.mayHaveSecond && isQueuedBehindOne(entry) }

    /// Requests a later check of the queue if it is blocked.
    mutating func watch(_ origin: OriginID) -> [Action] {
        guard let entry = origins[origin], entry.watchedGrants == nil, isQueuedBehindOne(entry) else { return [] }
        origins[origin]?.watchedGrants = entry.sharedGrants
        return [.queueIsBlocked(origin)]
    }

    /// Allows the origin a second connection if no lease was granted after the queue was found blocked.
    mutating func check(blockedQueueOf origin: OriginID) -> [Action] {
        guard let entry = origins[origin], let grants = entry.watchedGrants else { return [] }
        origins[origin]?.watchedGrants = nil
        unsettled.append(origin)
        guard isQueuedBehindOne(entry), grants == entry.sharedGrants else { return [] }
        origins[origin]?.mayHaveSecond = true
        return dialIfNeeded(origin)
    }

    mutating func doubt(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], entry.sharing != nil, !entry.isRetired else { return [] }
        origins[entry.origin]?.mayHaveSecond = true
        return dialIfNeeded(entry.origin)
    }

    /// Grants the connection to queued leases, up to its capacity.
    private mutating func serve(_ connection: ConnectionID, reused: Bool) -> [Action] {
        guard let entry = connections[connection], !entry.isRetired, var sharing = entry.sharing else { return [] }
        let wasIdle = sharing.leaseCount == 0
        var actions: [Action] = []
        while sharing.hasPlace, let lease = popFirst(entry.origin) {
            sharing.leaseCount += 1
            origins[entry.origin]?.sharedGrants &+= 1
            actions.append(.grant(lease, connection, reused: reused || actions.count > 0))
        }
        connections[connection]?.sharing = sharing
        if wasIdle, !actions.isEmpty, case .idle = entry.stage {
            connections[connection]?.stage = .leased
            stoppedIdling()
        }
        return actions
    }
}
