//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import NIOCore
import Synchronization

/// The proxy scripts of the process that run now, so that one which cannot be ended is the only one.
///
/// JavaScriptCore ends a script after its time wherever it looks at the clock. Within a search in a text of megabytes, say, it does not:
/// such a script keeps its thread, and no other is begun beside it, whichever session wants it and however often networks change.
package final class RunningScripts: Sendable {
    package static let shared = RunningScripts()

    /// Far longer than a script may take on a machine that has much to do.
    package static let longest = TimeAmount.seconds(60)

    /// A script that computes since some moment, or asks about a name, which takes as long as it takes.
    package struct Turn: Sendable {
        fileprivate let number: Int
    }

    private struct State {
        var last = 0
        var since: [Int: NIODeadline] = [:]
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> NIODeadline

    package init(now: @escaping @Sendable () -> NIODeadline = { .now() }) { self.now = now }

    /// Whether one of them goes on for ever.
    package var includeEndless: Bool {
        let now = now()
        return state.withLock { $0.since.values.contains { now - $0 > Self.longest } }
    }

    package func begin() -> Turn {
        let now = now()
        return state.withLock { state in
            state.last += 1
            state.since[state.last] = now
            return Turn(number: state.last)
        }
    }

    package func end(_ turn: Turn) {
        state.withLock { $0.since[turn.number] = nil }
    }

    /// Runs what the script asks of the system in between.
    package func pause<Answer>(_ turn: Turn, for ask: () -> Answer) -> Answer {
        end(turn)
        defer {
            let now = now()
            state.withLock { $0.since[turn.number] = now }
        }
        return ask()
    }
}
