//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// How long to wait before a request is sent once more.
package enum Backoff {
    /// The pause in seconds, doubled each time; of that a half to the whole, so that those that failed together do not come back together.
    ///
    /// - Parameters:
    ///   - count: Which of these attempts it is, from 1 on; zero has no pause.
    ///   - first: The first pause, in seconds.
    ///   - longest: The longest, in seconds.
    ///   - isDoubled: Whether the first is twice as long.
    ///   - jitter: From 0 to 1.
    /// - Returns: The seconds.
    package static func pause(
        before count: Int, first: Double = 0.1, longest: Double = 10, isDoubled: Bool = false, jitter: Double
    ) -> Double {
        guard count > 0 else { return 0 }
        var pause = first * (isDoubled ? 2 : 1)
        for _ in 1..<count where pause < longest { pause *= 2 }
        return min(pause, longest) * (1 + min(max(jitter, 0), 1)) / 2
    }
}
