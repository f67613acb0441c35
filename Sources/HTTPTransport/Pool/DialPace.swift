//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Starts dials a few per turn of the loop, in FIFO order: opening a socket takes time, and thousands may be requested at once.
///
/// Confined to its event loop.
final class DialPace {
    /// About 5 ms of work.
    private static let atOnce = 32

    private let turns: LoopTurns
    private var waiting = CircularBuffer<() -> Void>()
    private var begun = 0
    /// Dials are being started, or the next turn is awaited.
    private var isBusy = false

    init(_ turns: LoopTurns) { self.turns = turns }

    /// Starts a dial, now or in its turn.
    func begin(_ dial: @escaping () -> Void) {
        waiting.append(dial)
        if !isBusy { beginSome() }
    }

    private func beginSome() {
        isBusy = true
        while begun < Self.atOnce, let dial = waiting.popFirst() {
            begun += 1
            dial()
        }
        guard begun == Self.atOnce else {
            isBusy = false
            return
        }
        turns.whenNext { [self] in
            begun = 0
            beginSome()
        }
    }
}
