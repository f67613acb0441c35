// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import TransportMachines

/// Lets the tasks of different delegates share connections for which the roots vouch.
///
/// All loads to a server use one origin, the common one, whichever delegate they have. If the roots vouch for the server, no
/// delegate takes part in the handshake: each delegate is asked about the kept chain before one of its loads uses the connection
/// (``KeptChain``). If a handshake has to ask a task's own delegate, the dial and the queued loads of that delegate move to an origin
/// of their own, and the other loads continue without them. The origin of a delegate lasts as long as it has connections, dials or
/// loads.
///
/// The common origin is closed to tasks with their own delegates while it has a connection that only the session's delegate trusts,
/// or a dial about which that delegate is asked.
extension ConnectionPool {
    /// The origin of a route if it has one: for hints about connections that exist.
    func knownOrigin(of route: Route) -> OriginID? { route.hasOwnDelegate ? origin(of: route) : origins[route] }

    /// Returns the origin of a route whose loads have a delegate of their own.
    func origin(ofDelegate route: Route) -> OriginID {
        hasOwnDelegates = true
        if let own = origins[route] {
            if machine.isKnown(own) { return own }
            forget(own, of: route)
        }
        return commonOrigin(of: route) ?? makeOrigin(of: route)
    }

    /// Returns the origin that a delegate's tasks share with all others; nil if it is closed to them.
    private func commonOrigin(of route: Route) -> OriginID? {
        let common = route.withoutDelegate
        let origin = origin(of: common)
        // The connections of an alias were made for another host.
        guard routes[origin] == common else { return nil }
        let reasons = reasonsToClose(origin)
        closedOrigins[origin] = reasons.isEmpty ? nil : reasons
        return reasons.isEmpty ? origin : nil
    }

    /// The connections and dials because of which an origin is closed, without those that are gone.
    private func reasonsToClose(_ origin: OriginID) -> Set<ConnectionID> {
        (closedOrigins[origin] ?? []).filter { id in
            entries[id].map { $0.origin == origin && $0.connection?.keptChain?.isForAllDelegates != true } ?? false
        }
    }

    /// Notes that a connection is used by one exchange to its end: the tasks of other delegates may use the next ones.
    func releaseOrigin(of id: ConnectionID) {
        if let origin = entries[id]?.origin { closedOrigins[origin]?.remove(id) }
    }

    // MARK: Dials

    /// Whether the roots decide about a dial's server before an adviser is asked: one that a task's own delegate waits for.
    func checksRootsFirst(_ id: ConnectionID) -> Bool {
        guard hasOwnDelegates, let origin = entries[id]?.origin else { return false }
        return leases.values.contains { $0.origin == origin && $0.route.hasOwnDelegate }
    }

    /// Prepares a dial for a question to a load, whose answer applies only to the tasks of the load's delegate.
    func willAsk(_ adviser: any HandshakeAdviser, about id: ConnectionID) {
        guard let origin = entries[id]?.origin, let route = routes[origin], route.isSecure, !route.hasOwnDelegate else { return }
        guard adviser.ownDelegate == nil else {
            let lease = leases.values.first { $0.adviser === adviser && $0.origin == origin }
            // The connections of a holder are not shared anyway.
            guard let lease, lease.route.hasOwnDelegate else { return }
            let waiting = queued { $0.origin == origin && $0.route == lease.route }
            return separate(waiting, lease.route, from: origin, with: id)
        }
        if adviser.judgesServers { close(origin, because: id) }
    }

    /// Decides whom a new connection may serve, before it serves anyone.
    func place(_ id: ConnectionID) {
        guard let origin = entries[id]?.origin, let chain = entries[id]?.connection?.keptChain, let route = routes[origin] else {
            return
        }
        guard route.hasOwnDelegate else {
            if !chain.isForAllDelegates { close(origin, because: id) }
            return
        }
        // Beside other connections of the delegate, and where the common origin has no room, it stays the delegate's.
        guard chain.isForAllDelegates, machine.count(origin) == 1, let common = commonOrigin(of: route),
            machine.mayTakeDial(common)
        else { return }
        if let known = servers[origin] { servers[common, default: KnownServer()].learn(known) }
        regroup(queued { $0.origin == origin }, [id], to: common)
    }

    /// Returns the lease whose load made a dial fail; nil if the failure concerns all loads.
    func lease(refusedBy id: ConnectionID) -> LeaseID? {
        guard hasOwnDelegates, let entry = entries[id], let adviser = entry.dial?.lastAnswering else { return nil }
        return leases.values.first { $0.adviser === adviser && $0.origin == entry.origin }?.id
    }

    /// Whether all loads that wait for an origin have the same route.
    func hasOneRoute(_ origin: OriginID, _ route: Route) -> Bool {
        !hasOwnDelegates || !leases.values.contains { $0.origin == origin && $0.route != route }
    }

    // MARK: Origins of delegates

    /// Closes a common origin to tasks with their own delegates; those that wait for it get origins of their own.
    private func close(_ origin: OriginID, because id: ConnectionID) {
        closedOrigins[origin] = reasonsToClose(origin).union([id])
        guard hasOwnDelegates else { return }
        let waiting = Dictionary(grouping: queued { $0.origin == origin && $0.route.hasOwnDelegate }, by: \.route)
        let inOrder = waiting.sorted { ($0.value.first?.id.number ?? 0) < ($1.value.first?.id.number ?? 0) }
        for (route, leases) in inOrder { separate(leases, route, from: origin, without: id) }
    }

    /// Gives a delegate's queued loads an origin of their own, with the dial that concerns them, and with further dials that have
    /// asked no load, as many as the loads need.
    private func separate(
        _ waiting: [Lease], _ route: Route, from origin: OriginID, with id: ConnectionID? = nil,
        without other: ConnectionID? = nil
    ) {
        let followers = machine.dials(origin).filter { $0 != id && $0 != other && entries[$0]?.dial?.maySwitchLoads == true }
        let dials = id.map { [$0] } ?? []
        let own = makeOrigin(of: route)
        servers[own] = servers[origin]
        regroup(waiting, dials + followers.prefix(max(0, waiting.count - dials.count)), to: own)
    }

    /// The leases in the order in which they were requested.
    private func queued(where isIncluded: (Lease) -> Bool) -> [Lease] {
        leases.values.filter(isIncluded).sorted { $0.id.number < $1.id.number }
    }
}

extension Route {
    /// Whether the route's loads have a delegate of their own that judges servers, and may use the connections of others.
    var hasOwnDelegate: Bool {
        details.map { isSecure && $0.judge != nil && $0.holder == nil && !$0.carriesByteStream } ?? false
    }

    /// The same route for loads without a delegate of their own.
    fileprivate var withoutDelegate: Route {
        guard let details else { return self }
        let common = RouteDetails(
            proxy: details.proxy, needs: details.needs, tunnelCredential: details.tunnelCredential,
            versions: details.versions, hasAlternatives: details.hasAlternatives, addresses: details.addresses,
            isExact: details.isExact)
        let hasOthers = common != RouteDetails(proxy: nil)
        return Route(isSecure: isSecure, host: host, port: port, details: hasOthers ? common : nil)
    }
}
