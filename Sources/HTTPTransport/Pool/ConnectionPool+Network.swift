// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import NIOCore
import TransportMachines

extension ConnectionPool {
    /// The number of connections that are checked in one turn of the loop; each check is a system call.
    private static let connectionsPerTurn = 128

    /// Reacts to a change of the machine's networks.
    ///
    /// Connections that no longer lead anywhere fail at once. If there is a new address, idle connections are closed, because a
    /// better route may be available.
    func networkChanged(from before: NetworkPath, to now: NetworkPath) {
        let hasNewAddress = !Set(now.interfaces.flatMap(\.addresses)).isSubset(of: before.interfaces.flatMap(\.addresses))
        let establishedConnections = establishedConnections()
        endLost(establishedConnections[...]) { [weak self] in
            if hasNewAddress { self?.closeIdleBeyondTheMachine() }
        }
    }

    /// Whether a route has a connection that allows extended CONNECT (RFC 8441).
    package func allowsExtendedConnect(_ route: Route) -> Bool {
        guard let origin = knownOrigin(of: route) else { return false }
        // Only the origin's shared connections are searched: the pool may have ten thousand other entries, for connections that
        // were taken over.
        return machine.shared(origin).contains { id in
            entries[id]?.connection?.allowsExtendedConnect == true && machine.takesLeases(id)
        }
    }

    /// Records that another protocol has taken over the connection: the connection is not reused, and no load waits for it.
    ///
    /// The connection is still notified when its network goes away.
    package func wasTakenOver(_ connection: any HTTPConnection) {
        let id = ConnectionID(connection.id)
        forgetAliases(of: id)
        releaseOrigin(of: id)
        perform(machine.handle(.closed(id)))
    }

    /// Replaces a connection with the handler that has taken over its channel.
    func replace(_ connection: any HTTPConnection, by other: any HTTPConnection) {
        entries[ConnectionID(connection.id)]?.connection = other
    }

    /// Makes a load wait until the machine's networks change; returns false if the networks are not monitored.
    package func wait(_ control: LoadControl) -> Bool {
        guard let network = dialer.network else { return false }
        network.wait(control, now: .now())
        return true
    }

    /// Ends the wait if the networks have changed or the load must end; returns whether the wait has ended.
    package func hasEnded(_ wait: NetworkView.Wait) -> Bool { dialer.network?.hasEnded(wait, now: .now()) ?? true }

    /// Returns the established connections in the order in which they were made, with the networks that they must not use.
    private func establishedConnections() -> [(connection: any HTTPConnection, prohibited: ProhibitedNetworks)] {
        entries.sorted { $0.key.number < $1.key.number }.compactMap { _, entry in
            entry.connection.map { ($0, routes[entry.origin].map(dialer.prohibited) ?? []) }
        }
    }

    private func endLost(
        _ connections: ArraySlice<(connection: any HTTPConnection, prohibited: ProhibitedNetworks)>,
        then done: @escaping () -> Void
    ) {
        for (connection, prohibited) in connections.prefix(Self.connectionsPerTurn) {
            let facts = connection.facts
            let isBound = dialer.options?.interfaceName != nil || dialer.options?.localAddress != nil
            if dialer.network?.isLost(from: facts.localAddress, to: facts.remoteAddress, isBound: isBound, prohibited) == true {
                connection.networkIsLost(LoadError(.connectionLost, "the network that led to \(facts.peer) is gone"))
            }
        }
        let rest = connections.dropFirst(Self.connectionsPerTurn)
        guard !rest.isEmpty else { return done() }
        LoopDirectory.executor(of: loop).turns.runInLaterTurn { [self] in endLost(rest, then: done) }
    }

    /// Closes idle connections and notifies stream tasks after a new address has appeared, because a better route may be available.
    private func closeIdleBeyondTheMachine() {
        for (connection, _) in establishedConnections() {
            guard let address = connection.facts.localAddress, dialer.network?.mayConcern(address) == true else { continue }
            if connection.isIdle { connection.close() } else { connection.findBetterRoute() }
        }
    }
}

extension Dialer {
    /// Returns the networks that connections of a route must not use.
    func prohibited(on route: Route) -> ProhibitedNetworks { (route.details?.needs ?? needs).prohibited }
}
