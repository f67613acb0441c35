// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemThreads

/// Limits the total rate of all transfers.
///
/// After moving bytes, a transfer pauses until the rate covers these bytes and all bytes that other transfers moved before.
package final class SharedRateLimiter: Sendable {
    private struct State {
        /// The limit in bytes per second.
        var rate: Double?
        /// When the rate covers all transferred bytes, on the monitor's clock.
        var next = 0.0
    }

    private let state = Mutex(State())

    package init() {}

    /// Sets the limit, and forgets the bytes that were transferred before.
    ///
    /// - Parameter rate: The limit in bytes per second; nil for no limit.
    package func set(_ rate: Int64?) {
        state.withLock { $0 = State(rate: rate.map { Double(max(1, $0)) }) }
    }

    /// Counts transferred bytes.
    ///
    /// - Returns: The seconds to wait before the next bytes; 0 without a limit.
    package func wait(after count: Int64, now: Double = Monitor.clock) -> Double {
        state.withLock { state in
            guard let rate = state.rate else { return 0 }
            // Unused time is not saved up.
            state.next = max(state.next, now) + Double(max(0, count)) / rate
            return state.next - now
        }
    }
}
