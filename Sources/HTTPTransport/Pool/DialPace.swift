//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Begins dials a few in a turn of the loop, in their order: to open a socket takes long, and thousands may be wanted at once.
///
/// Confined to its event loop.
final class DialPace {
    /// Some 5 ms of work.
    private static let atOnce = 32

    private let turns: LoopTurns
    private var waiting = CircularBuffer<() -> Void>()
    private var begun = 0
    /// Dials are being begun, or the next turn is waited for.
    private var isBusy = false

    init(_ turns: LoopTurns) { self.turns = turns }

    /// Begins a dial, now or in its turn.
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
