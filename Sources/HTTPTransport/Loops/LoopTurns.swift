// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Splits long work on an event loop, so that the loop's other work gets its turn in between.
///
/// NIO runs all queued tasks before it polls its sockets again. Work that merely reschedules the rest of itself, with `execute` or
/// `Task.yield()`, still starves the sockets. Work that waits in this class continues only after the loop has polled its sockets,
/// one item at a time, so that a turn of the loop stays short however much work there is. Urgent work, which serves all loads
/// (their deadlines, requests of the app), alternates with the other work.
///
/// Confined to its event loop.
package final class LoopTurns {
    /// The length of a pause: longer than the loop needs to get from the end of its tasks to polling its sockets.
    private static let pause = TimeAmount.microseconds(20)
    /// The minimum delay of the end of a pause that shows that the loop was busy with tasks.
    ///
    /// After tasks, the loop runs due timers without polling its sockets first.
    private static let lateness = TimeAmount.microseconds(500)
    /// The maximum number of pauses in a row, because handling the sockets can also delay the end of a pause.
    private static let attempts = 4

    private let loop: any EventLoop
    private var waiting = CircularBuffer<() -> Void>()
    /// Urgent work, which alternates with the other work.
    private var urgent = CircularBuffer<() -> Void>()
    private var lastWasUrgent = false
    private var isArmed = false

    init(_ loop: any EventLoop) { self.loop = loop }

    /// Continues in a later turn of the loop.
    package func next() async {
        await withUnsafeContinuation { continuation in runInLaterTurn { continuation.resume() } }
    }

    /// Runs work in a later turn of the loop.
    package func runInLaterTurn(isUrgent: Bool = false, _ work: @escaping () -> Void) {
        if isUrgent { urgent.append(work) } else { waiting.append(work) }
        arm()
    }

    private func popFirst() -> (() -> Void)? {
        lastWasUrgent = !urgent.isEmpty && (!lastWasUrgent || waiting.isEmpty)
        return lastWasUrgent ? urgent.popFirst() : waiting.popFirst()
    }

    private func arm() {
        guard !isArmed, !waiting.isEmpty || !urgent.isEmpty else { return }
        isArmed = true
        pause(attempts: Self.attempts)
    }

    private func pause(attempts: Int) {
        // The pause starts once the loop has run the tasks that are already queued.
        loop.assumeIsolated().execute { [self] in
            let end = NIODeadline.now() + Self.pause
            loop.assumeIsolated().scheduleTask(deadline: end) { [self] in
                guard attempts <= 1 || NIODeadline.now() - end < Self.lateness else { return pause(attempts: attempts - 1) }
                isArmed = false
                popFirst()?()
                arm()
            }
        }
    }
}
