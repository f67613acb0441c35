// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

private let second: Int64 = 1_000_000_000

@Suite struct DeadlineMachineTests {
    @Test func `a load without progress expires after its idle timeout`() {
        var deadlines = DeadlineMachine()
        let (slot, actions) = deadlines.add(idleTimeout: 60 * second, deadline: nil, now: 0)
        #expect(actions == [.startTimer(at: 60 * second)])
        deadlines.progress(slot, now: 10 * second)
        #expect(deadlines.timerFired(now: 60 * second) == [.startTimer(at: 70 * second)])
        #expect(deadlines.timerFired(now: 70 * second) == [.expire(slot: slot, .idle)])
        #expect(deadlines.timerFired(now: 700 * second) == [])
        deadlines.remove(slot)
        #expect(deadlines.add(idleTimeout: nil, deadline: nil, now: 700 * second).slot == slot)
    }

    @Test func `progress does not extend the deadline`() {
        var deadlines = DeadlineMachine()
        let (slot, actions) = deadlines.add(idleTimeout: 60 * second, deadline: 5 * second, now: 0)
        #expect(actions == [.startTimer(at: 5 * second)])
        deadlines.progress(slot, now: 5 * second - 1)
        #expect(deadlines.timerFired(now: 5 * second) == [.expire(slot: slot, .resource)])
    }

    @Test func `the deadline applies after an idle timeout, too`() {
        var deadlines = DeadlineMachine()
        let (slot, _) = deadlines.add(idleTimeout: second, deadline: 5 * second, now: 0)
        #expect(deadlines.timerFired(now: second) == [.expire(slot: slot, .idle), .startTimer(at: 5 * second)])
        #expect(deadlines.timerFired(now: 5 * second) == [.expire(slot: slot, .resource)])
        #expect(deadlines.timerFired(now: 50 * second) == [])
    }

    @Test func `loads that are due together expire in batches, each once`() {
        var deadlines = DeadlineMachine()
        let count = 3 * DeadlineMachine.batchSize / 2
        for _ in 0..<count { _ = deadlines.add(idleTimeout: second, deadline: nil, now: 0) }
        let first = deadlines.timerFired(now: second)
        #expect(first.last == .startTimer(at: second + DeadlineMachine.pause))
        #expect(first.count == DeadlineMachine.batchSize + 1)
        let rest = deadlines.timerFired(now: second + DeadlineMachine.pause)
        #expect(Set(first.dropLast() + rest) == Set((0..<count).map { .expire(slot: $0, .idle) }))
        #expect(rest.count == count - DeadlineMachine.batchSize)
        #expect(deadlines.timerFired(now: 2 * second) == [])
    }

    @Test func `with more loads, the interval between checks grows`() {
        var deadlines = DeadlineMachine()
        for _ in 0..<10_000 { _ = deadlines.add(idleTimeout: 60 * second, deadline: nil, now: 0) }
        let actions = deadlines.add(idleTimeout: 1, deadline: nil, now: 0).actions
        #expect(actions == [.startTimer(at: 11_001_000)])
    }

    @Test func `the timer only moves to an earlier instant`() {
        var deadlines = DeadlineMachine()
        #expect(deadlines.add(idleTimeout: 60 * second, deadline: nil, now: 0).actions == [.startTimer(at: 60 * second)])
        #expect(deadlines.add(idleTimeout: 60 * second, deadline: nil, now: 1).actions == [])
        #expect(deadlines.add(idleTimeout: second, deadline: nil, now: 2).actions == [.startTimer(at: second + 2)])
        #expect(deadlines.timerFired(now: second + 2) == [.expire(slot: 2, .idle), .startTimer(at: 60 * second)])
        #expect(deadlines.timerFired(now: 60 * second) == [.expire(slot: 0, .idle), .startTimer(at: 60 * second + 1_003_000)])
    }

    @Test(arguments: [0, -1, 0.000_000_5] as [Double])
    func `no timer is set less than a millisecond ahead`(timeout: Double) {
        var deadlines = DeadlineMachine()
        let added = deadlines.add(idleTimeout: Int64(timeout * 1e9), deadline: nil, now: 5)
        #expect(added.actions == [.startTimer(at: 1_001_005)])
        #expect(deadlines.timerFired(now: 1_001_005) == [.expire(slot: added.slot, .idle)])
    }

    @Test func `endless timeouts need no timer and do not overflow`() {
        var deadlines = DeadlineMachine()
        #expect(deadlines.add(idleTimeout: .max, deadline: nil, now: second).actions == [])
        #expect(deadlines.add(idleTimeout: nil, deadline: .max, now: .max).actions == [])
        #expect(deadlines.timerFired(now: 2 * second) == [])
    }

    @Test func `slots are reused, and removing a slot twice is harmless`() {
        var deadlines = DeadlineMachine()
        let first = deadlines.add(idleTimeout: second, deadline: nil, now: 0).slot
        deadlines.remove(first)
        deadlines.remove(first)
        #expect(deadlines.timerFired(now: second) == [])
        #expect(deadlines.add(idleTimeout: second, deadline: nil, now: second).slot == first)
        #expect(deadlines.add(idleTimeout: second, deadline: nil, now: second).slot != first)
    }

    /// With events in any order, a load expires when it is due, for the correct reason, and once.
    @Test func `in every history, loads expire when they are due, and only then`() {
        for seed in 0..<2_000 as Range<UInt64> {
            var history = DeadlineHistory(seed: seed)
            for _ in 0..<80 where history.faults.isEmpty { history.step() }
            if !history.faults.isEmpty {
                Issue.record("seed \(seed): \(history.faults)\n\(history.log.joined(separator: "\n"))")
                return
            }
        }
    }
}

private struct DeadlineHistory {
    private struct Load {
        var slot: Int
        var idleTimeout: Int64
        var lastProgress: Int64
        var deadline: Int64

        var idleDue: Int64 { lastProgress + idleTimeout }
        var due: Int64 { min(idleDue, deadline) }
    }

    var faults: [String] = []
    var log: [String] = []
    private var random: SeededNumbers
    private var machine = DeadlineMachine()
    private var loads: [Int: Load] = [:]
    private var loadCount = 0
    private var timerAt: Int64?
    private var now: Int64 = 0

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    mutating func step() {
        now += Int64.random(in: 0...second / 2, using: &random)
        if let timerAt, timerAt <= now {
            now = timerAt
            self.timerAt = nil
            perform(machine.timerFired(now: now))
        }
        let late = loads.values.contains { $0.due + 2_000_000 <= now }
        if late { faults.append("a load is overdue at \(now)") }
        let load = loads.keys.sorted().randomElement(using: &random)
        switch (Int.random(in: 0..<4, using: &random), load) {
        case (0, _): add()
        case (1, let load?), (2, let load?):
            machine.progress(loads[load]?.slot ?? 0, now: now)
            loads[load]?.lastProgress = now
        case (3, let load?):
            machine.remove(loads[load]?.slot ?? 0)
            loads[load] = nil
        default: add()
        }
    }

    private mutating func add() {
        let idleTimeout = Int64.random(in: 0...3 * second, using: &random)
        let deadline = now + Int64.random(in: 0...10 * second, using: &random)
        let added = machine.add(idleTimeout: idleTimeout, deadline: deadline, now: now)
        if loads.values.contains(where: { $0.slot == added.slot }) { faults.append("a slot was given twice") }
        loads[loadCount] = Load(slot: added.slot, idleTimeout: idleTimeout, lastProgress: now, deadline: deadline)
        loadCount += 1
        perform(added.actions)
    }

    private mutating func perform(_ actions: [DeadlineMachine.Action]) {
        log.append("\(now): \(actions)")
        for action in actions {
            switch action {
            case .startTimer(let instant):
                if instant < now + 1_000_000 { faults.append("too soon") }
                timerAt = instant
            case .expire(let slot, let expiry):
                guard let number = loads.first(where: { $0.value.slot == slot })?.key,
                    let load = loads.removeValue(forKey: number)
                else {
                    faults.append("expired twice or after removal")
                    continue
                }
                if load.due > now { faults.append("expired too early") }
                if expiry != (load.deadline <= load.idleDue ? .resource : .idle) { faults.append("expired for the wrong reason") }
                machine.remove(load.slot)
            }
        }
    }
}
