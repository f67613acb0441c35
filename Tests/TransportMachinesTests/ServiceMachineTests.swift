// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

@Suite struct ServiceMachineTests {
    private typealias Machine = ServiceMachine<String, Int, String>

    private func machine(ways: Int = 2, limit: Int = 2) -> Machine { Machine(wayCount: ways, limit: limit) }

    @Test func `one question serves all callers of a service`() {
        var machine = machine()
        #expect(machine.handle(.wanted("a", by: 1)) == [.ask(1, "a"), .startTimer(1, .silence)])
        #expect(machine.handle(.wanted("a", by: 2)) == [])
        #expect(machine.handle(.found(1, way: 1, 11)) == [.startTimer(1, .gracePeriod)])
        #expect(machine.handle(.found(1, way: 0, 10)) == [.drop(1), .answer([1, 2], [10, 11])])
        #expect(machine.isIdle)
        #expect(machine.handle(.wanted("a", by: 3)) == [.ask(2, "a"), .startTimer(2, .silence)])
    }

    @Test func `after the first result, the other ways get a grace period`() {
        var machine = machine(ways: 3)
        _ = machine.handle(.wanted("a", by: 1))
        #expect(machine.handle(.found(1, way: 0, 10)) == [.startTimer(1, .gracePeriod)])
        #expect(machine.handle(.found(1, way: 2, 12)) == [])
        #expect(machine.handle(.timer(1, .gracePeriod)) == [.drop(1), .answer([1], [10, 12])])
        #expect(machine.handle(.found(1, way: 1, 11)) == [])
        #expect(machine.handle(.timer(1, .silence)) == [])
    }

    @Test func `a failed way leaves the question to the other ways, and the failure of the first way is reported`() {
        var machine = machine()
        _ = machine.handle(.wanted("a", by: 1))
        #expect(machine.handle(.failed(1, way: 1, "no")) == [])
        #expect(machine.handle(.found(1, way: 0, 10)) == [.drop(1), .answer([1], [10])])
        _ = machine.handle(.wanted("b", by: 2))
        #expect(machine.handle(.failed(2, way: 1, "late")) == [])
        #expect(machine.handle(.failed(2, way: 0, "early")) == [.drop(2), .fail([2], "early")])
    }

    @Test func `a question without callers is dropped`() {
        var machine = machine(limit: 1)
        _ = machine.handle(.wanted("a", by: 1))
        _ = machine.handle(.wanted("a", by: 2))
        _ = machine.handle(.wanted("b", by: 3))
        _ = machine.handle(.wanted("c", by: 4))
        #expect(machine.handle(.left(1)) == [])
        #expect(machine.handle(.left(3)) == [])
        #expect(machine.handle(.left(2)) == [.drop(1), .ask(2, "c"), .startTimer(2, .silence)])
        #expect(machine.handle(.left(2)) == [])
        #expect(machine.handle(.left(4)) == [.drop(2)])
        #expect(machine.isIdle)
    }

    @Test func `a silent service yields to a waiting service, and is asked about again after it`() {
        var machine = machine(limit: 1)
        _ = machine.handle(.wanted("silent", by: 1))
        #expect(machine.handle(.wanted("b", by: 2)) == [])
        #expect(machine.handle(.timer(1, .silence)) == [.drop(1), .ask(2, "b"), .startTimer(2, .silence)])
        #expect(machine.handle(.found(2, way: 0, 20)) == [.startTimer(2, .gracePeriod)])
        #expect(machine.handle(.timer(2, .silence)) == [])
        #expect(
            machine.handle(.timer(2, .gracePeriod)) == [
                .drop(2), .answer([2], [20]), .ask(3, "silent"), .startTimer(3, .silence),
            ])
        #expect(machine.handle(.timer(3, .silence)) == [])
        // The service was silent for long enough.
        #expect(machine.handle(.wanted("c", by: 3)) == [.drop(3), .ask(4, "c"), .startTimer(4, .silence)])
    }

    @Test func `services not asked about yet come before silent ones`() {
        var machine = machine(limit: 1)
        for (number, name) in ["a", "b", "c"].enumerated() { _ = machine.handle(.wanted(name, by: number)) }
        #expect(machine.handle(.timer(1, .silence)) == [.drop(1), .ask(2, "b"), .startTimer(2, .silence)])
        #expect(machine.handle(.wanted("d", by: 4)) == [])
        #expect(machine.handle(.timer(2, .silence)) == [.drop(2), .ask(3, "c"), .startTimer(3, .silence)])
        #expect(machine.handle(.timer(3, .silence)) == [.drop(3), .ask(4, "d"), .startTimer(4, .silence)])
        #expect(machine.handle(.timer(4, .silence)) == [.drop(4), .ask(5, "a"), .startTimer(5, .silence)])
    }

    @Test func `all callers fail when no question can be asked any more`() {
        var machine = machine(limit: 1)
        for (number, name) in ["a", "b", "a"].enumerated() { _ = machine.handle(.wanted(name, by: number)) }
        #expect(machine.handle(.lost("gone")) == [.drop(1), .fail([0, 1, 2], "gone")])
        #expect(machine.isIdle && machine.handle(.lost("gone")) == [])
        #expect(machine.handle(.found(1, way: 0, 1)) == [])
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `each caller gets one result, and the number of questions is limited`(
        seed: UInt64
    ) {
        var numbers = SeededNumbers(seed: seed)
        var machine = machine(ways: 3, limit: 4)
        var asked: [Int: String] = [:]
        var waiting: [Int: String] = [:]
        func perform(_ actions: [Machine.Action]) {
            for action in actions {
                switch action {
                case .ask(let question, let service):
                    #expect(!asked.values.contains(service) && waiting.values.contains(service))
                    asked[question] = service
                case .drop(let question): #expect(asked.removeValue(forKey: question) != nil)
                case .startTimer(let question, _): #expect(asked[question] != nil)
                case .answer(let callers, let parts):
                    #expect(!parts.isEmpty)
                    for caller in callers { #expect(waiting.removeValue(forKey: caller) != nil) }
                case .fail(let callers, _):
                    for caller in callers { #expect(waiting.removeValue(forKey: caller) != nil) }
                }
            }
            #expect(asked.count <= 4)
        }
        for caller in 0..<400 {
            let question = asked.keys.sorted().randomElement(using: &numbers) ?? 0
            let way = Int.random(in: 0..<3, using: &numbers)
            switch Int.random(in: 0..<12, using: &numbers) {
            case 0..<5:
                let service = "\(Int.random(in: 0..<20, using: &numbers))"
                waiting[caller] = service
                perform(machine.handle(.wanted(service, by: caller)))
            case 5:
                guard let leaving = waiting.keys.sorted().randomElement(using: &numbers) else { continue }
                waiting[leaving] = nil
                perform(machine.handle(.left(leaving)))
            case 6: perform(machine.handle(.found(question, way: way, caller)))
            case 7: perform(machine.handle(.failed(question, way: way, "failed")))
            case 8: perform(machine.handle(.timer(question, .gracePeriod)))
            case 9, 10: perform(machine.handle(.timer(question, .silence)))
            default: if caller % 50 == 0 { perform(machine.handle(.lost("lost"))) }
            }
            #expect(machine.isIdle == waiting.isEmpty)
            #expect(asked.count == min(4, Set(waiting.values).count))
        }
        // The remaining services are asked about in turn, and found.
        for _ in 0..<100 {
            guard let question = asked.keys.min() else { break }
            for way in 0..<3 { perform(machine.handle(.found(question, way: way, 1))) }
        }
        #expect(waiting.isEmpty && asked.isEmpty && machine.isIdle)
    }
}
