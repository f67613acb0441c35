// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
package import LoadingModel
import NIOCore

/// The entrance for other threads: messages are processed on the loop in the order in which they are posted, and posting never
/// blocks.
extension SessionEngine: LoadingService, LoopCallee {
    package nonisolated func submit(_ order: TaskOrder, client: any LoadClient) -> Bool { mailbox.post(.submit(order, client)) }

    package nonisolated func wake() {
        if executor.loop.inEventLoop { executor.proceed(self) } else { executor.loop.execute { self.executor.enter(self) } }
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

    nonisolated func post(_ message: Mailbox.Message) {
        if mailbox.post(message) { wake() }
    }

    /// Processes the mailbox, on the loop.
    package nonisolated func proceed() {
        if let processMessages = entrance.processMessages { processMessages() } else { assumeIsolated { $0.processMessages() } }
    }

    /// The number of messages processed before other work on the loop gets its turn.
    ///
    /// Starting a load takes about 20 µs.
    private static let messagesAtOnce = 256

    /// Processes the posted messages, unless that is already in progress.
    func processMessages() {
        if !isProcessingMessages { processMessagesNow() }
    }

    private func processMessagesNow() {
        mailbox.take(into: &messages)
        // Reversed, so that messages can be moved out from the end instead of being copied.
        if messages.count > 1 { messages.reverse() }
        processMessages(part: 0)
    }

    private func processMessages(part: Int) {
        var left = Self.messagesAtOnce
        while left > 0, let message = messages.popLast() {
            carryOut(message)
            left -= 1
        }
        isProcessingMessages = !messages.isEmpty
        if isProcessingMessages {
            executor.turns.runInLaterTurn(isUrgent: true) { self.assumeIsolated { $0.processMessages(part: part + 1) } }
            return
        }
        // Releases the capacity that a burst needed.
        if messages.capacity > 128 { messages = [] }
        // Messages that arrived between the parts are processed now, because their wakeup was ignored.
        if part > 0 { processMessagesNow() }
    }

    private func carryOut(_ message: consuming Mailbox.Message) {
        switch consume message {
        case .submit(let order, let client): start(order, client: client)
        case .command(let command, let task): carryOut(command, for: task)
        case .cancelAll: cancelAllNow()
        case .invalidate: stopAcceptingOrders()
        case .renew(let renewal, let completion): renew(renewal, completion)
        case .step(let step, let elapsed): apply(step, to: elapsed)
        }
    }
}

/// The entrance for loads of the session, which are on the loop already.
extension SessionEngine: LoadRunner, BackgroundLoading {
    /// Lets callers on the loop call the engine without the runtime's isolation check, which costs more than the call.
    //
    // `@unchecked`: accessed only on the loop.
    final class Entrance: @unchecked Sendable {
        fileprivate(set) var processMessages: (() -> Void)?
        fileprivate var proceed: ((NIOLoopBound<Load>) -> Void)?
    }

    func openEntrance(for session: SessionFacts) {
        session.background = self
        entrance.processMessages = { [unowned self] in processMessages() }
        entrance.proceed = { [unowned self] in proceed($0) }
    }

    nonisolated func proceed(_ load: Load) {
        let woken = NIOLoopBound(load, eventLoop: loop)
        if let proceed = entrance.proceed { proceed(woken) } else { assumeIsolated { $0.proceed(woken) } }
    }

    nonisolated func startInBackground(_ order: TaskOrder, client: any LoadClient) {
        assumeIsolated { $0.start(order, client: client) }
    }

    nonisolated func commandInBackground(_ command: TaskCommand, for task: TaskID) {
        assumeIsolated { $0.carryOut(command, for: task) }
    }
}
