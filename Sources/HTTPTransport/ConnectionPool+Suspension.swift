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

/// Suspended loads and the line for connections.
extension ConnectionPool {
    /// Withdraws the wish of a load that was suspended; once resumed, the load wishes again.
    ///
    /// A connection that it was granted goes to the next in line at once. A failure is kept until the load is resumed.
    ///
    /// A load on whose behalf the app was asked stays in line until the connection in question is made or has failed, and then passes it
    /// on. An app that suspends the task, answers and resumes it would otherwise be asked the same about a new connection each time.
    func stepAside(_ lease: Lease) {
        guard lease.connection != nil || lease.failure == nil && !lease.wasAsked else { return }
        lease.control.stand(at: .elsewhere)
        letGo(lease, now: .now())
        leases[lease.id] = nil
        if let connection = lease.connection.take() {
            giveBack(connection)
        } else {
            perform(machine.handle(.withdrawn(lease.id)))
        }
        // Last, so that open questions pass to the next lease in line.
        leave(lease)
    }
}
