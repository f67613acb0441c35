// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Starts a few dials per turn of the loop, in FIFO order: opening a socket takes time, and thousands of dials may be requested at
/// once.
///
/// Confined to its event loop.
final class DialPace {
    /// The maximum number of dials per turn of the loop, about 5 ms of work.
    private static let dialsPerTurn = 32

    private let turns: LoopTurns
    private var waiting = CircularBuffer<() -> Void>()
    private var startedThisTurn = 0
    /// Whether dials are being started, or the next turn is awaited.
    private var isBusy = false

    init(_ turns: LoopTurns) { self.turns = turns }

    /// Starts a dial, now or when its turn comes.
    func begin(_ dial: @escaping () -> Void) {
        waiting.append(dial)
        if !isBusy { startQueuedDials() }
    }

    private func startQueuedDials() {
        isBusy = true
        while startedThisTurn < Self.dialsPerTurn, let dial = waiting.popFirst() {
            startedThisTurn += 1
            dial()
        }
        guard startedThisTurn == Self.dialsPerTurn else {
            isBusy = false
            return
        }
        turns.runInLaterTurn { [self] in
            startedThisTurn = 0
            startQueuedDials()
        }
    }
}
