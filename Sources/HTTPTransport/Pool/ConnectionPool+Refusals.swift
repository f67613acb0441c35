// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Handles connections that take no more requests.
extension ConnectionPool {
    /// Records that the server has answered a request on this connection.
    func serverAnswered(_ connection: any HTTPConnection) {
        if let origin = entries[ConnectionID(connection.id)]?.origin { resetFailures(origin) }
    }

    /// Forgets earlier failures of connections to the origin, so that they no longer delay the next dial.
    func resetFailures(_ origin: OriginID) {
        servers[origin]?.fruitless.reset()
        servers[origin]?.pausedUntil = nil
    }

    /// Handles a connection on which the server takes no more requests.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - isFruitless: Whether the server refuses all of the connection's open requests, and has answered none before.
    ///   - asksForCalm: Whether the server reported excessive load (ENHANCE_YOUR_CALM); if so, no second connection to the server
    ///     is made for a while.
    /// - Returns: Whether the connection is the last of too many fruitless connections in a row.
    func stopsTakingRequests(_ connection: any HTTPConnection, isFruitless: Bool, asksForCalm: Bool) -> Bool {
        let id = ConnectionID(connection.id)
        guard let origin = entries[id]?.origin else { return false }
        var known = servers[origin, default: KnownServer()]
        if asksForCalm { known.calmUntil = loop.now + Self.calmPeriod }
        // While another connection works, requests can be sent on that connection.
        let others = machine.shared(origin).filter { $0 != id }
        let serves = others.contains { entries[$0]?.connection?.hasAnswered == true }
        let isLast = isFruitless && !serves && known.fruitless.add()
        if serves { known.fruitless.reset() }
        let pause = known.fruitless.pause(asksForCalm: asksForCalm, jitter: .random(in: 0...1))
        known.pausedUntil = pause > 0 ? loop.now + .nanoseconds(Int64(pause * 1e9)) : nil
        servers[origin] = known
        return isLast
    }

    /// Records that only some versions may be used with the connection's server.
    func narrow(_ id: ConnectionID, to versions: HTTPVersions) {
        guard let origin = entries[id]?.origin else { return }
        servers[origin, default: KnownServer()].accepted.formIntersection(versions)
    }

    /// Fails the loads that are waiting for a connection to this connection's origin.
    func giveUp(_ connection: any HTTPConnection) {
        guard let origin = entries[ConnectionID(connection.id)]?.origin else { return }
        let count = FruitlessConnections.most
        let message = "connecting to \(connection.facts.peer): the server accepted no request on \(count) connections in a row"
        let waiting = leases.values.filter { $0.origin == origin }.sorted { $0.id.number < $1.id.number }
        for lease in waiting {
            perform(machine.handle(.withdrawn(lease.id)))
            refuse(lease.id, LoadError(.connectionLost, message))
        }
    }

    /// Pauses a dial if the origin must not be dialed yet; returns whether the dial is paused.
    ///
    /// The request timeout does not run during the pause.
    func pausesDial(_ id: ConnectionID, _ origin: OriginID) -> Bool {
        guard let end = servers[origin]?.pausedUntil, loop.now < end else { return false }
        let bound = NIOLoopBound(self, eventLoop: loop)
        entries[id]?.isPaused = true
        entries[id]?.retryTimer = loop.scheduleTask(deadline: end) {
            let pool = bound.value
            // A timer that was already due when it was cancelled still runs.
            guard pool.entries[id]?.isPaused == true else { return }
            pool.entries[id]?.isPaused = false
            pool.entries[id]?.retryTimer = nil
            pool.pauseEnded(origin)
            pool.pace.begin { pool.dial(id) }
        }
        pausing.append(origin)
        return true
    }

    /// Notifies the loads that are waiting for a paused dial, after the machine's earlier actions have been performed.
    func reportPauses() {
        isReportingPauses = true
        defer { isReportingPauses = false }
        while let origin = pausing.popLast() { perform(machine.handle(.appIsAsked(origin, true))) }
    }

    func pauseEnded(_ origin: OriginID) {
        if let unreported = pausing.firstIndex(of: origin) {
            pausing.remove(at: unreported)
        } else {
            perform(machine.handle(.appIsAsked(origin, false)))
        }
    }
}
