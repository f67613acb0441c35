// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Testing

/// Transfers share a rate limit.
struct SharedRateLimiterTests {
    @Test func `bytes of one transfer delay the others, too`() {
        let pace = SharedRateLimiter()
        pace.set(100)
        #expect(pace.wait(after: 200, now: 10) == 2)
        #expect(pace.wait(after: 100, now: 10) == 3)
        #expect(pace.wait(after: 0, now: 11) == 2)
        #expect(pace.wait(after: 0, now: 13) == 0)
    }

    @Test func `time without transfers does not allow a later burst`() {
        let pace = SharedRateLimiter()
        pace.set(100)
        #expect(pace.wait(after: 100, now: 10) == 1)
        #expect(pace.wait(after: 100, now: 1_000) == 1)
    }

    @Test func `a new rate disregards earlier bytes, and without a rate nothing waits`() {
        let pace = SharedRateLimiter()
        #expect(pace.wait(after: .max, now: 10) == 0)
        pace.set(1)
        #expect(pace.wait(after: 1_000_000, now: 10) == 1_000_000)
        pace.set(1_000)
        #expect(pace.wait(after: 1_000, now: 10) == 1)
        pace.set(nil)
        #expect(pace.wait(after: 1_000_000, now: 10) == 0)
    }
}
