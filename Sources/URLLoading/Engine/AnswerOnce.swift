// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Passes on the first answer and ignores the others: an app can call a completion handler more than once.
final class AnswerOnce<Answer: Sendable>: Sendable {
    private let reply: Mutex<(@Sendable (Answer?) -> Void)?>

    init(_ reply: @escaping @Sendable (Answer?) -> Void) { self.reply = Mutex(reply) }

    func callAsFunction(_ answer: Answer?) {
        let reply = reply.withLock { $0.take() }
        reply?(answer)
    }

    /// Calls a method that has a completion handler, and waits for the first answer.
    static func wait(for ask: (@escaping @Sendable (Answer?) -> Void) -> Void) async -> Answer? {
        await withCheckedContinuation { continuation in
            let once = AnswerOnce { continuation.resume(returning: $0) }
            ask { once($0) }
        }
    }
}
