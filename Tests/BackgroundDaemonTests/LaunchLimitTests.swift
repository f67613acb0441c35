// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Testing

/// How often a program is started.
struct LaunchLimitTests {
    @Test func `the time until the next start doubles up to a day`() {
        var limit = LaunchLimit()
        var now = 1000.0
        var delays: [Double] = []
        for _ in 0..<16 {
            #expect(limit.start(now, patience: 60) == nil)
            // The program is started again as soon as the limit allows.
            let delay = limit.start(now, patience: 60) ?? 0
            delays.append(delay)
            #expect(limit.start(now + delay - 1, patience: 60) == 1)
            now += delay
        }
        #expect(delays.prefix(4) == [10, 20, 40, 80])
        #expect(delays.suffix(2) == [86_400, 86_400])
    }

    @Test func `without a start for twice the delay the limit is reset`() {
        var limit = LaunchLimit()
        for now in [0.0, 10, 30] { #expect(limit.start(now, patience: 60) == nil) }
        #expect(limit.start(30, patience: 60) == 40)
        #expect(limit.start(30 + 60 + 79, patience: 60) == nil)
        #expect(limit.start(30 + 60 + 79, patience: 60) == 80)
        #expect(limit.start(30 + 60 + 79 + 60 + 160, patience: 60) == nil)
        #expect(limit.start(30 + 60 + 79 + 60 + 160, patience: 60) == 10)
    }

    @Test func `a program that never connects is started less and less often`() {
        var limit = LaunchLimit()
        // The limit is asked again when the time for the program to connect has passed.
        var now = 0.0
        var starts: [Double] = []
        while starts.count < 8 {
            if let wait = limit.start(now, patience: 60) {
                now += wait
                continue
            }
            starts.append(now)
            now += 60
        }
        #expect(zip(starts.dropFirst(), starts).map { $0 - $1 } == [60, 60, 60, 80, 160, 320, 640])
    }

    @Test func `a clock that was set back does not delay a start`() {
        var limit = LaunchLimit()
        #expect(limit.start(1_000_000, patience: 60) == nil)
        #expect(limit.start(5, patience: 60) == nil)
        #expect(limit.start(5, patience: 60) == 20)
    }

    @Test func `a program that handled all its events may soon be started again`() {
        var limit = LaunchLimit()
        for now in [0.0, 10, 30] { #expect(limit.start(now, patience: 60) == nil) }
        limit.settle()
        #expect(limit.start(30.5, patience: 60) == 0.5)
        #expect(limit.start(31, patience: 60) == nil)
        // Only the next start is exempt from the doubled delay.
        #expect(limit.start(31, patience: 60) == 10)
    }
}
