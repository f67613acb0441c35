// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import Synchronization
import Testing

@Suite struct AdjustedClockTests {
    /// A monotonic clock and a wall clock that move only when the test moves them.
    private final class ManualClocks: Sendable {
        let monotonic = Atomic<Int64>(5_000_000_000)
        let wall = Mutex(1000.0)

        var clock: AdjustedClock {
            AdjustedClock(monotonic: { self.monotonic.load(ordering: .relaxed) }, wall: { self.wall.withLock { $0 } })
        }

        func advance(_ seconds: Double, slept: Double = 0) {
            monotonic.add(Int64(seconds * 1e9), ordering: .relaxed)
            wall.withLock { $0 += seconds + slept }
        }

        var now: Int64 { monotonic.load(ordering: .relaxed) }
    }

    @Test func `the clock runs with the monotonic clock`() {
        let clocks = ManualClocks()
        let clock = clocks.clock
        #expect(clock.seconds(clocks.now) == 1000)
        clocks.advance(0.25)
        #expect(clock.seconds(clocks.now) == 1000.25)
        #expect(clock.seconds(clocks.now - 250_000_000) == 1000)
        clocks.advance(60, slept: 0.5)
        // Corrections of the wall clock by up to half a second are ignored.
        #expect(clock.seconds(clocks.now) == 1060.25)
    }

    @Test func `sleep and changes of the wall clock are detected`() {
        let clocks = ManualClocks()
        let clock = clocks.clock
        clocks.advance(2, slept: 28_800)
        #expect(clock.seconds(clocks.now) == 29_802)
        clocks.advance(2, slept: -28_800)
        #expect(clock.seconds(clocks.now) == 1004)
    }

    @Test func `a time in the past does not change the clock`() {
        let clocks = ManualClocks()
        let clock = clocks.clock
        clocks.advance(100)
        #expect(clock.seconds(clocks.now - 60_000_000_000) == 1040)
        #expect(clock.seconds(clocks.now) == 1100)
    }
}
