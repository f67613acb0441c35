// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Testing

private typealias Action = TransferScheduler.Action
private typealias Item = TransferScheduler.Item

/// Tests each rule of when a transfer runs.
struct TransferSchedulerTests {
    // MARK: Turns

    @Test func `at most as many transfers run as there are places`() {
        var bench = SchedulerBench(places: 2)
        #expect(bench.add(1) == [.start(1)] && bench.add(2) == [.start(2)] && bench.add(3) == [])
        #expect(bench.machine.waitReason(of: 3) == .turn && bench.machine.waitReason(of: 1) == nil)
        #expect(bench.send(.removed(1)) == [.start(3)])
    }

    @Test func `a program with many transfers does not delay the first one of another`() {
        var bench = SchedulerBench(places: 2)
        for id in 1...100 { bench.add(Int64(id)) }
        bench.add(1000, program: 2)
        bench.add(1001, program: 2)
        #expect(bench.send(.removed(1)) == [.start(1000)])
        // Both run one transfer; the first program was served longer ago.
        #expect(bench.send(.removed(2)) == [.start(3)])
        #expect(bench.send(.removed(1000)) == [.start(1001)])
    }

    @Test func `the highest priority runs first, then the oldest`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.add(2) { $0.priority = 0.2 }
        bench.add(3) { $0.priority = 0.9 }
        bench.add(4) { $0.priority = 0.9 }
        #expect(bench.send(.removed(1)) == [.start(3)])
        bench.send(.priorityChanged(2, 1))
        #expect(bench.send(.removed(3)) == [.start(2)])
        #expect(bench.send(.removed(2)) == [.start(4)])
    }

    @Test(arguments: [(599, 3), (601, 2)] as [(Double, Int64)]) func `waiting raises the priority`(later: Double, first: Int64) {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.add(2) { $0.priority = 0 }
        bench.now = later
        bench.add(3) { $0.priority = 1 }
        #expect(bench.send(.removed(1)) == [.start(first)])
    }

    @Test func `changed conditions and priorities do not reset the waiting time`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.add(2) { $0.priority = 0 }
        bench.now = 900
        bench.add(3) { $0.priority = 1 }
        bench.set { $0.hasExternalPower = false }
        bench.set { $0.isConnected = false }
        bench.set { $0.isConnected = true }
        bench.send(.priorityChanged(2, 0.1))
        #expect(bench.send(.removed(1)) == [.start(2)])
    }

    @Test func `invalid priorities are harmless`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        for (id, priority) in [(2, .nan), (3, 2e9), (4, -.infinity)] as [(Int64, Float)] {
            bench.add(id) { $0.priority = priority }
        }
        #expect(bench.send(.removed(1)) == [.start(3)])
        #expect(bench.send(.removed(3)) == [.start(2)])
        #expect(bench.send(.removed(2)) == [.start(4)])
    }

    @Test func `a host has a limit, and so has each session at it`() {
        var bench = SchedulerBench(perHost: 3)
        let isLimited = { (item: inout Item) in item.hostLimit = 2 }
        #expect(bench.add(1, host: "a", isLimited) == [.start(1)])
        #expect(bench.add(2, host: "a", isLimited) == [.start(2)])
        #expect(bench.add(3, host: "a", isLimited) == [])
        #expect(bench.machine.waitReason(of: 3) == .host)
        #expect(bench.add(4, program: 2, host: "a", isLimited) == [.start(4)])
        #expect(bench.add(5, program: 2, host: "a", isLimited) == [])
        #expect(bench.add(6, host: "b", isLimited) == [.start(6)])
        #expect(bench.send(.removed(1)) == [.start(5)])
        #expect(bench.send(.removed(5)) == [.start(3)])
    }

    // MARK: Conditions

    @Test func `discretionary transfers get half of the places and those that no other can use`() {
        var bench = SchedulerBench(places: 4)
        let discretionary = { (item: inout Item) in item.isDiscretionary = true }
        for id in 1...3 { bench.add(Int64(id), discretionary) }
        #expect(bench.machine.waitReason(of: 3) == .turn)
        #expect(bench.add(4) == [.start(4)] && bench.add(5) == [.start(5)])
        #expect(bench.add(6) == [.stop(2, .yields)])
        #expect(bench.add(7) == [])
        #expect(bench.send(.stopped(2)) == [.start(6), .stop(1, .yields)])
        #expect(bench.send(.removed(7)) == [])
        #expect(bench.send(.stopped(1)) == [.start(1)])
    }

    @Test func `a discretionary transfer gives up its place at a host`() {
        var bench = SchedulerBench(perHost: 1)
        bench.add(1, host: "a") { $0.isDiscretionary = true }
        bench.add(2, host: "b") { $0.isDiscretionary = true }
        #expect(bench.add(3, program: 2, host: "a") == [.stop(1, .yields)])
        #expect(bench.send(.stopped(1)) == [.start(3)])
    }

    @Test func `outside the hours no transfer runs, and those that ran continue when they begin`() {
        var bench = SchedulerBench(places: 2)
        for id in 1...3 { bench.add(Int64(id)) { $0.isLocal = id == 2 } }
        #expect(bench.set { $0.isWithinHours = false } == [.stop(1, .conditions), .stop(2, .conditions)])
        #expect(bench.send(.stopped(1)) == [] && bench.add(4) == [])
        for id in [1, 3, 4] { #expect(bench.machine.waitReason(of: Int64(id)) == .hours) }
        // The second has not stopped yet and keeps its place.
        #expect(bench.set { $0.isWithinHours = true } == [.start(1)])
        #expect(bench.send(.stopped(2)) == [.start(2)])
    }

    @Test func `in slow mode no transfer is stopped for being slow`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.set { $0.isSlow = true }
        bench.add(2)
        #expect(bench.tick(at: 1_000) == [])
        bench.set { $0.isSlow = false }
        #expect(bench.tick(at: 1_061) == [.stop(1, .tooSlow)])
    }

    @Test(arguments: [true, false]) func `discretionary transfers stop when their conditions end`(isMetered: Bool) {
        var bench = SchedulerBench(places: 4)
        for id in 1...3 { bench.add(Int64(id)) { $0.isDiscretionary = id < 3 } }
        let stops: [Action] = [.stop(1, .conditions), .stop(2, .conditions)]
        #expect(bench.set { if isMetered { $0.isMetered = true } else { $0.hasExternalPower = false } } == stops)
        #expect(bench.send(.stopped(1)) == [])
        #expect(bench.machine.waitReason(of: 1) == .meteredOrBattery)
        #expect(bench.set { $0 = .init() } == [.start(1)])
        #expect(bench.send(.stopped(2)) == [.start(2)])
    }

    @Test func `without a network one transfer per line tries, and the others wait for a change`() {
        var bench = SchedulerBench(places: 3)
        bench.add(1)
        #expect(bench.set { $0.isConnected = false } == [])
        #expect(bench.add(2) { $0.host = "near" } == [.start(2)])
        #expect(bench.add(3) { $0.host = "far" } == [.start(3)])
        for id in 4...9 { #expect(bench.add(Int64(id)) { $0.host = "far" } == []) }
        #expect(bench.send(.lacksNetwork(3)) == [.stop(3, .network)])
        #expect(bench.send(.stopped(3)) == [])
        for id in 3...9 { #expect(bench.machine.waitReason(of: Int64(id)) == .network) }
        // Its host is this machine.
        #expect(bench.add(10) { $0.isLocal = true } == [.start(10)])
        #expect(bench.send(.removed(10)) == [])
        #expect(bench.send(.networkChanged) == [.start(3)])
        #expect(bench.send(.lacksNetwork(3)) == [.stop(3, .network)])
        #expect(bench.send(.stopped(3)) == [])
        #expect(bench.send(.networkChanged) == [.start(3)] && bench.send(.networkChanged) == [])
        #expect(bench.send(.lacksNetwork(3)) == [.stop(3, .network)])
        #expect(bench.set { $0.isConnected = true } == [])
        #expect(bench.send(.stopped(3)) == [.start(3)])
    }

    @Test func `a transfer without a route to its host gives up its place when the default route is lost`() {
        var bench = SchedulerBench()
        bench.add(1)
        bench.add(2)
        #expect(bench.send(.lacksNetwork(1)) == [] && bench.send(.lacksNetwork(2)) == [])
        // It has found a route.
        #expect(bench.send(.progressed(2, bytes: 7)) == [])
        #expect(bench.set { $0.isConnected = false } == [.stop(1, .network)])
        #expect(bench.send(.stopped(1)) == [] && bench.machine.waitReason(of: 1) == .network)
        #expect(bench.set { $0.isConnected = true } == [.start(1)])
    }

    @Test func `without disk space uploads begin and downloads do not`() {
        var bench = SchedulerBench()
        bench.set { $0.hasSpace = false }
        #expect(bench.add(1) == [] && bench.machine.waitReason(of: 1) == .space)
        #expect(bench.add(2) { $0.isUpload = true } == [.start(2)])
        #expect(bench.set { $0.hasSpace = true } == [.start(1)])
    }

    @Test func `a download that needs more space waits only for it, and its pause ends with that`() {
        var bench = SchedulerBench()
        bench.add(1)
        #expect(bench.fail(1, .noSpace) == [] && bench.wake.map { 1.9...2 ~= $0 } == true)
        #expect(bench.send(.lacksSpace(1)) == [] && bench.machine.waitReason(of: 1) == .space)
        #expect(bench.wake == SchedulerBench.deadline)
        #expect(bench.add(2) == [.start(2)])
        #expect(bench.send(.foundSpace(1, endsPause: true), at: 1) == [.start(1)])
    }

    @Test func `a pause is kept if space was never missing`() {
        var bench = SchedulerBench()
        bench.add(1)
        bench.fail(1, .noSpace)
        bench.send(.lacksSpace(1))
        #expect(bench.send(.foundSpace(1, endsPause: false), at: 1) == [] && bench.wake.map { 1.9...2 ~= $0 } == true)
        #expect(bench.tick(at: 2) == [.start(1)])
    }

    // MARK: Times

    @Test func `no transfer begins before its start time`() {
        var bench = SchedulerBench()
        #expect(bench.add(1) { $0.earliestBegin = 50 } == [] && bench.wake == 50)
        #expect(bench.machine.waitReason(of: 1) == .earliestBegin(50))
        #expect(bench.tick(at: 49) == [] && bench.wake == 50)
        #expect(bench.tick(at: 50) == [.start(1)] && bench.wake == SchedulerBench.deadline)
    }

    @Test func `the timer is set again after an early tick and after a change of the clock`() {
        var bench = SchedulerBench()
        bench.add(1) { $0.earliestBegin = 50 }
        #expect(bench.machine.handle(.tick, now: 10) == [.wake(at: 50)])
        #expect(bench.machine.handle(.clockMoved(by: 5), now: 15) == [.wake(at: 50)])
        #expect(bench.machine.handle(.held(1), now: 15) == [.wake(at: SchedulerBench.deadline + 5)])
        #expect(bench.machine.handle(.removed(1), now: 15) == [.wake(at: nil)])
        #expect(bench.machine.handle(.tick, now: 15) == [])
    }

    @Test(arguments: [(0, 2), (1, 4), (2, 8), (7, 256), (8, 512), (9, 900), (40, 900), (Int.max, 900)] as [(Int, Double)])
    func `pauses double up to a quarter of an hour`(attempts: Int, longest: Double) {
        for random in [0, UInt64.max, 1 << 63] {
            var bench = SchedulerBench()
            bench.add(1) { $0.attempts = attempts }
            let pause = longest * Double(random >> 11) / Double(1 << 53)
            let actions = bench.fail(1, random: random, at: 1000)
            #expect(actions == (random == 0 ? [.start(1)] : []))
            if random > 0 {
                #expect(bench.wake == 1000 + pause)
                #expect(bench.tick(at: 1000 + pause) == [.start(1)])
            }
        }
    }

    @Test func `progress resets the pauses`() {
        var bench = SchedulerBench()
        bench.add(1) { $0.attempts = 5 }
        bench.fail(1, progress: true, random: 1 << 63)
        #expect(bench.machine.waitReason(of: 1) == .retry(at: 1, attempts: 1))
        bench.tick(at: 1)
        bench.fail(1, random: 1 << 63)
        #expect(bench.machine.waitReason(of: 1) == .retry(at: 3, attempts: 2))
    }

    @Test(arguments: [(10.0, 10.0), (0.5, 1), (-5, 1), (1e9, 86_400), (.infinity, 86_400)] as [(Double, Double)])
    func `Retry-After sets the minimum pause`(asked: Double, pause: Double) {
        var bench = SchedulerBench()
        bench.add(1)
        bench.fail(1, after: asked, random: 1 << 63)
        #expect(bench.wake == pause)
    }

    @Test func `a stored pause is limited to the longest possible one`() {
        var bench = SchedulerBench()
        bench.add(1) { $0.notBefore = 1e12 }
        #expect(bench.wake == 86_400)
    }

    @Test func `transfers that failed for lack of a network begin soon after its return, at different times`() {
        var bench = SchedulerBench(places: 100, perHost: 100)
        for id in 1...40 { bench.add(Int64(id)) { $0.attempts = 8 } }
        for id in 1...30 { bench.fail(Int64(id), .network) }
        bench.fail(31, .server)
        bench.fail(32, .network, after: 300)
        bench.set { $0.isConnected = false }
        // The pauses of some are over by then.
        for id in 33...40 { bench.fail(Int64(id), .network, progress: true) }
        bench.now = 100
        #expect(bench.set(random: 4711) { $0.isConnected = true } == [])
        var begins: Set<Double> = []
        for id in Array(1...30) + Array(33...40) {
            guard case .retry(let at, _)? = bench.machine.waitReason(of: Int64(id)) else {
                Issue.record("\(id) is not waiting")
                continue
            }
            #expect(at > 100 && at <= 102)
            begins.insert(at)
        }
        #expect(begins.count == 38)
        #expect((begins.max() ?? 0) - (begins.min() ?? 0) > 1)
        #expect(bench.tick(at: 102).count == 38)
        #expect(bench.machine.waitReason(of: 32) == .retry(at: 300, attempts: 9))
        guard case .retry(let at, _)? = bench.machine.waitReason(of: 31) else {
            Issue.record("31 is not waiting")
            return
        }
        #expect(at > 500)
    }

    @Test func `a transfer without progress goes to the end of the line, and one with progress does not`() {
        for (progress, next) in [(true, Int64(1)), (false, 2)] {
            var bench = SchedulerBench(places: 1)
            bench.add(1)
            bench.fail(1, progress: progress, at: 1)
            bench.now = 1.5
            bench.add(9)
            bench.add(2)
            bench.tick(at: 10)
            #expect(bench.send(.removed(9)) == [.start(next)])
        }
    }

    @Test func `a transfer expires once`() {
        var bench = SchedulerBench(places: 1)
        for id in 1...3 { bench.add(Int64(id)) { $0.deadline = 10 } }
        bench.add(4) {
            $0.deadline = 5
            $0.isHeld = true
        }
        #expect(bench.wake == 5)
        #expect(bench.tick(at: 5) == [.expire(4)])
        #expect(bench.tick(at: 10) == [.expire(1), .expire(2), .expire(3)] && bench.wake == nil)
        #expect(bench.send(.released(4)) == [] && bench.send(.stopped(1)) == [] && bench.tick(at: 11) == [])
        #expect(bench.send(.clockMoved(by: -100), at: -90) == [] && bench.wake == nil)
        #expect(bench.add(5) { $0.deadline = -91 } == [.expire(5)])
    }

    @Test func `a change of the clock moves pauses and deadlines but not start times`() {
        var bench = SchedulerBench(places: 2)
        bench.add(1) { $0.deadline = 500 }
        bench.add(2) { $0.earliestBegin = 100 }
        bench.fail(1, after: 60, random: 0)
        #expect(bench.send(.clockMoved(by: 1000), at: 1000) == [.start(2)])
        #expect(bench.machine.waitReason(of: 1) == .retry(at: 1060, attempts: 1) && bench.wake == 1060)
        #expect(bench.tick(at: 1060) == [.start(1)] && bench.wake == 1500)
        #expect(bench.tick(at: 1500) == [.expire(1)])
    }

    @Test func `a transfer waits again if its start time is in the future after a change of the clock`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.now = 60
        bench.add(2) { $0.earliestBegin = 50 }
        bench.add(3)
        bench.send(.clockMoved(by: -30), at: 30)
        bench.add(4)
        #expect(bench.wake == 50)
        // The change does not alter the order either.
        #expect(bench.send(.removed(1)) == [.start(3)])
        #expect(bench.send(.removed(3), at: 49) == [.start(4)])
    }

    // MARK: Speed

    @Test func `the slowest transfer yields its place to a waiting one and goes to the end`() {
        var bench = SchedulerBench(places: 2)
        bench.add(1) { $0.priority = 1 }
        bench.add(2)
        bench.now = 500
        #expect(bench.wake == SchedulerBench.deadline)
        bench.add(3)
        bench.add(4) { $0.priority = 0 }
        // Both are slow; bytes moved before others waited do not count.
        #expect(bench.wake == 560)
        bench.send(.progressed(1, bytes: 5000), at: 510)
        bench.send(.progressed(2, bytes: 5999))
        #expect(bench.tick(at: 560) == [.stop(1, .tooSlow)])
        #expect(bench.wake == SchedulerBench.deadline)
        #expect(bench.send(.stopped(1), at: 561) == [.start(3), .stop(2, .tooSlow)])
        #expect(bench.send(.stopped(2)) == [.start(4)] && bench.wake == 563)
        #expect(bench.machine.waitReason(of: 1) == .retry(at: 563, attempts: 0))
        #expect(bench.tick(at: 563) == [])
        bench.add(5) { $0.priority = 0 }
        #expect(bench.send(.removed(3), at: 564) == [.start(1)])
    }

    @Test func `a transfer that is fast enough is not stopped`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.add(2)
        bench.send(.progressed(1, bytes: 6000), at: 20)
        #expect(bench.tick(at: 60) == [] && bench.wake == 120)
        // A restart resets the count, and enough was moved since.
        bench.send(.progressed(1, bytes: 0), at: 70)
        bench.send(.progressed(1, bytes: 6000), at: 80)
        #expect(bench.tick(at: 120) == [] && bench.wake == 180)
        bench.send(.progressed(1, bytes: 11_999), at: 130)
        #expect(bench.tick(at: 180) == [.stop(1, .tooSlow)])
    }

    @Test func `no transfer is stopped for one that cannot use the place`() {
        var bench = SchedulerBench(places: 2, perHost: 1)
        bench.add(1, host: "a")
        bench.add(2, host: "b")
        #expect(bench.wake == SchedulerBench.deadline)
        bench.add(3, host: "a")
        bench.add(4, host: "c") { $0.isDiscretionary = true }
        #expect(bench.wake == 60)
        #expect(bench.tick(at: 60) == [.stop(1, .tooSlow)])
        #expect(bench.send(.stopped(1)) == [.start(3)])
    }

    @Test func `the measurement ends with the last waiting transfer`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.add(2)
        bench.now = 30
        bench.send(.held(2))
        #expect(bench.wake == SchedulerBench.deadline)
        bench.send(.released(2), at: 59)
        #expect(bench.wake == 119)
        bench.send(.held(1))
        #expect(bench.wake == SchedulerBench.deadline)
    }

    // MARK: Stopping

    @Test func `a place is occupied until the stop is confirmed`() {
        for answer in [
            TransferScheduler.Event.stopped(1), .removed(1), .failed(1, .other, madeProgress: false, retryAfter: nil, random: 9),
        ] {
            var bench = SchedulerBench(places: 1)
            bench.add(1)
            bench.add(2)
            #expect(bench.send(.held(1)) == [.stop(1, .held)])
            #expect(bench.send(.held(1)) == [] && bench.tick(at: 1) == [])
            #expect(bench.send(answer) == [.start(2)])
            #expect(bench.machine.waitReason(of: 1) == (answer == .removed(1) ? nil : .held))
        }
    }

    @Test func `a transfer that is held while it stops for another reason stays held`() {
        var bench = SchedulerBench(places: 2)
        bench.add(1) { $0.isDiscretionary = true }
        bench.set { $0.isMetered = true }
        #expect(bench.send(.held(1)) == [])
        #expect(bench.set { $0.isMetered = false } == [] && bench.send(.stopped(1)) == [])
        #expect(bench.machine.waitReason(of: 1) == .held)
        #expect(bench.send(.released(1)) == [.start(1)])
    }

    @Test func `a transfer that is released while it stops begins again`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.send(.held(1))
        #expect(bench.send(.released(1)) == [])
        #expect(bench.send(.stopped(1)) == [.start(1)])
        bench.send(.held(1))
        bench.send(.released(1))
        #expect(bench.fail(1, random: 1 << 63) == [])
        #expect(bench.machine.waitReason(of: 1) == .retry(at: 1, attempts: 1))
    }

    @Test func `late events cause no actions`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        bench.add(2)
        bench.add(3) { $0.isHeld = true }
        bench.add(4) { $0.earliestBegin = 100 }
        for id in Int64(2)...5 {
            let failed = TransferScheduler.Event.failed(id, .network, madeProgress: false, retryAfter: 1, random: 1)
            for event in [.stopped(id), failed, .progressed(id, bytes: 7)] {
                #expect(bench.machine.handle(event, now: 0) == [], "\(event)")
            }
        }
        for event in [TransferScheduler.Event.removed(5), .held(5), .released(5), .released(2), .priorityChanged(5, 1), .held(3)]
        {
            #expect(bench.machine.handle(event, now: 0) == [], "\(event)")
        }
        #expect(bench.add(1) == [])
        #expect(bench.machine.waitReason(of: 2) == .turn && bench.machine.waitReason(of: 4) == .earliestBegin(100))
        #expect(bench.send(.removed(1)) == [.start(2)] && bench.send(.removed(2)) == [])
    }

    @Test func `a transfer that stops by itself gets another turn`() {
        var bench = SchedulerBench(places: 1)
        bench.add(1)
        #expect(bench.send(.stopped(1)) == [.start(1)])
    }

    // MARK: Many

    @Test func `thousands of transfers to hundreds of hosts all get their turn`() {
        var bench = SchedulerBench()
        var running: [Int64] = []
        for id in Int64(0)..<3000 {
            for case .start(let id) in bench.add(id, program: id % 7, host: "h\(id % 600)") { running.append(id) }
        }
        var index = 0
        while index < running.count {
            for case .start(let id) in bench.send(.removed(running[index])) { running.append(id) }
            index += 1
        }
        #expect(Set(running).count == 3000 && running.count == 3000 && bench.wake == nil)
    }
}
