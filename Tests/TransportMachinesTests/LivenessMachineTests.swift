// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

private let second: Int64 = 1_000_000_000

@Suite struct LivenessMachineTests {
    @Test func `over datagrams a silent server is noticed within three seconds of a request`() {
        var liveness = LivenessMachine(now: 0, patience: .datagrams)
        let start = second + 1
        #expect(liveness.handle(.requestBegan, now: start) == [.ask(1), .startTimer(1, after: second * 3 / 4)])
        #expect(
            liveness.handle(.timerFired(1), now: start + second) == [.bar(true), .doubt, .startTimer(1, after: second * 7 / 4)])
        #expect(liveness.handle(.timerFired(1), now: start + 3 * second) == [.giveUp])
    }

    @Test func `a server that acknowledges nothing is asked, even if it was heard a moment before`() {
        var liveness = LivenessMachine(now: 0, patience: .datagrams)
        #expect(liveness.handle(.requestBegan, now: 1).isEmpty)
        #expect(liveness.handle(.isUnanswered, now: second / 5).isEmpty)
        #expect(liveness.handle(.isUnanswered, now: second / 2) == [.ask(1), .startTimer(1, after: second * 3 / 4)])
        #expect(liveness.handle(.isUnanswered, now: second).isEmpty)
    }

    @Test func `a message that the server receives nothing is doubted, and refuted by any datagram`() {
        var liveness = LivenessMachine(now: 0, patience: .datagrams)
        #expect(liveness.handle(.wasRefused, now: 5) == [.bar(true), .ask(1), .startTimer(1, after: second * 3 / 4)])
        #expect(liveness.handle(.wasRefused, now: 6).isEmpty)
        #expect(liveness.read(now: 7) == [.stopTimer, .bar(false)])
    }

    private typealias Action = LivenessMachine.Action

    private enum Input {
        case event(LivenessMachine.Event)
        case read
        case sent
    }

    private static let asks: [Action] = [.ask(1), .startTimer(1, after: second)]
    private static let rest = Action.startTimer(1, after: 4 * second)

    /// Events with their time in seconds, and the expected actions; the connection began at 100 s.
    private static let rows: [(name: String, history: [(at: Int64, Input, [Action])])] = [
        ("a request after a short silence sends no ping", [(110, .event(.requestBegan), [])]),
        (
            "a request after a long silence sends a ping, and later ones do not",
            [
                (111, .event(.requestBegan), asks), (111, .event(.requestBegan), []), (112, .read, [.stopTimer]),
                (112, .read, []),
                (123, .event(.requestBegan), [.ask(2), .startTimer(2, after: second)]),
            ]
        ),
        (
            "a connection without a response is doubted, and then closed",
            [
                (111, .event(.requestBegan), asks), (112, .event(.timerFired(1)), [.bar(true), .doubt, rest]),
                (116, .event(.timerFired(1)), [.giveUp]), (117, .event(.timerFired(1)), []),
            ]
        ),
        (
            "a response after the doubt lets requests begin again",
            [
                (111, .event(.requestBegan), asks), (112, .event(.timerFired(1)), [.bar(true), .doubt, rest]),
                (113, .read, [.stopTimer, .bar(false)]), (116, .event(.timerFired(1)), []),
            ]
        ),
        (
            "an unanswered ping behind content raises no doubt, and is repeated",
            [
                (111, .event(.requestBegan), asks), (112, .sent, []), (112, .event(.timerFired(1)), [rest]),
                (116, .event(.timerFired(1)), [.ask(2), .startTimer(2, after: second)]),
                (117, .event(.timerFired(1)), []),
                (117, .event(.timerFired(2)), [.bar(true), .doubt, .startTimer(2, after: 4 * second)]),
            ]
        ),
        (
            "content sent after the doubt delays the end, and requests wait",
            [
                (111, .event(.requestBegan), asks), (112, .event(.timerFired(1)), [.bar(true), .doubt, rest]), (113, .sent, []),
                (116, .event(.timerFired(1)), [.ask(2), .startTimer(2, after: second)]), (117, .read, [.stopTimer, .bar(false)]),
            ]
        ),
        (
            "a timed-out request without any byte read bars the connection at once",
            [
                (101, .read, []), (105, .event(.requestTimedOut(began: 101 * second)), [.bar(true)] + asks),
                (105, .event(.requestTimedOut(began: 102 * second)), []), (106, .event(.timerFired(1)), [.doubt, rest]),
            ]
        ),
        (
            "a timed-out request has no effect while others receive responses",
            [
                (102, .read, []), (105, .event(.requestTimedOut(began: 101 * second)), []),
            ]
        ),
        (
            "a closed connection stops its timer, and late events have no effect",
            [
                (111, .event(.requestBegan), asks), (112, .event(.ended), [.stopTimer]), (112, .event(.timerFired(1)), []),
                (113, .event(.ended), []),
            ]
        ),
    ]

    @Test(arguments: rows.indices) func `a silent connection is pinged, doubted and closed`(index: Int) {
        let (name, history) = Self.rows[index]
        var liveness = LivenessMachine(now: 100 * second)
        for (at, input, actions) in history {
            var found: [Action] = []
            switch input {
            case .event(let event): found = liveness.handle(event, now: at * second)
            case .read: found = liveness.read(now: at * second)
            case .sent: liveness.sentContent(now: at * second)
            }
            #expect(found == actions, "\(name): \(input) at \(at)")
        }
    }

    @Test func `the round trip is measured once by SETTINGS, and estimated before`() {
        var liveness = LivenessMachine(now: second)
        #expect(liveness.roundTrip(handshake: 7) == 7)
        _ = liveness.read(now: second + 20)
        #expect(liveness.roundTrip(handshake: 7) == 20)
        liveness.settingsWereAcknowledged(now: second + 30)
        liveness.settingsWereAcknowledged(now: second + 90)
        _ = liveness.read(now: 5 * second)
        #expect(liveness.roundTrip(handshake: second) == 30)
        #expect(liveness.lastRead == 5 * second)
    }

    /// With any events, at most one timer runs at a time, and a barred connection is released by a received byte, or closed.
    @Test(arguments: 0..<200 as Range<UInt64>) func `one ping is outstanding at a time`(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        var liveness = LivenessMachine(now: 0)
        var (now, isBarred, isOver): (Int64, Bool, Bool) = (0, false, false)
        var timer: (number: UInt64, at: Int64)?
        var questions: Set<UInt64> = []
        for _ in 0..<100 where !isOver {
            now += Int64(numbers.next(below: 6)) * second / 2
            var actions: [Action] = []
            var isTimers = false
            switch numbers.next(below: 6) {
            case 0: actions = liveness.handle(.requestBegan, now: now)
            case 1: actions = liveness.handle(.requestTimedOut(began: now - 3 * second), now: now)
            case 2: liveness.sentContent(now: now)
            case 3: actions = liveness.read(now: now)
            default:
                guard let due = timer, due.at <= now else { continue }
                (timer, isTimers) = (nil, true)
                actions = liveness.handle(.timerFired(due.number), now: now)
            }
            for action in actions {
                switch action {
                case .ask(let number):
                    let isNew = questions.insert(number).inserted
                    #expect(isNew && timer == nil)
                case .startTimer(let number, let delay):
                    #expect(timer == nil && questions.contains(number))
                    timer = (number, now + delay)
                case .stopTimer:
                    #expect(timer != nil)
                    timer = nil
                case .bar(let bars):
                    #expect(bars != isBarred)
                    isBarred = bars
                case .doubt: #expect(isBarred)
                case .giveUp: isOver = true
                }
            }
            #expect(isTimers || !isOver)
            #expect(liveness.isBarred == isBarred)
            #expect(!isBarred || timer != nil || isOver)
        }
    }
}
