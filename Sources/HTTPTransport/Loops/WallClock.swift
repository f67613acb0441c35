// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import NIOCore
import Synchronization

/// Converts instants to the time of day.
///
/// Between two checks of the system's clock, this clock advances with the monotonic clock, without a system call.
package enum WallClock {
    private static let clock = AdjustedClock(wall: { Date().timeIntervalSinceReferenceDate })

    /// Returns the current time, in seconds since the reference date of `Date`.
    package static func now() -> Double { seconds(NIODeadline.now()) }

    package static func seconds(_ instant: NIODeadline) -> Double {
        clock.seconds(Int64(clamping: instant.uptimeNanoseconds))
    }
}

/// A monotonic clock that is checked against the wall clock at most once a second, so that it notices when the machine has slept or
/// its clock was set.
package final class AdjustedClock: Sendable {
    /// The interval between checks in nanoseconds, and the tolerated deviation in seconds.
    private static let interval: Int64 = 1_000_000_000
    private static let tolerance = 1.0

    private let monotonic: @Sendable () -> Int64
    private let wall: @Sendable () -> Double
    /// The wall clock's offset from the monotonic clock in seconds, as the bits of a `Double`.
    private let offset: Atomic<UInt64>
    private let checkedAt: Atomic<Int64>

    /// - Parameters:
    ///   - monotonic: Reads the monotonic clock, in nanoseconds.
    ///   - wall: Reads the wall clock, in seconds.
    package init(
        monotonic: @escaping @Sendable () -> Int64 = { Int64(clamping: NIODeadline.now().uptimeNanoseconds) },
        wall: @escaping @Sendable () -> Double
    ) {
        self.monotonic = monotonic
        self.wall = wall
        let now = monotonic()
        offset = Atomic((wall() - Double(now) / 1e9).bitPattern)
        checkedAt = Atomic(now)
    }

    /// Returns the wall clock's time at an instant, which is now or in the past.
    package func seconds(_ instant: Int64) -> Double {
        if instant - checkedAt.load(ordering: .relaxed) > Self.interval { check() }
        return Double(instant) / 1e9 + Double(bitPattern: offset.load(ordering: .relaxed))
    }

    @inline(never)
    private func check() {
        let now = monotonic()
        checkedAt.store(now, ordering: .relaxed)
        let present = wall() - Double(now) / 1e9
        guard abs(present - Double(bitPattern: offset.load(ordering: .relaxed))) > Self.tolerance else { return }
        offset.store(present.bitPattern, ordering: .relaxed)
    }
}
