// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Synchronization

/// Queues messages from other threads to an engine until the event loop reads them.
///
/// Posting never blocks, and wakes the loop once, however many messages are posted before the loop reads them.
final class Mailbox: Sendable {
    enum Message: Sendable {
        case submit(TaskOrder, any LoadClient)
        case command(TaskCommand, TaskID)
        case cancelAll
        case invalidate
        case renew(Renewal, @Sendable () -> Void)
        /// A step of the test clock, which applies to the orders before it.
        case step(SteppedClock.Step, elapsed: Int64)
    }

    private struct State {
        var messages: [Message] = []
        /// Whether the loop was woken for the queued messages.
        var hasWokenLoop = false
        /// Bytes of credit among the messages.
        var credit = 0
        /// The number of loads that are waiting for credit.
        var waitingForCredit = 0
    }

    /// The maximum number of bytes delivered to a load's client that it has not processed yet: two pieces of a fast body.
    static let creditWindow = 1_572_864
    /// The credit at which the loop is woken: half of a load's credit window, so that a waiting load continues before its client
    /// has processed everything.
    private static let creditStep = creditWindow / 2
    /// The number of queued messages at which any amount of credit wakes the loop.
    private static let maximumQueuedCredits = 16

    private let state = Mutex(State())

    /// Queues a message; returns whether the loop has to be woken.
    func post(_ message: Message) -> Bool {
        state.withLock { state in
            state.messages.append(message)
            defer { state.hasWokenLoop = true }
            return !state.hasWokenLoop
        }
    }

    /// Queues the credit for data that the client has processed; returns whether the loop has to be woken.
    ///
    /// A wakeup costs about as much as processing a piece of data. The loop is therefore woken only if enough credit is queued
    /// and a load is waiting for credit, or if many messages are queued. A load checks for queued credit before it waits.
    func post(credit bytes: Int, of task: TaskID) -> Bool {
        state.withLock { state in
            state.credit += bytes
            if case .command(.consumed(let earlier), task)? = state.messages.last {
                state.messages[state.messages.count - 1] = .command(.consumed(bytes: earlier + bytes), task)
            } else {
                state.messages.append(.command(.consumed(bytes: bytes), task))
            }
            let isWanted = state.waitingForCredit > 0 && state.credit >= Self.creditStep
            guard isWanted || state.messages.count >= Self.maximumQueuedCredits, !state.hasWokenLoop else { return false }
            state.hasWokenLoop = true
            return true
        }
    }

    /// Records that a load is waiting for credit; ``endWaitingForCredit()`` records the end of the wait.
    ///
    /// Returns the load's queued credit; if that suffices, the load does not wait.
    func beginWaitingForCredit(of task: TaskID) -> Int {
        state.withLock { state in
            state.waitingForCredit += 1
            var found = 0
            // If more messages than this are queued, the loop has already been woken.
            for index in state.messages.indices.suffix(Self.maximumQueuedCredits).reversed() {
                guard case .command(.consumed(let bytes), task) = state.messages[index] else { continue }
                state.messages.remove(at: index)
                found += bytes
            }
            state.credit -= found
            return found
        }
    }

    func endWaitingForCredit() { state.withLock { $0.waitingForCredit -= 1 } }

    /// Swaps the queued messages with an empty array, whose capacity is reused for the next messages.
    func take(into messages: inout [Message]) {
        state.withLock { state in
            state.hasWokenLoop = false
            state.credit = 0
            swap(&state.messages, &messages)
        }
    }
}
