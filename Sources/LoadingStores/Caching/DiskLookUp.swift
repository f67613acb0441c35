//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization
import SystemThreads

/// A look-up that the disk has to be waited for.
package struct DiskLookUp: Sendable {
    private let begin: @Sendable (PendingAnswer) -> Void

    init(_ begin: @escaping @Sendable (PendingAnswer) -> Void) { self.begin = begin }

    /// Begins it; `reply` is called once, on a thread of the ``DiskQueue``, unless the answer is cancelled before.
    @discardableResult
    package func callAsFunction(_ reply: @escaping @Sendable (ResponseCache.Hit?) -> Void) -> PendingAnswer {
        let answer = PendingAnswer(reply)
        begin(answer)
        return answer
    }

    /// Begins it for an answer that is waited for already.
    func callAsFunction(for answer: PendingAnswer) { begin(answer) }
}

/// What a ``DiskLookUp`` comes to.
///
/// A look-up that nobody waits for any more is not made: on a disk that does not answer, those that were given up do not gather.
package final class PendingAnswer: Sendable {
    private let reply: Mutex<(@Sendable (ResponseCache.Hit?) -> Void)?>
    /// When something was done for it, on the clock of ``Monitor``.
    private let lastStep = Mutex(-Double.infinity)

    init(_ reply: @escaping @Sendable (ResponseCache.Hit?) -> Void) { self.reply = Mutex(reply) }

    /// Whether the disk is at it: to check a large body may take longer than anybody waits for a disk that does not answer.
    package var isMoving: Bool { Monitor.clock - lastStep.withLock { $0 } < DiskQueue.patience }

    func noteStep() { lastStep.withLock { $0 = Monitor.clock } }

    var isWanted: Bool { reply.withLock { $0 != nil } }

    func give(_ hit: ResponseCache.Hit?) { take()?(hit) }

    /// Nobody waits any more.
    package func cancel() { _ = take() }

    private func take() -> (@Sendable (ResponseCache.Hit?) -> Void)? {
        reply.withLock { reply in
            defer { reply = nil }
            return reply
        }
    }
}
