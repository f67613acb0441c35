// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import LoadingTrust
import NIOCore
import TransportMachines

/// Uses connections for hosts other than the host for which they were made (RFC 9113, section 9.1.1).
///
/// The host is looked up as usual. If one of its addresses is the peer of an established shared connection whose certificate is
/// also valid for the host, the host's loads use that connection, and the dial ends. A server that is not configured for the host
/// responds with 421 (Misdirected Request); from then on the host has its own connections.
extension ConnectionPool {
    /// The maximum number of hosts that are remembered as needing their own connections.
    private static let maximumSeparated = 1_024

    /// Looks for an existing connection for the loads that are waiting for a dial.
    ///
    /// - Parameters:
    ///   - id: The dial.
    ///   - addresses: The result of the lookup.
    ///   - decide: Called once; its argument tells whether the dial is over.
    /// - Returns: false if there is no such connection, in which case `decide` is not called.
    func coalesce(_ id: ConnectionID, _ addresses: [SocketAddress], decide: @escaping (Bool) -> Void) -> Bool {
        guard let origin = entries[id]?.origin, let route = routes[origin], route.isSecure, route.details == nil,
            dialer.versions(of: route).mayShare, !separated.contains(route), machine.hasSingleDial(origin),
            // An app that judges servers must be asked about each server.
            adviser(for: origin)?.judgesServers == false, hasOneRoute(origin, route),
            let host = candidate(for: route, addresses)
        else { return false }
        let demands = dialer.demands(route.host)
        let bound = NIOLoopBound(self, eventLoop: loop)
        let answer = NIOLoopBound(decide, eventLoop: loop)
        TrustVerdicts.verdict(
            on: (host.keptChain?.certificates ?? []).map { Array($0) }, host: route.host, roots: dialer.tls.policy.trustRoots,
            demands: demands,
            now: .now()
        ) { [id = host.id] verdict in
            bound.eventLoop.execute {
                let isGood = verdict.failure == nil && bound.value.join(origin, route, ConnectionID(id))
                answer.value(isGood)
            }
        }
        return true
    }

    /// Returns a connection to one of the addresses that serves other hosts, too.
    private func candidate(for route: Route, _ addresses: [SocketAddress]) -> (any HTTPConnection)? {
        let port = dialer.destination(of: route).port
        let known = Set(addresses.compactMap(\.ipAddress))
        for (id, entry) in entries.sorted(by: { $0.key.number < $1.key.number }) {
            guard let connection = entry.connection, connection.servesOtherHosts, machine.takesLeases(id),
                connection.facts.remotePort == port,
                let address = connection.facts.remoteAddress, known.contains(address),
                let own = routes[entry.origin], own.isSecure, own.details == nil,
                dialer.demands(own.host) == dialer.demands(route.host)
            else { continue }
            return connection
        }
        return nil
    }

    /// Moves the loads of an origin to a connection of another origin.
    private func join(_ origin: OriginID, _ route: Route, _ id: ConnectionID) -> Bool {
        guard origins[route] == origin, hasOneRoute(origin, route), let entry = entries[id],
            entry.connection?.servesOtherHosts == true, machine.takesLeases(id), machine.hasSingleDial(origin),
            entry.origin != origin
        else { return false }
        aliases[entry.origin, default: []].insert(route)
        rename(route, entry.origin)
        return true
    }

    /// Makes the hosts that share a connection use their own origins again, because the connection takes no more loads.
    func forgetAliases(of id: ConnectionID) {
        guard let origin = entries[id]?.origin, let others = aliases.removeValue(forKey: origin) else { return }
        for route in others.sorted(by: { ($0.host, $0.port) < ($1.host, $1.port) }) { rename(route, nil) }
    }

    /// Handles a response that says that the server is not configured for the route's host (421).
    ///
    /// Returns whether the host was using another host's connection.
    package func separate(_ route: Route) -> Bool {
        guard let origin = origins[route], aliases[origin]?.remove(route) != nil else { return false }
        if separated.count >= Self.maximumSeparated { separated = [] }
        separated.insert(route)
        rename(route, nil)
        return true
    }
}
