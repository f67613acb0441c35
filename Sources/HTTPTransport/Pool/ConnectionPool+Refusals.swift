//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import LoadingModel
import NIOCore
import TransportMachines

/// What comes of connections to an origin that take no more requests.
extension ConnectionPool {
    /// The server has begun to work on a request of this connection.
    func worked(_ connection: any HTTPConnection) {
        if let origin = entries[ConnectionID(connection.id)]?.origin { forgive(origin) }
    }

    /// Nothing that earlier connections to the origin did holds up the next dial.
    func forgive(_ origin: OriginID) {
        versions[origin]?.fruitless.reset()
        versions[origin]?.pausedUntil = nil
    }

    /// The server takes no more on this connection.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - isFruitless: It has worked on none of its requests.
    ///   - asksForCalm: It was asked for too much (ENHANCE_YOUR_CALM), and gets no second connection for a while.
    /// - Returns: Whether it is the last of too many such connections in a row.
    func takesNoMore(_ connection: any HTTPConnection, isFruitless: Bool, asksForCalm: Bool) -> Bool {
        let id = ConnectionID(connection.id)
        guard let origin = entries[id]?.origin else { return false }
        var known = versions[origin, default: KnownVersion()]
        if asksForCalm { known.calmUntil = loop.now + Self.calm }
        // While another one serves, there is somebody to send requests to.
        let others = machine.shared(origin).filter { $0 != id }
        let serves = others.contains { (entries[$0]?.connection as? HTTP2Connection)?.standing.hasWorked == true }
        let isLast = isFruitless && !serves && known.fruitless.add()
        if serves { known.fruitless.reset() }
        let pause = known.fruitless.pause(asksForCalm: asksForCalm, jitter: .random(in: 0...1))
        known.pausedUntil = pause > 0 ? loop.now + .nanoseconds(Int64(pause * 1e9)) : nil
        versions[origin] = known
        return isLast
    }

    /// The server wants HTTP/1.1 in place of what this connection speaks.
    func wantsHTTP1(_ connection: any HTTPConnection) {
        guard let origin = entries[ConnectionID(connection.id)]?.origin else { return }
        versions[origin, default: KnownVersion()].isUnfitForHTTP2 = true
    }

    /// Fails the loads that wait for a connection to the origin of this one.
    func giveUp(_ connection: HTTP2Connection) {
        guard let origin = entries[ConnectionID(connection.id)]?.origin else { return }
        let count = FruitlessConnections.most
        let message = "connecting to \(connection.facts.peer): the server took no request on \(count) connections in a row"
        let waiting = leases.values.filter { $0.origin == origin }.sorted { $0.id.number < $1.id.number }
        for lease in waiting {
            perform(machine.handle(.withdrawn(lease.id)))
            refuse(lease.id, LoadError(.connectionLost, message))
        }
    }

    /// Whether a dial waits until the origin may be dialled again, which is no lateness of the server's.
    func pausesDial(_ id: ConnectionID, _ origin: OriginID) -> Bool {
        guard let end = versions[origin]?.pausedUntil, loop.now < end else { return false }
        let bound = NIOLoopBound(self, eventLoop: loop)
        entries[id]?.isPaused = true
        entries[id]?.nextTry = loop.scheduleTask(deadline: end) {
            let pool = bound.value
            // A timer that was due when it was cancelled runs all the same.
            guard pool.entries[id]?.isPaused == true else { return }
            pool.entries[id]?.isPaused = false
            pool.entries[id]?.nextTry = nil
            pool.pauseEnded(origin)
            pool.pace.begin { pool.dial(id) }
        }
        pausing.append(origin)
        return true
    }

    /// Those that wait for a paused dial are told when all is carried out that the machine said before.
    func tellPauses() {
        isTellingPauses = true
        defer { isTellingPauses = false }
        while let origin = pausing.popLast() { perform(machine.handle(.appIsAsked(origin, true))) }
    }

    func pauseEnded(_ origin: OriginID) {
        if let untold = pausing.firstIndex(of: origin) {
            pausing.remove(at: untold)
        } else {
            perform(machine.handle(.appIsAsked(origin, false)))
        }
    }
}
