//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import NIOCore

/// Lets long work on an event loop be done a bit at a time, with the loop's other work in between.
///
/// NIO runs all that it was given before it looks at its sockets again: work that merely gives the rest of itself back to the loop, by
/// `execute` or `Task.yield()`, keeps the sockets waiting all the same. Who waits here goes on when the loop has looked at them, one at a time
/// and in turn, so that a turn of the loop stays short however many have much to do. What serves all loads, such as their deadlines and
/// what the app wants of them, waits for one of the others at most for each that came before it.
///
/// Confined to its event loop.
package final class LoopTurns {
    /// Longer than the loop takes from the end of its work to its sockets.
    private static let pause = TimeAmount.microseconds(20)
    /// A pause that ends so much too late was filled with work, from which the loop goes on to what is due without looking at its sockets.
    private static let lateness = TimeAmount.microseconds(500)
    /// So often a pause is begun anew: the sockets may themselves have kept the loop.
    private static let attempts = 4

    private let loop: any EventLoop
    private var waiting = CircularBuffer<() -> Void>()
    /// What comes first, in turn with the others.
    private var urgent = CircularBuffer<() -> Void>()
    private var lastWasUrgent = false
    private var isArmed = false

    init(_ loop: any EventLoop) { self.loop = loop }

    /// Goes on in a later turn of the loop.
    package func next() async {
        await withUnsafeContinuation { continuation in whenNext { continuation.resume() } }
    }

    /// Runs work in a later turn of the loop.
    package func whenNext(isUrgent: Bool = false, _ work: @escaping () -> Void) {
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
        // The time counts from when the loop has done what it was given before.
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
