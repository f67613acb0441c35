// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import Synchronization

/// The proxy scripts that are running in the process.
///
/// At most one script that cannot be terminated is running.
///
/// JavaScriptCore terminates a script after its time limit, but only at points where JavaScriptCore checks the clock. A search in
/// megabytes of text, for example, contains no such point, so the script keeps its thread. After it has run for ``longest``, no
/// other script is started, for any session, until it ends.
package final class RunningScripts: Sendable {
    package static let shared = RunningScripts()

    /// The time after which a script is considered endless; far longer than a script may take on a busy machine.
    package static let longest = TimeAmount.seconds(60)

    /// A running script.
    ///
    /// The time of host name lookups is not counted, because it is unlimited.
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

    /// Whether a running script is considered endless.
    package var includesEndlessScript: Bool {
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

    /// Runs a helper function that the script calls, without counting its time.
    package func pause<Value>(_ turn: Turn, for ask: () -> Value) -> Value {
        end(turn)
        defer {
            let now = now()
            state.withLock { $0.since[turn.number] = now }
        }
        return ask()
    }
}
