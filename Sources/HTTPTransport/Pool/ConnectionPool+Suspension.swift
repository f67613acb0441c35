// SPDX-License-Identifier: Apache-2.0

import NIOCore
import TransportMachines

/// Handles suspended loads and their positions in the queue for connections.
extension ConnectionPool {
    /// Withdraws the request of a load that was suspended; once resumed, the load requests a connection again.
    ///
    /// A connection that the load was granted goes to the next queued load at once. A failure is kept until the load is resumed.
    ///
    /// A load that was asked about a connection keeps its position until the connection's dial succeeds or fails, and then passes
    /// the connection on. Otherwise an app that suspends the task, answers the question and resumes the task would be asked the
    /// same question about each new connection.
    func leaveQueue(_ lease: Lease) {
        guard lease.connection != nil || lease.failure == nil else { return }
        if lease.connection == nil, isAsked(lease) { return perform(machine.handle(.suspended(lease.id, true))) }
        lease.control.enter(.elsewhere)
        endHold(lease, now: .now())
        leases[lease.id] = nil
        if let connection = lease.connection.take() {
            giveBack(connection)
        } else {
            perform(machine.handle(.withdrawn(lease.id)))
        }
        // Called last, so that open questions pass to the next queued lease.
        leave(lease)
    }

    /// Whether a dial has asked the lease's load a question that could not be answered at once.
    private func isAsked(_ lease: Lease) -> Bool {
        guard let adviser = lease.adviser else { return false }
        return machine.dials(lease.origin).contains { entries[$0]?.dial?.hasAsked(adviser) ?? false }
    }

    /// Makes a load that has kept its position wait for a connection again.
    func resumed(_ lease: Lease) { perform(machine.handle(.suspended(lease.id, false))) }
}
