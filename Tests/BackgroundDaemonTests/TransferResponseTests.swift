// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Testing

/// The slot of a transfer whose content was sent, and which waits for its response.
struct TransferResponseTests {
    @Test func `an upload that only waits for its response may finish`() {
        var bench = SchedulerBench(places: 6)
        for id in 1...3 { bench.add(Int64(id)) { $0.isDiscretionary = true } }
        #expect(bench.send(.sentAll(1, true)) == [] && bench.send(.sentAll(2, true)) == [])
        // A redirect makes it send its body again.
        #expect(bench.send(.sentAll(2, false)) == [])
        #expect(bench.set { $0.isWithinHours = false } == [.stop(2, .conditions), .stop(3, .conditions)])
        #expect(bench.send(.removed(1)) == [] && bench.send(.stopped(2)) == [] && bench.send(.stopped(3)) == [])
        // The next attempt sends its body again.
        #expect(bench.set { $0.isWithinHours = true } == [.start(2), .start(3)])
        #expect(bench.set { $0.isMetered = true } == [.stop(2, .conditions), .stop(3, .conditions)])
    }

    @Test func `an upload that has to send its content again obeys the conditions`() {
        var bench = SchedulerBench(places: 6)
        bench.add(1)
        #expect(bench.send(.sentAll(1, true)) == [])
        #expect(bench.set { $0.isWithinHours = false } == [])
        #expect(bench.send(.sentAll(1, false)) == [.stop(1, .conditions)])
        #expect(bench.send(.stopped(1)) == [])
        #expect(bench.set { $0.isWithinHours = true } == [.start(1)])
        // The next attempt has sent nothing yet.
        #expect(bench.send(.sentAll(1, true)) == [])
        #expect(bench.send(.held(1)) == [.stop(1, .held)] && bench.send(.stopped(1)) == [])
        #expect(bench.send(.released(1)) == [.start(1)])
        #expect(bench.set { $0.isWithinHours = false } == [.stop(1, .conditions)])
    }

    @Test func `the speed of a transfer counts unless it waits for its response`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        #expect(bench.send(.sentAll(1, true)) == [])
        #expect(bench.add(2) == [] && bench.tick(at: 599) == [])
        #expect(bench.send(.receivedResponse(1)) == [])
        // The conditions do not stop it, even though the response has begun.
        #expect(bench.set { $0.isWithinHours = false } == [])
        #expect(bench.set { $0.isWithinHours = true } == [])
        #expect(bench.tick(at: 658) == [])
        #expect(bench.tick(at: 660) == [.stop(1, .tooSlow)])
    }

    @Test func `a server that never responds to an upload keeps no slot from other transfers`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        #expect(bench.send(.sentAll(1, true)) == [] && bench.add(2) == [] && bench.wake == 600)
        #expect(bench.tick(at: 600) == [] && bench.wake == 660)
        // A response starts a new measurement.
        #expect(bench.send(.receivedResponse(1), at: 650) == [])
        #expect(bench.tick(at: 709) == [])
        #expect(bench.send(.sentAll(1, false)) == [] && bench.send(.sentAll(1, true)) == [])
        #expect(bench.tick(at: 1_309) == [] && bench.tick(at: 1_368) == [])
        #expect(bench.tick(at: 1_369) == [.stop(1, .tooSlow)])
        #expect(bench.send(.stopped(1)) == [.start(2)])
        // The server may need longer: the next attempt waits twice as long.
        #expect(bench.send(.removed(2)) == [] && bench.tick(at: 1_371) == [.start(1)])
        #expect(bench.send(.sentAll(1, true), at: 2_000) == [] && bench.add(3) == [] && bench.wake == 3_200)
        #expect(bench.tick(at: 3_200) == [] && bench.tick(at: 3_260) == [.stop(1, .tooSlow)])
    }

    @Test func `with a rate limit the wait for a response starts after the pause`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.set { $0.isSlow = true }
        #expect(bench.send(.sentAll(1, true, pausedFor: 1_000)) == [] && bench.add(2) == [] && bench.wake == 1_600)
        #expect(bench.tick(at: 1_600) == [] && bench.tick(at: 1_660) == [.stop(1, .tooSlow)])
    }

    @Test func `a response that begins before the whole content was sent is not waited for`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        #expect(bench.send(.receivedResponse(1)) == [] && bench.send(.sentAll(1, true)) == [])
        #expect(bench.add(2) == [] && bench.wake == 60)
        #expect(bench.tick(at: 60) == [.stop(1, .tooSlow)])
    }

    @Test func `an upload that lost its connection and finds no network obeys the conditions`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        #expect(bench.send(.sentAll(1, true)) == [])
        #expect(bench.set { $0.isWithinHours = false } == [])
        #expect(bench.send(.lacksNetwork(1)) == [.stop(1, .conditions)])
    }

    @Test func `a discretionary upload that waits for its response does not give way`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1) { $0.isDiscretionary = true }
        #expect(bench.send(.sentAll(1, true)) == [])
        #expect(bench.add(2) == [])
        #expect(bench.tick(at: 599) == [])
        #expect(bench.send(.sentAll(1, false)) == [.stop(1, .yields)])
    }

    @Test func `a change of the clock does not shorten the wait for a response`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        #expect(bench.send(.sentAll(1, true)) == [] && bench.add(2) == [] && bench.wake == 600)
        #expect(bench.send(.clockMoved(by: 5000), at: 5100) == [] && bench.wake == 5600)
        #expect(bench.send(.clockMoved(by: -4000), at: 1200) == [] && bench.wake == 1600)
        #expect(bench.tick(at: 1600) == [] && bench.tick(at: 1660) == [.stop(1, .tooSlow)])
    }
}
