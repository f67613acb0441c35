//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
package import LoadingModel
import NIOCore

/// The way in from other threads: what is posted is carried out on the loop in the order of posting, and posting never blocks.
extension SessionEngine: LoadingService, LoopCallee {
    package nonisolated func submit(_ order: TaskOrder, client: any LoadClient) -> Bool { mailbox.post(.submit(order, client)) }

    package nonisolated func wake() {
        if executor.loop.inEventLoop { executor.goOn(self) } else { executor.loop.execute { self.executor.enter(self) } }
    }

    package nonisolated var taskExecutor: any TaskExecutor { LoopDirectory.guestExecutor(of: loop) }

    package nonisolated func command(_ command: TaskCommand, for task: TaskID) -> Bool {
        if case .consumed(let bytes) = command { return mailbox.post(credit: bytes, of: task) }
        return mailbox.post(.command(command, task))
    }

    package nonisolated func cancelAll() { post(.cancelAll) }

    package nonisolated func invalidate() { post(.invalidate) }

    package nonisolated func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        post(.renew(renewal, completion))
    }

    private nonisolated func post(_ message: Mailbox.Message) {
        if mailbox.post(message) { wake() }
    }

    /// Attends to the mailbox, on the loop.
    package nonisolated func goOn() {
        if let attend = entrance.attend { attend() } else { assumeIsolated { $0.attend() } }
    }

    /// The way in for who is on the loop and not on the actor: for the runtime to find out that the two are one costs more than the call.
    //
    // `@unchecked`: touched on the loop alone.
    final class Entrance: @unchecked Sendable {
        fileprivate(set) var attend: (() -> Void)?
    }

    /// How many messages are carried out before the others on the loop have their turn: to begin a load takes some 20 µs.
    private static let messagesAtOnce = 256

    /// Carries out what was posted, unless that goes on already.
    func attend() {
        if entrance.attend == nil { entrance.attend = { [unowned self] in attend() } }
        if !isAttending { attendNow() }
    }

    private func attendNow() {
        mailbox.take(into: &messages)
        // Taken out one by one rather than copied, and so from the end.
        if messages.count > 1 { messages.reverse() }
        attend(part: 0)
    }

    private func attend(part: Int) {
        var left = Self.messagesAtOnce
        while left > 0, let message = messages.popLast() {
            carryOut(message)
            left -= 1
        }
        isAttending = !messages.isEmpty
        if isAttending {
            executor.turns.whenNext(isUrgent: true) { self.assumeIsolated { $0.attend(part: part + 1) } }
            return
        }
        // What a burst needed is not kept.
        if messages.capacity > 128 { messages = [] }
        // Nobody wakes the loop for what was posted since the first part.
        if part > 0 { attendNow() }
    }

    private func carryOut(_ message: consuming Mailbox.Message) {
        switch consume message {
        case .submit(let order, let client): start(order, client: client)
        case .command(let command, let task): carryOut(command, for: task)
        case .cancelAll: cancelAllNow()
        case .invalidate: stopTakingOrders()
        case .renew(let renewal, let completion): renew(renewal, completion)
        }
    }
}
