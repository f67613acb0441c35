// SPDX-License-Identifier: Apache-2.0

/// The delay before a request is retried.
package enum Backoff {
    /// Returns the delay in seconds.
    ///
    /// The delay doubles with each attempt. A random part of up to one half of the delay is subtracted, so that requests that
    /// failed together are not retried together.
    ///
    /// - Parameters:
    ///   - count: The number of the attempt, starting at 1; zero means no delay.
    ///   - first: The first delay, in seconds.
    ///   - longest: The maximum delay, in seconds.
    ///   - isDoubled: Whether the first delay is doubled.
    ///   - jitter: A random number from 0 to 1.
    /// - Returns: The delay in seconds.
    package static func pause(
        before count: Int, first: Double = 0.1, longest: Double = 10, isDoubled: Bool = false, jitter: Double
    ) -> Double {
        guard count > 0 else { return 0 }
        var pause = first * (isDoubled ? 2 : 1)
        for _ in 1..<count where pause < longest { pause *= 2 }
        return min(pause, longest) * (1 + min(max(jitter, 0), 1)) / 2
    }
}
