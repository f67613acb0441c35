// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Opens connections for the pool.
extension ConnectionPool {
    /// What earlier connections to an origin have revealed about its server.
    struct KnownServer {
        /// The versions that may be used: the server has not refused them, nor negotiated them with a prohibited cipher suite.
        var accepted = HTTPVersions.all
        /// The version of the last connection; all versions if there was none.
        var agreed = HTTPVersions.all
        /// The server's last limit on concurrent exchanges.
        var capacity: Int?
        /// The instant until which no second connection is made to the server.
        var calmUntil: NIODeadline?
        var fruitless = FruitlessConnections()
        /// The instant until which dials to the server are paused.
        var pausedUntil: NIODeadline?

        /// Adds what a new connection revealed that was dialled for another origin.
        mutating func learn(_ other: KnownServer) {
            agreed = other.agreed
            accepted.formIntersection(other.accepted)
        }
    }

    /// The maximum number of retries of a dial for which the system has no descriptor.
    private static let maximumRetries = 20

    /// The versions that a new connection to the origin may turn out to have.
    private func versions(_ origin: OriginID, _ route: Route) -> HTTPVersions {
        dialer.versions(of: route).narrowed(to: servers[origin]?.accepted ?? .all)
    }

    /// Whether connections to the origin can turn out to be shared, judging by earlier connections.
    func mayBeShared(_ origin: OriginID, _ route: Route) -> Bool {
        let server = servers[origin] ?? KnownServer()
        return dialer.versions(of: route).intersection(server.accepted).intersection(server.agreed).mayShare
    }

    func dial(_ id: ConnectionID, _ origin: OriginID) {
        entries[id] = Entry(origin: origin)
        if !pausesDial(id, origin) { pace.begin { [self] in dial(id) } }
    }

    func dial(_ id: ConnectionID) {
        guard let origin = entries[id]?.origin, let route = routes[origin] else { return }
        entries[id]?.hasBegun = true
        let dial = ConnectionDial(
            route, versions(origin, route), by: dialer, room: room,
            adviser: { [unowned self] in adviser(for: entries[id]?.origin ?? origin) }
        ) { [self] in dialled(id, $0) }
        dial.forEachCandidate {
            // The request timeout does not run while the dial waits for other lookups.
            $0.holdChanged = { [unowned self] in perform(machine.handle(.appIsAsked(entries[id]?.origin ?? origin, $0))) }
            $0.found = { [unowned self] addresses, decide in coalesce(id, addresses, decide: decide) }
        }
        dial.channel?.proxyIsSilent = { [unowned self] isConnected in
            guard let origin = entries[id]?.origin, let proxy = routes[origin]?.proxy else { return }
            if !isConnected || !hasOpenConnection(origin) { abandonProxy(proxy, origin) }
        }
        dial.forEachAdvice {
            $0.checksRootsFirst = { [unowned self] in checksRootsFirst(id) }
            $0.willAsk = { [unowned self] in willAsk($0, about: id) }
        }
        entries[id]?.dial = dial
        dial.start()
    }

    /// The number of loads that are notified of a silent proxy in one turn of the loop.
    private static let leasesPerTurn = 128

    /// Refuses the leases of all loads that are waiting for a connection through a silent proxy and have another way.
    ///
    /// All such leases are refused, because a dial may serve many loads, and the next dial would have the same problem. A dial
    /// without a waiting load is then cancelled.
    private func abandonProxy(_ proxy: ProxyServer, _ origin: OriginID) {
        // No load times out while the app is asked about one of the connections.
        guard !machine.appIsAsked(origin) else { return }
        let affectedLeases = leases.values.filter { $0.origin == origin && $0.route.details?.hasAlternatives == true }
        let seconds = ProxySilenceTimer.limit.nanoseconds / 1_000_000_000
        var error = LoadError(.timedOut, "the proxy \(proxy) did not answer within \(seconds) s")
        error.isProxyError = true
        abandonProxy(affectedLeases.map(\.id).sorted { $0.number < $1.number }[...], origin, error)
    }

    /// Whether the origin has an established connection.
    ///
    /// If so, the proxy works, and a dial that has reached the proxy waits only for the server.
    private func hasOpenConnection(_ origin: OriginID) -> Bool { machine.count(origin) > machine.dials(origin).count }

    private func abandonProxy(_ affectedLeases: ArraySlice<LeaseID>, _ origin: OriginID, _ error: LoadError) {
        for lease in affectedLeases.prefix(Self.leasesPerTurn) where leases[lease]?.origin == origin {
            perform(machine.handle(.withdrawn(lease)))
            refuse(lease, error)
        }
        let rest = affectedLeases.dropFirst(Self.leasesPerTurn)
        guard !rest.isEmpty else { return }
        LoopDirectory.executor(of: loop).turns.runInLaterTurn { [weak self] in self?.abandonProxy(rest, origin, error) }
    }

    func cancel(_ id: ConnectionID) {
        guard let entry = entries[id] else { return }
        entry.retryTimer?.cancel()
        // The dial may still be on hold, which ends at its present origin.
        entry.dial?.cancel()
        entries[id] = nil
        if entry.isPaused { pauseEnded(entry.origin) }
        if !entry.hasBegun { room.giveBack() }
    }

    private func dialled(_ id: ConnectionID, _ outcome: DialOutcome) {
        switch outcome {
        case .connected(let dialled):
            let connection: any HTTPConnection
            do {
                connection = try begin(dialled, id)
            } catch {
                return dialFailed(id, LoadError(.cannotConnectToHost, "the connection was closed immediately", cause: error))
            }
            entries[id]?.connection = connection
            entries[id]?.dial = nil
            place(id)
            perform(machine.handle(.opened(id, capacity: connection.initialCapacity)))
        case .unfit(let version):
            narrow(id, to: .all.subtracting(version))
            entries[id]?.dial = nil
            _ = room.takeMore(isNeeded: true)
            dial(id)
        case .failed(let error):
            dialFailed(id, error)
        }
    }

    /// Makes the connection of a dial, and notes its version.
    private func begin(_ dialled: DialledConnection, _ id: ConnectionID) throws -> any HTTPConnection {
        let origin = entries[id]?.origin
        if let origin, !dialled.version.isEmpty {
            observe(dialled, to: origin)
            servers[origin, default: KnownServer()].agreed = dialled.version
            if !dialled.version.mayShare { resetFailures(origin) }
        }
        return try dialled.begin(ConnectionSeed(id: id.number, pool: self, capacity: origin.flatMap { servers[$0]?.capacity }))
    }

    /// Notifies the observer when a connection starts and ends.
    private func observe(_ dialled: DialledConnection, to origin: OriginID) {
        #if Logging || Metrics || Tracing
        guard let observer = dialer.observer, let route = routes[origin] else { return }
        let connection = ObservedConnection(host: route.host, port: route.port, facts: dialled.facts)
        observer.opened(connection)
        dialled.closed.whenComplete { _ in observer.closed(connection) }
        #endif
    }

    private func dialFailed(_ id: ConnectionID, _ error: LoadError) {
        if DialFailures.isOutOfDescriptors(error), retryIfPossible(id) { return }
        let lease = lease(refusedBy: id)
        entries[id] = nil
        dialFailures[id] = error
        perform(machine.handle(.dialFailed(id, lease: lease)))
        dialFailures[id] = nil
    }

    /// Retries a dial for which the process has no descriptor; returns false if the dial must fail.
    ///
    /// The dial is retried when a connection of the process is closed, or, if the process has no connection, after a moment.
    private func retryIfPossible(_ id: ConnectionID) -> Bool {
        guard var entry = entries[id] else { return false }
        if room.mayGetDescriptor {
            entries[id] = nil
            perform(machine.handle(.dialHadNoDescriptor(id)))
            return true
        }
        entry.triesWithoutDescriptor += 1
        guard entry.triesWithoutDescriptor < Self.maximumRetries else { return false }
        let bound = NIOLoopBound(self, eventLoop: loop)
        entry.dial = nil
        entry.retryTimer = loop.scheduleTask(in: room.moment) {
            // A timer that was already due when it was cancelled still runs.
            guard bound.value.entries[id] != nil else { return }
            bound.value.entries[id]?.retryTimer = nil
            _ = bound.value.room.takeMore(isNeeded: true)
            bound.value.dial(id)
        }
        entries[id] = entry
        return true
    }
}
