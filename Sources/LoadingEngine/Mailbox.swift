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
        case invalidate
        case renew(Renewal, @Sendable () -> Void)
    }

    private struct State {
        var messages: [Message] = []
        /// Whether the loop was woken for what is posted.
        var isAwaited = false
        /// Bytes of credit among the messages.
        var credit = 0
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
    /// A wake-up costs about as much as dealing with a piece of data, so small credits wait for more, or for whatever else the loop is
    /// woken for.
    func post(credit bytes: Int, of task: TaskID) -> Bool {
        state.withLock { state in
            state.credit += bytes
            if case .command(.consumed(let earlier), task)? = state.messages.last {
                state.messages[state.messages.count - 1] = .command(.consumed(bytes: earlier + bytes), task)
            } else {
                state.messages.append(.command(.consumed(bytes: bytes), task))
            }
            guard state.credit >= Self.creditStep || state.messages.count >= Self.mostCredits, !state.isAwaited else {
                return false
            }
            state.isAwaited = true
            return true
        }
    }

    /// Exchanges what was posted for an empty array, whose capacity serves the next messages.
    func take(into messages: inout [Message]) {
        state.withLock { state in
            state.isAwaited = false
            state.credit = 0
            swap(&state.messages, &messages)
        }
    }
}
