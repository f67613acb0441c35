// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import SeededNumbers
import Testing

/// Rules that hold in every random history of events.
struct TransferHistoryTests {
    @Test(arguments: 0..<25) func `every rule holds in a random history`(seed: UInt64) {
        var history = TransferHistory(seed: seed)
        history.run(steps: 250)
        #expect(history.faults == [], "\(history.log.suffix(60).joined(separator: "\n"))")
        #expect(history.starts > 2)
    }

    @Test func `in weeks of bad networks every transfer ends or expires`() {
        var weeks = SimulatedWeeks(seed: 1)
        weeks.run()
        #expect(weeks.ended + weeks.expired == SimulatedWeeks.count)
        #expect(weeks.expired > 0 && weeks.ended > SimulatedWeeks.count / 2)
        // The timer fires only for a reason: the end of a pause, a start time, a deadline or a sample.
        #expect(weeks.wakeUps <= 2 * weeks.events)
        #expect(weeks.pointlessWakeUps == 0)
    }
}

/// Transfers of several programs on a portable machine, with a simulated clock.
private struct SimulatedWeeks {
    static let count = 2000
    private static let day = 86_400.0

    private enum Happening {
        case add(Int64)
        case answer(Int64, attempt: Int)
        case conditions
    }

    private(set) var ended = 0
    private(set) var expired = 0
    private(set) var events = 0
    private(set) var wakeUps = 0
    /// Wakeups after which the timer was set to a time in the past.
    private(set) var pointlessWakeUps = 0
    private var random: SeededNumbers
    private var scheduler = TransferScheduler()
    private var conditions = TransferScheduler.Conditions()
    private var agenda: [(at: Double, what: Happening)] = []
    private var attempts: [Int64: Int] = [:]
    private var stopping: Set<Int64> = []
    private var known: Set<Int64> = []
    private var now = 0.0
    private var wake: Double?

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    mutating func run() {
        for id in 1...Int64(Self.count) { plan(.add(id), at: Double(random.next(below: 10 * 86_400))) }
        for _ in 0..<60 { plan(.conditions, at: Double(random.next(below: 21 * 86_400))) }
        // The network changes often; at the end everything works.
        plan(.conditions, at: 22 * Self.day)
        agenda.sort { $0.at > $1.at }
        while true {
            let next = agenda.last?.at ?? .infinity
            if let wake, wake <= next {
                now = wake
                wakeUps += 1
                handle(.tick)
                if let wake = self.wake, wake <= now { pointlessWakeUps += 1 }
            } else if let (at, what) = agenda.popLast() {
                now = at
                happen(what)
            } else {
                return
            }
            if events > 200_000 { return }
        }
    }

    /// Adds an event to the agenda, which is sorted: the latest event is first, and the next one is last.
    private mutating func plan(_ what: Happening, at time: Double) {
        agenda.append((time, what))
        guard events > 0 else { return }
        var (low, high) = (0, agenda.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if agenda[middle].at > time { low = middle + 1 } else { high = middle }
        }
        agenda.insert(agenda.removeLast(), at: low)
    }

    private mutating func happen(_ what: Happening) {
        switch what {
        case .add(let id):
            var item = TransferScheduler.Item(
                id: id, program: id % 7, session: id % 14, host: "host\(id % 31)", priority: [0, 0.5, 1][random.next(below: 3)],
                deadline: now + 7 * Self.day)
            item.isDiscretionary = id % 5 == 0
            item.isUpload = id % 3 == 0
            if id % 11 == 0 { item.earliestBegin = now + Double(random.next(below: 86_400)) }
            known.insert(id)
            handle(.added(item))
        case .conditions:
            let isLast = now >= 22 * Self.day
            conditions.isConnected = isLast || random.next(below: 3) > 0
            conditions.isMetered = !isLast && random.next(below: 2) == 0
            conditions.hasExternalPower = isLast || random.next(below: 2) == 0
            conditions.isWithinHours = isLast || random.next(below: 6) > 0
            conditions.hasSpace = isLast || random.next(below: 6) > 0
            handle(.conditionsChanged(conditions, random: random.next()))
        case .answer(let id, let attempt):
            guard attempts[id] == attempt, known.contains(id) else { return }
            answer(id)
        }
    }

    private mutating func answer(_ id: Int64) {
        attempts[id, default: 0] += 1
        if stopping.remove(id) != nil { return handle(.stopped(id)) }
        let number = random.next()
        // One of the servers always fails.
        if !conditions.isConnected, random.next(below: 2) == 0 {
            handle(.failed(id, .network, madeProgress: random.next(below: 4) == 0, retryAfter: nil, random: number))
        } else if !conditions.isConnected {
            handle(.lacksNetwork(id))
        } else if id % 31 == 7 || random.next(below: 4) == 0 {
            let isBroken = id % 31 == 7
            let after = isBroken || random.next(below: 3) == 0 ? Double(random.next(below: isBroken ? 86_400 : 7200)) : nil
            handle(.failed(id, .server, madeProgress: false, retryAfter: after, random: number))
        } else {
            ended += 1
            known.remove(id)
            handle(.removed(id))
        }
    }

    private mutating func handle(_ event: TransferScheduler.Event) {
        if event != .tick { events += 1 }
        for action in scheduler.handle(event, now: now) {
            switch action {
            case .start(let id):
                attempts[id, default: 0] += 1
                // Some transfers do not end for an hour, unless they are stopped.
                let length = random.next(below: 12) == 0 ? 3600 : Double(random.next(below: 600)) + 1
                plan(.answer(id, attempt: attempts[id, default: 0]), at: now + length)
            case .stop(let id, _):
                stopping.insert(id)
                attempts[id, default: 0] += 1
                plan(.answer(id, attempt: attempts[id, default: 0]), at: now + 0.1)
            case .expire(let id):
                expired += 1
                known.remove(id)
                stopping.remove(id)
                gone.append(id)
            case .wake(let at): wake = at
            }
        }
        while let id = gone.popLast() { handle(.removed(id)) }
    }

    private var gone: [Int64] = []
}
