// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Testing

/// Origins that do not answer, and the transfers that wait for them.
struct SilentOriginTests {
    @Test func `a silent origin is tried by one transfer at a time, less and less often`() {
        var bench = SchedulerBench()
        for id in 1...10 as ClosedRange<Int64> { bench.add(id, host: "h") }
        // A failure does not let the next transfer start.
        for id in 1...6 as ClosedRange<Int64> { #expect(bench.fail(id, .network) == []) }
        #expect(bench.machine.waitReason(of: 7) == .origin(until: bench.wake ?? 0, attempts: 1))
        #expect(bench.tick(at: 2.1) == [.start(7)])
        #expect(bench.machine.waitReason(of: 8) == .host)
        #expect(bench.fail(7, .network) == [])
        #expect(bench.tick(at: 6) == [])
        #expect(bench.tick(at: 6.2) == [.start(8)])
        #expect(Set(bench.send(.answered(8))) == [.start(1), .start(2), .start(3), .start(9), .start(10)])
    }

    @Test func `transfers to another origin do not wait`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1, host: "h")
        bench.add(2, host: "h")
        bench.add(3, host: "h") { $0.origin = "h:81" }
        #expect(bench.fail(1, .network) == [.start(3)])
        #expect(bench.send(.removed(3)) == [])
    }

    @Test func `a failing transfer does not delay others if the origin answers them`() {
        var bench = SchedulerBench(perHost: 2)
        for id in 1...3 as ClosedRange<Int64> { bench.add(id, host: "h") }
        bench.send(.answered(2))
        #expect(bench.fail(1, .network) == [.start(3)])
    }

    @Test func `another transfer tries the origin if the first one is stopped`() {
        var bench = SchedulerBench(perHost: 1)
        for id in 1...3 as ClosedRange<Int64> { bench.add(id, host: "h") }
        bench.fail(1, .network)
        #expect(bench.tick(at: 2.1) == [.start(2)])
        #expect(bench.send(.held(2)) == [.stop(2, .held)])
        #expect(bench.send(.stopped(2)) == [.start(3)])
        #expect(bench.send(.removed(3)) == [.start(1)])
    }

    @Test func `a new order for a silent origin is soon tried`() {
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

    @Test func `a returning network ends the pauses of origins`() {
        var bench = SchedulerBench()
        bench.add(1, host: "h")
        bench.fail(1, .network)
        bench.add(2, host: "h")
        bench.set { $0.isConnected = false }
        #expect(bench.set(random: 0) { $0.isConnected = true } == [.start(2)])
    }
}
