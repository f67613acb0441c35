//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
package import NIOCore

/// Tells the time of day on a scale that never runs backwards: one reading of the wall clock when the process starts, and the
/// monotonic clock from then on.
package enum WallClock {
    private static let anchor: (wall: Double, monotonic: NIODeadline) = (
        Date().timeIntervalSinceReferenceDate, NIODeadline.now()
    )

    /// Seconds since the reference date of `Date`.
    package static func now() -> Double { seconds(NIODeadline.now()) }

    package static func seconds(_ instant: NIODeadline) -> Double {
        let anchor = anchor
        return anchor.wall + Double((instant - anchor.monotonic).nanoseconds) / 1e9
    }
}
