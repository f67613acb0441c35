// SPDX-License-Identifier: Apache-2.0

import TransportMachines

/// Moves connections, dials and queued loads between routes and origins.
extension ConnectionPool {
    /// Moves a route to another origin, or back to its own origin, together with its queued loads.
    func rename(_ route: Route, _ other: OriginID?) {
        guard let former = origins[route] else { return }
        origins[route] = other
        lastOrigin = nil
        let waiting = leases.values.filter { $0.origin == former && $0.route == route }
        if !waiting.isEmpty { regroup(waiting, [], to: origin(of: route)) }
    }

    /// Moves queued loads and dials to another origin.
    func regroup(_ moved: [Lease], _ dials: [ConnectionID], to origin: OriginID) {
        let questions = moved.map { ($0.origin, $0.questionCount) }
        for dial in dials { entries[dial]?.origin = origin }
        for lease in moved { lease.origin = origin }
        let mayBeShared = routes[origin].map { self.mayBeShared(origin, $0) } ?? false
        perform(machine.handle(.regrouped(moved.map(\.id), dials, origin, mayBeShared: mayBeShared)))
        for (former, count) in questions {
            for _ in 0..<count {
                perform(machine.handle(.appIsAsked(origin, true)))
                perform(machine.handle(.appIsAsked(former, false)))
            }
        }
    }

    /// Moves the connections of one route to another route, whose holder is shared by several loads.
    package func move(_ route: Route, to other: Route) {
        guard let from = origins[route] else { return }
        let to = origin(of: other)
        for id in entries.filter({ $0.value.origin == from && $0.value.connection != nil }).keys.sorted(by: {
            $0.number < $1.number
        }) {
            entries[id]?.origin = to
            perform(machine.handle(.moved(id, to)))
        }
    }

    /// Moves a route's most recently used idle connection, if there is one, to another route.
    package func moveIdle(_ route: Route, to other: Route) {
        guard hasIdle(route), let connection = takeIdle(route) else { return }
        let (id, to) = (ConnectionID(connection.id), origin(of: other))
        entries[id]?.origin = to
        perform(machine.handle(.moved(id, to)))
        giveBack(connection)
    }
}
