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
    }

    private let state = Mutex(State())

    /// Answers whether the loop has to be woken.
    func post(_ message: Message) -> Bool {
        state.withLock { state in
            state.messages.append(message)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
    }

    /// Exchanges what was posted for an empty array, whose capacity serves the next messages.
    func take(into messages: inout [Message]) {
        state.withLock { state in
            state.isAwaited = false
            swap(&state.messages, &messages)
        }
    }
}
