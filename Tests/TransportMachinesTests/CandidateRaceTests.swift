// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

@Suite struct CandidateRaceTests {
    private typealias Event = CandidateRace.Event
    private typealias Action = CandidateRace.Action

    @Test(
        arguments: [
            ("the only candidate wins", 1, [.started, .connected(0)], [[.start(0)], [.win(0)]]),
            ("the only candidate fails", 1, [.started, .failed(0)], [[.start(0)], [.lose]]),
            ("a dial without candidates", 0, [.started], [[.lose]]),
            (
                "the first is quick enough: the second never starts", 2, [.started, .connected(0), .timer],
                [[.start(0), .startTimer], [.drop(1), .stopTimer, .win(0)], []]
            ),
            (
                "the first is silent: the second starts and wins", 2, [.started, .timer, .connected(1), .connected(0)],
                [[.start(0), .startTimer], [.start(1)], [.drop(0), .win(1)], []]
            ),
            (
                "the first fails: the second starts at once", 2, [.started, .failed(0), .timer, .connected(1)],
                [[.start(0), .startTimer], [.start(1), .stopTimer], [], [.win(1)]]
            ),
            (
                "the second fails, then the first", 2, [.started, .timer, .failed(1), .failed(0)],
                [[.start(0), .startTimer], [.start(1)], [], [.lose]]
            ),
            (
                "three candidates start one after the other", 3, [.started, .timer, .failed(0), .connected(1)],
                [[.start(0), .startTimer], [.start(1), .startTimer], [.start(2), .stopTimer], [.drop(2), .win(1)]]
            ),
            (
                "the first knows late where to connect to: the head start counts from then", 2,
                [.started, .began(0), .timer, .began(0), .connected(1)],
                [[.start(0), .startTimer], [.startTimer], [.start(1)], [], [.drop(0), .win(1)]]
            ),
            (
                "the first reaches the server: the second does not start while the app decides", 2,
                [.started, .reached(0), .timer, .connected(0)],
                [[.start(0), .startTimer], [.stopTimer], [], [.drop(1), .win(0)]]
            ),
            (
                "the first reaches the server and refuses it: the second starts", 2,
                [.started, .reached(0), .failed(0), .connected(1)],
                [[.start(0), .startTimer], [.stopTimer], [.start(1)], [.win(1)]]
            ),
            (
                "one of two that run refuses the server while the other decides", 3,
                [.started, .timer, .reached(1), .failed(0), .failed(1), .connected(2)],
                [[.start(0), .startTimer], [.start(1), .startTimer], [.stopTimer], [], [.start(2)], [.win(2)]]
            ),
            (
                "the dial is cancelled", 2, [.started, .cancelled, .connected(0), .timer],
                [[.start(0), .startTimer], [.drop(0), .drop(1), .stopTimer], [], []]
            ),
            ("the dial is cancelled before its start", 1, [.cancelled, .started], [[.drop(0)], []]),
            (
                "strangers are ignored", 1, [.started, .started, .failed(3), .connected(1), .timer],
                [[.start(0)], [], [], [], []]
            ),
        ] as [(String, Int, [CandidateRace.Event], [[CandidateRace.Action]])])
    func `candidates race in order, each with a head start`(
        sentence: String, count: Int, events: [CandidateRace.Event], actions: [[CandidateRace.Action]]
    ) {
        var race = CandidateRace(count: count)
        #expect(events.map { race.handle($0) } == actions, "\(sentence)")
        #expect(CandidateRace.headStart == 200_000_000)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `in every history, all candidates but the winner have failed or are dropped`(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let count = Int.random(in: 1...4, using: &numbers)
        var race = CandidateRace(count: count)
        var open = Set(0..<count)
        var started: Set<Int> = []
        var ends: [Action] = []
        var runsTimer = false
        func perform(_ event: Event) {
            for action in race.handle(event) {
                switch action {
                case .start(let candidate): #expect(open.contains(candidate) && started.insert(candidate).inserted)
                case .drop(let candidate): #expect(open.remove(candidate) != nil)
                case .startTimer: runsTimer = true
                case .stopTimer: runsTimer = false
                case .win, .lose: ends.append(action)
                }
            }
        }
        perform(.started)
        for _ in 0..<20 where ends.isEmpty {
            let candidate = Int.random(in: 0..<count, using: &numbers)
            switch Int.random(in: 0..<4, using: &numbers) {
            case 0 where started.contains(candidate) && open.contains(candidate): perform(.connected(candidate))
            case 1 where started.contains(candidate):
                if open.remove(candidate) != nil { perform(.failed(candidate)) }
            case 2 where runsTimer:
                runsTimer = false
                perform(.timer)
            default: break
            }
        }
        if ends.isEmpty { perform(.cancelled) }
        #expect(ends.count <= 1 && !runsTimer)
        if case .win(let winner)? = ends.first { #expect(open == [winner]) } else { #expect(open.isEmpty) }
        #expect(race.handle(.started).isEmpty && race.handle(.timer).isEmpty)
    }
}
