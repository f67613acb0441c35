// SPDX-License-Identifier: Apache-2.0

import NIOCore
import TransportMachines

/// Manages the pool's share of the process's connections.
extension ConnectionPool {
    var room: ConnectionBudget.Share {
        if let share { return share }
        let made = budget.join(
            loop,
            made: { [weak self] in
                guard let self else { return false }
                perform(machine.handle(.capacityGranted))
                return true
            },
            needed: { [weak self] in self?.makeRoom() }
        )
        share = made
        return made
    }

    /// Closes the connections that have been idle longest, for other pools.
    private func makeRoom() {
        let actions = machine.handle(.capacityNeeded)
        // The budget has discarded the last report.
        idleSince = nil
        if actions.isEmpty { room.hadNothingToRelease() }
        perform(actions)
    }

    package func hasIdle(_ route: Route) -> Bool { knownOrigin(of: route).map { machine.hasIdle($0) } ?? false }

    package func count(_ route: Route) -> Int { knownOrigin(of: route).map { machine.count($0) } ?? 0 }

    func reportIdle() {
        guard machine.idleSince != idleSince else { return }
        idleSince = machine.idleSince
        share?.idle(since: idleSince)
    }
}
