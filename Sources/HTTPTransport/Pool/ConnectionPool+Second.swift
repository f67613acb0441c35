//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore
import TransportMachines

/// A second connection of HTTP/2 to an origin whose only one stands still.
extension ConnectionPool {
    /// How long an origin's one shared connection may have no free place before a second one is dialled.
    private static let lineWatch = TimeAmount.seconds(1)
    /// How long a server that wants calm has no second one.
    static let calm = TimeAmount.seconds(10)

    /// The server may be gone: requests that begin now may have another connection.
    func isDoubtful(_ connection: any HTTPConnection) {
        guard !isCalmedDown(entries[ConnectionID(connection.id)]?.origin) else { return }
        perform(machine.handle(.isDoubtful(ConnectionID(connection.id))))
    }

    /// Looks at a line that stands after a while.
    func watchLine(of origin: OriginID) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        // What was known of the origin may have been forgotten since the last time.
        lineWatches[origin]?.cancel()
        lineWatches[origin] = loop.scheduleTask(in: Self.lineWatch) {
            let pool = bound.value
            guard pool.lineWatches.removeValue(forKey: origin) != nil else { return }
            if pool.isCalmedDown(origin) { return pool.watchLine(of: origin) }
            pool.perform(pool.machine.handle(.lineWasWatched(origin)))
        }
    }

    private func isCalmedDown(_ origin: OriginID?) -> Bool {
        guard let origin, let end = versions[origin]?.calmUntil else { return false }
        return loop.now < end
    }

    func endLineWatches() {
        for watch in lineWatches.values { watch.cancel() }
        lineWatches = [:]
    }
}
