// SPDX-License-Identifier: Apache-2.0

import NIOCore
import TransportMachines

/// Opens a second shared connection to an origin whose only connection is blocked.
extension ConnectionPool {
    /// How long an origin's only shared connection may have no capacity before a second connection is dialed.
    private static let queueWatchDelay = TimeAmount.seconds(1)
    /// How long no second connection is made to a server that sent ENHANCE_YOUR_CALM.
    static let calmPeriod = TimeAmount.seconds(10)

    /// Lets new requests use another connection, because the server of this connection may be gone.
    func isDoubtful(_ connection: any HTTPConnection) {
        guard !isInCalmPeriod(entries[ConnectionID(connection.id)]?.origin) else { return }
        perform(machine.handle(.isDoubtful(ConnectionID(connection.id))))
    }

    /// Starts a timer that checks a blocked queue.
    func watchQueue(of origin: OriginID) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        // If the origin was forgotten after an earlier call, an earlier timer may still be running.
        queueWatches[origin]?.cancel()
        queueWatches[origin] = loop.scheduleTask(in: Self.queueWatchDelay) {
            let pool = bound.value
            guard pool.queueWatches.removeValue(forKey: origin) != nil else { return }
            if pool.isInCalmPeriod(origin) { return pool.watchQueue(of: origin) }
            pool.perform(pool.machine.handle(.queueCheckIsDue(origin)))
        }
    }

    private func isInCalmPeriod(_ origin: OriginID?) -> Bool {
        guard let origin, let end = servers[origin]?.calmUntil else { return false }
        return loop.now < end
    }

    func cancelQueueWatches() {
        for watch in queueWatches.values { watch.cancel() }
        queueWatches = [:]
    }
}
