// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

private typealias Race = AddressRace<String>

@Suite struct AddressRaceTests {
    @Test func `address families alternate, IPv6 first, every 250 ms`() {
        var race = Race()
        #expect(race.handle(.started) == [.resolve(.v6), .resolve(.v4)])
        #expect(race.handle(.resolved(.v6, ["a", "b"])) == [.connect(0, "a"), .startTimer(.attemptDelay)])
        #expect(race.handle(.resolved(.v4, ["1", "2"])) == [])
        #expect(race.handle(.timer(.attemptDelay)) == [.connect(1, "1"), .startTimer(.attemptDelay)])
        #expect(race.handle(.timer(.attemptDelay)) == [.connect(2, "b"), .startTimer(.attemptDelay)])
        #expect(race.handle(.timer(.attemptDelay)) == [.connect(3, "2")])
        #expect(race.handle(.attemptSucceeded(1)) == [.abandon(0), .abandon(2), .abandon(3), .win(1)])
        #expect(Race.Timer.attemptDelay.nanoseconds == 250_000_000)
        #expect(Race.Timer.resolutionDelay.nanoseconds == 50_000_000)
    }

    @Test func `IPv4 addresses wait only for the resolution delay`() {
        var race = Race()
        _ = race.handle(.started)
        #expect(race.handle(.resolved(.v4, ["1"])) == [.startTimer(.resolutionDelay)])
        #expect(race.handle(.timer(.resolutionDelay)) == [.connect(0, "1"), .startTimer(.attemptDelay)])
        #expect(race.handle(.resolved(.v6, ["a"])) == [])
        #expect(race.handle(.attemptFailed(0)) == [.connect(1, "a"), .stopTimer(.attemptDelay)])
        #expect(race.handle(.attemptSucceeded(1)) == [.win(1)])
    }

    @Test func `IPv6 addresses that arrive within the resolution delay are tried first`() {
        var race = Race()
        _ = race.handle(.started)
        _ = race.handle(.resolved(.v4, ["1"]))
        #expect(
            race.handle(.resolved(.v6, ["a"]))
                == [.stopTimer(.resolutionDelay), .connect(0, "a"), .startTimer(.attemptDelay)]
        )
    }

    @Test func `the race does not wait for a family without addresses`() {
        var race = Race()
        _ = race.handle(.started)
        #expect(race.handle(.resolved(.v6, [])) == [])
        #expect(race.handle(.resolved(.v4, ["1"])) == [.connect(0, "1")])
        #expect(race.handle(.attemptFailed(0)) == [.lose])
    }

    @Test func `addresses that arrive after all others have failed are tried at once`() {
        var race = Race()
        _ = race.handle(.started)
        _ = race.handle(.resolved(.v6, ["a"]))
        #expect(race.handle(.attemptFailed(0)) == [])
        #expect(race.handle(.timer(.attemptDelay)) == [])
        #expect(race.handle(.resolved(.v4, ["1"])) == [.connect(1, "1")])
    }

    @Test func `a race without addresses is lost`() {
        var race = Race()
        _ = race.handle(.started)
        #expect(race.handle(.resolved(.v4, [])) == [])
        #expect(race.handle(.resolved(.v6, [])) == [.lose])
    }

    @Test func `a cancelled race stops everything and reports nothing`() {
        var race = Race()
        _ = race.handle(.started)
        _ = race.handle(.resolved(.v6, ["a", "b"]))
        #expect(race.handle(.cancelled) == [.abandon(0), .stopTimer(.attemptDelay)])
        #expect(race.handle(.resolved(.v4, ["1"])) == [])
        #expect(race.handle(.attemptSucceeded(0)) == [])
        #expect(race.handle(.cancelled) == [])
        var lingering = Race()
        _ = lingering.handle(.started)
        _ = lingering.handle(.resolved(.v4, ["1"]))
        #expect(lingering.handle(.cancelled) == [.stopTimer(.resolutionDelay)])
    }

    @Test func `unexpected events are ignored`() {
        var race = Race()
        #expect(race.handle(.resolved(.v4, ["1"])) == [])
        _ = race.handle(.started)
        #expect(race.handle(.started) == [])
        #expect(race.handle(.timer(.attemptDelay)) == [])
        _ = race.handle(.resolved(.v6, ["a"]))
        #expect(race.handle(.resolved(.v6, ["b"])) == [])
        #expect(race.handle(.attemptFailed(7)) == [])
        #expect(race.handle(.attemptSucceeded(7)) == [])
    }

    /// With events in any order, a race that gets all its results ends exactly once.
    @Test func `every history ends once and leaks no socket`() {
        for seed in 0..<2_000 as Range<UInt64> {
            var history = RaceHistory(seed: seed)
            history.run()
            if !history.faults.isEmpty {
                Issue.record("seed \(seed): \(history.faults)\n\(history.log)")
                return
            }
        }
    }
}

private struct RaceHistory {
    var faults: [String] = []
    var log: String { entries.map { "\($0.0) -> \($0.1)" }.joined(separator: "\n") }
    private var entries: [(Race.Event, [Race.Action])] = []
    private var random: SeededNumbers
    private var race = Race()
    private var lookups: [Race.Family] = []
    private var sockets: [Int] = []
    private var timers: [Race.Timer] = []
    private var tried: [String] = []
    private var known: [String] = []
    private var outcomes = 0
    private var winner: Int?

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    mutating func run() {
        let isCancelled = Int.random(in: 0..<4, using: &random) == 0
        send(.started)
        for _ in 0..<200 where outcomes == 0 && faults.isEmpty {
            if isCancelled, Int.random(in: 0..<6, using: &random) == 0 {
                outcomes += 1
                send(.cancelled)
                break
            }
            step()
        }
        if outcomes != 1 { faults.append("\(outcomes) outcomes") }
        if !sockets.isEmpty { faults.append("sockets leaked: \(sockets)") }
        if !timers.isEmpty { faults.append("timers still run: \(timers)") }
        let late: [Race.Event] = [
            .timer(.attemptDelay), .timer(.resolutionDelay), .attemptFailed(0), .resolved(.v4, ["x"]), .cancelled,
        ]
        for event in late where !race.handle(event).isEmpty { faults.append("\(event) caused actions after the end") }
    }

    private mutating func step() {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            guard let family = lookups.randomElement(using: &random) else { return }
            lookups.removeAll { $0 == family }
            let addresses = (0..<Int.random(in: 0..<4, using: &random)).map { "\(family)-\($0)" }
            known += addresses
            send(.resolved(family, addresses))
        case 1:
            guard let timer = timers.randomElement(using: &random) else { return }
            timers.removeAll { $0 == timer }
            send(.timer(timer))
        default:
            guard let attempt = sockets.randomElement(using: &random) else { return }
            if Int.random(in: 0..<4, using: &random) == 0 { return send(.attemptSucceeded(attempt)) }
            sockets.removeAll { $0 == attempt }
            send(.attemptFailed(attempt))
        }
    }

    private mutating func send(_ event: Race.Event) {
        let actions = race.handle(event)
        entries.append((event, actions))
        for action in actions {
            switch action {
            case .resolve(let family): lookups.append(family)
            case .connect(let attempt, let address):
                if tried.contains(address) || !known.contains(address) { faults.append("\(address) tried out of turn") }
                tried.append(address)
                sockets.append(attempt)
            case .abandon(let attempt):
                if !sockets.contains(attempt) { faults.append("abandoned an attempt that is not running") }
                sockets.removeAll { $0 == attempt }
            case .startTimer(let timer):
                timers.removeAll { $0 == timer }
                timers.append(timer)
            case .stopTimer(let timer):
                if !timers.contains(timer) { faults.append("stopped a timer that is not running") }
                timers.removeAll { $0 == timer }
            case .win(let attempt):
                outcomes += 1
                sockets.removeAll { $0 == attempt }
                if case .attemptSucceeded(attempt) = event {} else { faults.append("the wrong attempt won") }
            case .lose:
                outcomes += 1
                if tried.count != known.count || !lookups.isEmpty { faults.append("gave up too early") }
            }
        }
        if outcomes == 0, sockets.isEmpty, lookups.isEmpty, timers.isEmpty { faults.append("stuck") }
    }
}
