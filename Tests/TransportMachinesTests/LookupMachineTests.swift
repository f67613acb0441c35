// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

private let second: Int64 = 1_000_000_000

@Suite struct LookupMachineTests {
    private typealias Machine = LookupMachine<String>
    private let name = Machine.Question("www.example.com", .v4)

    private func machine(threads: Int = 4, line: Int = 100, memory: Int = 8) -> Machine {
        Machine(threadCount: threads, waitingLimit: line, memoryLimit: memory)
    }

    @Test func `one lookup serves all callers of a name`() {
        var machine = machine()
        #expect(machine.handle(.wanted(name, by: 1, of: 1), now: 0) == [.lookUp(name)])
        #expect(machine.handle(.wanted(name, by: 2, of: 1), now: 0) == [])
        #expect(machine.handle(.wanted(name, by: 3, of: 2), now: 0) == [])
        #expect(machine.handle(.answered(name, "here", timeToLive: 0), now: 1) == [.answer([1, 2, 3], "here")])
        #expect(machine.handle(.wanted(name, by: 4, of: 1), now: 1) == [.lookUp(name)])
    }

    @Test func `address families are looked up separately`() {
        var machine = machine()
        let other = Machine.Question("www.example.com", .v6)
        #expect(machine.handle(.wanted(name, by: 1, of: 1), now: 0) == [.lookUp(name)])
        #expect(machine.handle(.wanted(other, by: 2, of: 2), now: 0) == [.lookUp(other)])
    }

    @Test func `the services of each port are looked up separately`() {
        var machine = machine()
        for (caller, port) in [443, 8_443].enumerated() {
            let question = Machine.Question("www.example.com", .services(port: port))
            #expect(machine.handle(.wanted(question, by: caller, of: caller), now: 0) == [.lookUp(question)])
        }
    }

    @Test func `a result is cached for its time to live`() {
        var machine = machine()
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        _ = machine.handle(.answered(name, "here", timeToLive: 5 * second), now: second)
        #expect(machine.handle(.wanted(name, by: 2, of: 2), now: 6 * second - 1) == [.answer([2], "here")])
        #expect(machine.knownAnswer(to: name, now: 6 * second - 1) == "here")
        #expect(machine.knownAnswer(to: name, now: 6 * second) == nil)
        #expect(machine.knownAnswer(to: Machine.Question("www.example.com", .v6), now: second) == nil)
        #expect(machine.handle(.wanted(name, by: 3, of: 2), now: 6 * second) == [.lookUp(name)])
    }

    @Test func `after a flush, a cached result is looked up again`() {
        var machine = machine()
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        _ = machine.handle(.answered(name, "here", timeToLive: 5 * second), now: 0)
        #expect(machine.handle(.forgotten, now: 0) == [])
        #expect(machine.handle(.wanted(name, by: 2, of: 1), now: 0) == [.lookUp(name)])
    }

    @Test func `the result of a lookup that began before a flush is not cached`() {
        var machine = machine()
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        _ = machine.handle(.forgotten, now: 0)
        #expect(machine.handle(.answered(name, "here", timeToLive: 5 * second), now: 0) == [.answer([1], "here")])
        #expect(machine.handle(.wanted(name, by: 2, of: 1), now: 0) == [.lookUp(name)])
    }

    @Test func `the oldest result is evicted from a full cache`() {
        var machine = machine(memory: 2)
        for index in 0..<3 {
            let question = Machine.Question("n\(index)", .v4)
            _ = machine.handle(.wanted(question, by: index, of: 1), now: Int64(index))
            _ = machine.handle(.answered(question, "\(index)", timeToLive: second), now: Int64(index))
        }
        #expect(machine.handle(.wanted(.init("n1", .v4), by: 11, of: 1), now: 3) == [.answer([11], "1")])
        #expect(machine.handle(.wanted(.init("n2", .v4), by: 12, of: 1), now: 3) == [.answer([12], "2")])
        #expect(machine.handle(.wanted(.init("n0", .v4), by: 10, of: 1), now: 3) == [.lookUp(.init("n0", .v4))])
    }

    @Test func `a lookup without callers is not started`() {
        var machine = machine(threads: 1)
        let other = Machine.Question("other", .v4)
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        #expect(machine.handle(.wanted(other, by: 2, of: 1), now: 0) == [.waits(2), .startTimer(after: second)])
        #expect(machine.handle(.left(2), now: 0) == [])
        #expect(machine.handle(.answered(name, "here", timeToLive: 0), now: 1) == [.answer([1], "here")])
        #expect(machine.handle(.timer, now: second) == [])
        // For a later caller, the lookup is started.
        #expect(machine.handle(.wanted(other, by: 3, of: 1), now: 1) == [.lookUp(other)])
    }

    @Test func `a lookup whose callers left continues and is cached`() {
        var machine = machine()
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        #expect(machine.handle(.left(1), now: 0) == [])
        #expect(machine.handle(.answered(name, "here", timeToLive: second), now: 1) == [])
        #expect(machine.handle(.wanted(name, by: 2, of: 1), now: 1) == [.answer([2], "here")])
    }

    private func begun(_ actions: [Machine.Action]) -> Int { actions.count { if case .lookUp = $0 { true } else { false } } }

    @Test func `a resolvable name does not wait for all unresolvable names of its session`() {
        var machine = machine(threads: 64, line: 10_000)
        var running: [Machine.Question] = []
        func perform(_ actions: [Machine.Action]) {
            for case .lookUp(let question) in actions { running.append(question) }
        }
        for caller in 0..<500 {
            perform(machine.handle(.wanted(.init("www.dead\(caller).example.org", .v4), by: caller, of: 1), now: 0))
        }
        for caller in 500..<1_000 { perform(machine.handle(.wanted(.init("www.dead\(caller)", .v4), by: caller, of: 1), now: 0)) }
        #expect(machine.handle(.wanted(name, by: 1_000, of: 1), now: 0) == [.waits(1_000)])
        for _ in 0..<4 { perform(machine.handle(.answered(running.removeFirst(), "", timeToLive: 0), now: 10 * second)) }
        #expect(running.contains(name))
        // The other waiting lookups are performed, too.
        for _ in 0..<2_000 where !running.isEmpty {
            perform(machine.handle(.answered(running.removeFirst(), "", timeToLive: 0), now: 20 * second))
        }
        #expect(running.isEmpty)
    }

    private struct Slowness: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var host: @Sendable (Int) -> String
    }

    private static let slowness = [
        Slowness(testDescription: "many domains") { "www.slow\($0).example" },
        Slowness(testDescription: "one domain") { "n\($0).slow.example" },
        Slowness(testDescription: "the domain of the quick name") { "n\($0).example.com" },
    ]

    /// Three hundred names whose lookups take ten seconds each, and a quick name of the same session in every second.
    @Test(arguments: slowness) private func `a quick name waits a second or two for slow names of its session, no longer`(
        _ slow: Slowness
    ) throws {
        var machine = machine(threads: 64, line: 10_000)
        var running: [Machine.Question: Int64] = [:]
        var (timer, most): (Int64?, Int) = (nil, 0)
        func perform(_ actions: [Machine.Action], at now: Int64) {
            for action in actions {
                if case .lookUp(let question) = action { running[question] = now }
                if case .startTimer(let delay) = action { timer = now + delay }
            }
            most = max(most, running.count)
        }
        for caller in 0..<300 {
            perform(machine.handle(.wanted(.init(slow.host(caller), .v4), by: caller, of: 1), now: 0), at: 0)
        }
        var waiting: [Machine.Question: Int64] = [:]
        var caller = 300
        for quarter in 0..<160 {
            let now = Int64(quarter) * second / 4
            if let due = timer, due <= now {
                timer = nil
                perform(machine.handle(.timer, now: now), at: now)
            }
            for (question, start) in running.sorted(by: { $0.key.host < $1.key.host }) {
                let isQuick = question.host.hasPrefix("quick")
                guard isQuick || start + 10 * second <= now else { continue }
                running[question] = nil
                if let wanted = waiting.removeValue(forKey: question) { #expect(now - wanted <= 2 * second, "\(question.host)") }
                perform(machine.handle(.answered(question, "", timeToLive: 0), now: now), at: now)
            }
            if quarter % 4 == 1 {
                let quick = Machine.Question("quick\(quarter).example.com", .v4)
                waiting[quick] = now
                perform(machine.handle(.wanted(quick, by: caller, of: 1), now: now), at: now)
            }
            // Another session finds a thread at once.
            let other = Machine.Question("other\(quarter).example.org", .v4)
            let actions = machine.handle(.wanted(other, by: caller + 1, of: 2), now: now)
            #expect(actions.contains(.lookUp(other)))
            perform(actions + machine.handle(.answered(other, "", timeToLive: 0), now: now), at: now)
            running[other] = nil
            caller += 2
        }
        #expect(waiting.count <= 2)
        #expect(most <= 128)
    }

    @Test func `a thousand slow names of one session or domain leave threads for others`() {
        var machine = machine(threads: 64, line: 10_000)
        var running = 0
        for caller in 0..<1_000 {
            running += begun(machine.handle(.wanted(.init("n\(caller).slow.example", .v4), by: caller, of: 1), now: 0))
        }
        #expect(running == 21)
        for caller in 1_000..<2_000 {
            running += begun(machine.handle(.wanted(.init("n\(caller).example", .v4), by: caller, of: 1), now: 0))
        }
        #expect(running == 32)
        #expect(machine.handle(.wanted(name, by: 2_000, of: 2), now: 0) == [.lookUp(name)])
    }

    @Test func `a lookup shared by two sessions runs in the earlier of their turns`() {
        var machine = machine(threads: 2)
        let slow = Machine.Question("slow", .v4)
        _ = machine.handle(.wanted(slow, by: 1, of: 1), now: 0)
        for caller in 2..<20 { _ = machine.handle(.wanted(.init("n\(caller)", .v4), by: caller, of: 1), now: 0) }
        #expect(machine.handle(.wanted(.init("n19", .v4), by: 20, of: 2), now: 0) == [.lookUp(.init("n19", .v4)), .began([19])])
        #expect(machine.handle(.answered(.init("n19", .v4), "here", timeToLive: 0), now: 0).first == .answer([19, 20], "here"))
    }

    @Test func `the queue is limited, and one session cannot fill it`() {
        var machine = machine(threads: 1, line: 8)
        var refused: [Int] = []
        for caller in 0..<20 {
            let actions = machine.handle(.wanted(.init("n\(caller)", .v4), by: caller, of: 1), now: 0)
            if actions == [.refuse(caller)] { refused.append(caller) }
        }
        #expect(refused == Array(5..<20))
        #expect(machine.handle(.wanted(name, by: 20, of: 2), now: 0) == [.waits(20)])
        // A caller of a running lookup needs no place in the queue.
        #expect(machine.handle(.wanted(.init("n0", .v4), by: 21, of: 1), now: 0) == [])
        #expect(machine.handle(.left(5), now: 0) == [])
    }

    @Test func `a lookup that lost its callers and gets a new one goes to the end of the queue`() {
        var machine = machine(threads: 1)
        let (first, second) = (Machine.Question("first", .v4), Machine.Question("second", .v4))
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        _ = machine.handle(.wanted(first, by: 2, of: 1), now: 0)
        _ = machine.handle(.wanted(second, by: 3, of: 1), now: 0)
        _ = machine.handle(.left(2), now: 0)
        _ = machine.handle(.wanted(first, by: 4, of: 1), now: 0)
        #expect(machine.handle(.answered(name, "", timeToLive: 0), now: 1) == [.answer([1], ""), .lookUp(second), .began([3])])
        #expect(machine.handle(.answered(second, "", timeToLive: 0), now: 2) == [.answer([3], ""), .lookUp(first), .began([4])])
    }

    @Test func `callers that left occupy no place in the queue`() {
        var machine = machine(threads: 1, line: 400)
        let last = Machine.Question("last", .v4)
        _ = machine.handle(.wanted(name, by: 1, of: 1), now: 0)
        _ = machine.handle(.wanted(last, by: 2, of: 1), now: 0)
        for caller in 3..<1_000 {
            // The timer runs already, for the first caller that waits.
            #expect(machine.handle(.wanted(.init("n\(caller)", .v4), by: caller, of: 1), now: 0) == [.waits(caller)])
            #expect(machine.handle(.left(caller), now: 0) == [])
        }
        #expect(machine.handle(.answered(name, "", timeToLive: 0), now: 1) == [.answer([1], ""), .lookUp(last), .began([2])])
    }

    @Test func `every caller gets one result or leaves`() {
        for seed in 0..<200 {
            var random = SeededNumbers(seed: UInt64(seed))
            let threads = Int.random(in: 1...6, using: &random)
            var machine = machine(threads: threads, line: 12, memory: 3)
            var waiting: Set<Int> = []
            var running: [Machine.Question] = []
            var timer: Int64?
            var heldCallers: Set<Int> = []
            func perform(_ actions: [Machine.Action], _ step: Int) {
                for action in actions {
                    switch action {
                    case .lookUp(let question):
                        #expect(!running.contains(question), "seed \(seed), step \(step)")
                        running.append(question)
                        #expect(running.count <= 2 * threads, "seed \(seed), step \(step)")
                    case .startTimer(let delay):
                        #expect(timer == nil, "seed \(seed), step \(step)")
                        timer = Int64(step) * second / 9 + delay
                    case .waits(let caller): #expect(heldCallers.insert(caller).inserted, "seed \(seed), step \(step)")
                    case .began(let callers):
                        for caller in callers { #expect(heldCallers.remove(caller) != nil, "seed \(seed), step \(step)") }
                    case .answer(let callers, _):
                        #expect(heldCallers.isDisjoint(with: callers), "seed \(seed), step \(step)")
                        for caller in callers { #expect(waiting.remove(caller) != nil, "seed \(seed), step \(step)") }
                    case .refuse(let caller): #expect(waiting.remove(caller) != nil, "seed \(seed), step \(step)")
                    }
                }
            }
            for step in 0..<300 {
                let now = Int64(step) * second / 9
                if let due = timer, due <= now {
                    timer = nil
                    perform(machine.handle(.timer, now: now), step)
                }
                switch Int.random(in: 0..<6, using: &random) {
                case 0...2:
                    waiting.insert(step)
                    let host = ["a.x", "b.x", "c.d.x", "e.d.x", "f"][Int.random(in: 0..<5, using: &random)]
                    let owner = Int.random(in: 0..<3, using: &random)
                    perform(
                        machine.handle(
                            .wanted(.init(host, Bool.random(using: &random) ? .v4 : .v6), by: step, of: owner), now: now), step)
                case 3:
                    guard let caller = waiting.sorted().randomElement(using: &random) else { break }
                    waiting.remove(caller)
                    heldCallers.remove(caller)
                    perform(machine.handle(.left(caller), now: now), step)
                default:
                    guard !running.isEmpty else { break }
                    let question = running.remove(at: Int.random(in: running.indices, using: &random))
                    perform(
                        machine.handle(
                            .answered(question, "", timeToLive: Int64.random(in: 0..<second, using: &random)), now: now),
                        step)
                }
            }
            while let question = running.popLast() {
                perform(machine.handle(.answered(question, "", timeToLive: 0), now: 300 * second), 300)
            }
            #expect(waiting.isEmpty, "seed \(seed)")
        }
    }
}
