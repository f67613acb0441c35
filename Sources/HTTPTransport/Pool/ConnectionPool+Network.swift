//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import LoadingModel
import NIOCore
import TransportMachines

extension ConnectionPool {
    /// Looked at in one turn of the loop; each is a question to the system.
    private static let connectionsPerTurn = 128

    /// The machine's networks changed: what leads nowhere any more fails at once, and where there is a new address, the connections that
    /// idle are closed, since there may be a better way.
    func networkChanged(from before: NetworkPath, to now: NetworkPath) {
        let hasNewAddress = !Set(now.interfaces.flatMap(\.addresses)).isSubset(of: before.interfaces.flatMap(\.addresses))
        let standing = standing()
        endLost(standing[...]) { [weak self] in
            if hasNewAddress { self?.closeIdleBeyondTheMachine() }
        }
    }

    /// Whether a connection of a route stands over which CONNECT may name a protocol (RFC 8441).
    package func allowsExtendedConnect(_ route: Route) -> Bool {
        guard let origin = origins[route] else { return false }
        // Not all of the pool's: those that were taken over are among them, perhaps ten thousand.
        return machine.shared(origin).contains { id in
            entries[id]?.connection?.allowsExtendedConnect == true && machine.takesLeases(id)
        }
    }

    /// Another protocol has the connection: it is not kept, and no load waits for it.
    ///
    /// It is still told when its network goes away.
    package func wasTakenOver(_ connection: any HTTPConnection) {
        let id = ConnectionID(connection.id)
        forgetAliases(of: id)
        perform(machine.handle(.closed(id)))
    }

    /// Somebody else has the connection's channel.
    func replace(_ connection: any HTTPConnection, by other: any HTTPConnection) {
        entries[ConnectionID(connection.id)]?.connection = other
    }

    /// Has a load wait until the machine's networks change; answers false where nobody would tell.
    package func wait(_ control: LoadControl) -> Bool {
        guard let network = dialer.network else { return false }
        network.wait(control, now: .now())
        return true
    }

    /// Whether that is over: something changed, or the load must end.
    package func hasEnded(_ wait: NetworkView.Wait) -> Bool { dialer.network?.hasEnded(wait, now: .now()) ?? true }

    /// The connections that stand, in the order in which they were made, with what they must not lead over.
    private func standing() -> [(connection: any HTTPConnection, prohibited: ProhibitedNetworks)] {
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
        LoopDirectory.executor(of: loop).turns.whenNext { [self] in endLost(rest, then: done) }
    }

    /// There is a new address: what idles is closed, and a stream task told, since there may be a better way.
    private func closeIdleBeyondTheMachine() {
        for (connection, _) in standing() {
            guard let address = connection.facts.localAddress, dialer.network?.mayConcern(address) == true else { continue }
            if connection.isIdle { connection.close() } else { (connection as? ByteStreamConnection)?.findBetterRoute() }
        }
    }
}

extension Dialer {
    /// What connections of a route must not lead over.
    func prohibited(on route: Route) -> ProhibitedNetworks { (route.details?.needs ?? needs).prohibited }
}
