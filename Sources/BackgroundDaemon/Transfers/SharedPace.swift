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

/// Holds all transfers together to a rate.
///
/// What was moved is paid for by time: who moved bytes moves no more before they are paid for, and all that others moved before them.
package final class SharedPace: Sendable {
    private struct State {
        /// Bytes in a second.
        var rate: Double?
        /// When all that was moved is paid for, on the monitor's clock.
        var next = 0.0
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameter rate: Bytes in a second from now on; nil for as many as there are. What was moved before is forgotten.
    package func set(_ rate: Int64?) {
        state.withLock { $0 = State(rate: rate.map { Double(max(1, $0)) }) }
    }

    /// Notes bytes that were moved.
    ///
    /// - Returns: Seconds until the next may be; 0 where there is no rate.
    package func wait(after count: Int64, now: Double = Monitor.clock) -> Double {
        state.withLock { state in
            guard let rate = state.rate else { return 0 }
            // A pause that was not used is not made up for.
            state.next = max(state.next, now) + Double(max(0, count)) / rate
            return state.next - now
        }
    }
}
