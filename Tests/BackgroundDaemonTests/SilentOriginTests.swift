//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundDaemon
import Testing

/// Origins that do not answer, and transfers that wait for them.
struct SilentOriginTests {
    @Test func `an origin that does not answer is tried by one at a time, less and less often`() {
        var bench = SchedulerBench()
        for id in 1...10 as ClosedRange<Int64> { bench.add(id, host: "h") }
        // The place of the first is not given to the next.
        for id in 1...6 as ClosedRange<Int64> { #expect(bench.fail(id, .network) == []) }
        #expect(bench.machine.waitReason(of: 7) == .origin(until: bench.wake ?? 0, attempts: 1))
        #expect(bench.tick(at: 2.1) == [.start(7)])
        #expect(bench.machine.waitReason(of: 8) == .host)
        #expect(bench.fail(7, .network) == [])
        #expect(bench.tick(at: 6) == [])
        #expect(bench.tick(at: 6.2) == [.start(8)])
        #expect(Set(bench.send(.answered(8))) == [.start(1), .start(2), .start(3), .start(9), .start(10)])
    }

    @Test func `who waits elsewhere does not wait for that origin`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1, host: "h")
        bench.add(2, host: "h")
        bench.add(3, host: "h") { $0.origin = "h:81" }
        #expect(bench.fail(1, .network) == [.start(3)])
        #expect(bench.send(.removed(3)) == [])
    }

    @Test func `one that fails where others are answered holds up no other`() {
        var bench = SchedulerBench(perHost: 2)
        for id in 1...3 as ClosedRange<Int64> { bench.add(id, host: "h") }
        bench.send(.answered(2))
        #expect(bench.fail(1, .network) == [.start(3)])
    }

    @Test func `another one tries where the first was stopped`() {
        var bench = SchedulerBench(perHost: 1)
        for id in 1...3 as ClosedRange<Int64> { bench.add(id, host: "h") }
        bench.fail(1, .network)
        #expect(bench.tick(at: 2.1) == [.start(2)])
        #expect(bench.send(.held(2)) == [.stop(2, .held)])
        #expect(bench.send(.stopped(2)) == [.start(3)])
        #expect(bench.send(.removed(3)) == [.start(1)])
    }

    @Test func `an order for an origin that does not answer is tried soon`() {
        var bench = SchedulerBench()
        bench.add(1, host: "h")
        for _ in 0..<6 {
            bench.fail(1, .network)
            #expect(bench.tick(at: bench.wake ?? 0) == [.start(1)])
        }
        bench.fail(1, .network)
        bench.add(2, host: "h")
        #expect(bench.wake == bench.now + 2)
        #expect(bench.tick(at: bench.wake ?? 0) == [.start(2)])
        #expect(bench.send(.removed(1)) == [] && bench.send(.removed(2)) == [])
        #expect(bench.wake == nil)
    }

    @Test func `a network that is back ends the pauses of origins`() {
        var bench = SchedulerBench()
        bench.add(1, host: "h")
        bench.fail(1, .network)
        bench.add(2, host: "h")
        bench.set { $0.isConnected = false }
        #expect(bench.set(random: 0) { $0.isConnected = true } == [.start(2)])
    }
}
