//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel
import Synchronization

/// Keeps what other threads say to an engine, in their order, until the event loop reads it.
///
/// Posting never blocks, and wakes the loop once, however much is posted before it looks.
final class Mailbox: Sendable {
    enum Message: Sendable {
        case submit(TaskOrder, any LoadClient)
        case command(TaskCommand, TaskID)
        case cancelAll
        case invalidate
        case renew(Renewal, @Sendable () -> Void)
    }

    private struct State {
        var messages: [Message] = []
        /// Whether the loop was woken for what is posted.
        var isAwaited = false
        /// Bytes of credit among the messages.
        var credit = 0
        /// How many loads wait for some.
        var waitingForCredit = 0
    }

    /// Credit that the loop is woken for: half of what a load may have outstanding, so that one which waits for credit is woken before
    /// its client has dealt with all there is.
    private static let creditStep = Load.creditWindow / 2
    /// Credits of so many tasks are not left lying.
    private static let mostCredits = 16

    private let state = Mutex(State())

    /// Answers whether the loop has to be woken.
    func post(_ message: Message) -> Bool {
        state.withLock { state in
            state.messages.append(message)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
    }

    /// Returns credit for data that was dealt with.
    ///
    /// A wake-up costs about as much as dealing with a piece of data, so the loop is woken only where a load waits for credit, and then not
    /// for little; what lies here a load finds before it waits.
    func post(credit bytes: Int, of task: TaskID) -> Bool {
        state.withLock { state in
            state.credit += bytes
            if case .command(.consumed(let earlier), task)? = state.messages.last {
                state.messages[state.messages.count - 1] = .command(.consumed(bytes: earlier + bytes), task)
            } else {
                state.messages.append(.command(.consumed(bytes: bytes), task))
            }
            let isWanted = state.waitingForCredit > 0 && state.credit >= Self.creditStep
            guard isWanted || state.messages.count >= Self.mostCredits, !state.isAwaited else { return false }
            state.isAwaited = true
            return true
        }
    }

    /// A load waits for credit, unless what is returned here is enough, until ``endWaitingForCredit()``.
    func beginWaitingForCredit(of task: TaskID) -> Int {
        state.withLock { state in
            state.waitingForCredit += 1
            var found = 0
            // Where there are more messages, the loop was woken for them.
            for index in state.messages.indices.suffix(Self.mostCredits).reversed() {
                guard case .command(.consumed(let bytes), task) = state.messages[index] else { continue }
                state.messages.remove(at: index)
                found += bytes
            }
            state.credit -= found
            return found
        }
    }

    func endWaitingForCredit() { state.withLock { $0.waitingForCredit -= 1 } }

    /// Exchanges what was posted for an empty array, whose capacity serves the next messages.
    func take(into messages: inout [Message]) {
        state.withLock { state in
            state.isAwaited = false
            state.credit = 0
            swap(&state.messages, &messages)
        }
    }
}
