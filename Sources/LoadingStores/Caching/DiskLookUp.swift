// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemThreads

/// A lookup that has to wait for the disk.
package struct DiskLookUp: Sendable {
    private let begin: @Sendable (PendingAnswer) -> Void

    init(_ begin: @escaping @Sendable (PendingAnswer) -> Void) { self.begin = begin }

    /// Starts the lookup; `reply` is called once, on a thread of the ``DiskQueue``, unless the answer is cancelled first.
    @discardableResult
    package func callAsFunction(_ reply: @escaping @Sendable (ResponseCache.Hit?) -> Void) -> PendingAnswer {
        let answer = PendingAnswer(reply)
        begin(answer)
        return answer
    }

    /// Starts the lookup for an existing pending answer.
    func callAsFunction(for answer: PendingAnswer) { begin(answer) }
}

/// The pending result of a ``DiskLookUp``.
///
/// A cancelled lookup is skipped, so that abandoned lookups do not pile up on a disk that does not respond.
package final class PendingAnswer: Sendable {
    private let reply: Mutex<(@Sendable (ResponseCache.Hit?) -> Void)?>
    /// The time of the last progress, on the clock of ``Monitor``.
    private let lastStep = Mutex(-Double.infinity)

    init(_ reply: @escaping @Sendable (ResponseCache.Hit?) -> Void) { self.reply = Mutex(reply) }

    /// Whether the disk makes progress: checking a large body may take longer than the timeout for an unresponsive disk.
    package var isMakingProgress: Bool { Monitor.clock - lastStep.withLock { $0 } < DiskQueue.patience }

    func noteProgress() { lastStep.withLock { $0 = Monitor.clock } }

    var isWanted: Bool { reply.withLock { $0 != nil } }

    func fulfill(_ hit: ResponseCache.Hit?) { take()?(hit) }

    /// Drops the reply handler.
    package func cancel() { _ = take() }

    private func take() -> (@Sendable (ResponseCache.Hit?) -> Void)? {
        reply.withLock { reply in
            defer { reply = nil }
            return reply
        }
    }
}
