//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
import NIOCore
import SystemThreads

/// Ends an idle daemon, or returns its memory to the system.
final class IdleWatch {
    /// The idle time in seconds after which memory is returned.
    private static let pause = 2.0

    /// Called when the daemon is to end, with the reason unless it is that no program needs it.
    private var onEnd: (@Sendable (String?) -> Void)?
    private var idleTimer: Scheduled<Void>?
    /// The timer that returns memory; remains set after it has fired.
    private var timer: Scheduled<Void>?

    func begin(_ onEnd: @escaping @Sendable (String?) -> Void) { self.onEnd = onEnd }
    func end(_ reason: String? = nil) { onEnd?(reason) }

    /// Starts or cancels the timer that ends the daemon after the idle time in its options.
    func updateIdleTimer(_ desk: isolated TransferDesk) {
        let isIdle =
            desk.clients.connections.isEmpty
            && !desk.sessions.values.contains {
                $0.endedCount < $0.transfers.count || $0.candidate.needsProgram || !$0.pendingRemovals.isEmpty
            }
        consider(desk)
        guard let limit = desk.options.idleLimit, isIdle, !desk.isClosing else {
            idleTimer?.cancel()
            idleTimer = nil
            return
        }
        guard idleTimer == nil else { return }
        idleTimer = desk.timer(after: limit) { desk in
            desk.rest.idleTimer = nil
            desk.rest.end()
        }
    }

    /// Starts or cancels the timer that returns memory to the system while no program is connected and no transfer is running.
    func consider(_ desk: isolated TransferDesk) {
        if !desk.clients.connections.isEmpty || !desk.scheduler.running.isEmpty {
            timer?.cancel()
            timer = nil
        } else if timer == nil {
            timer = desk.timer(after: Self.pause) { $0.ownFiles.run { cls_rest() } }
        }
    }
}
