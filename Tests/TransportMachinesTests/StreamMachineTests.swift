// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

@Suite struct StreamMachineTests {
    typealias Event = StreamMachine.Event
    typealias Action = StreamMachine.Action

    /// A sequence of events, each with the expected actions.
    struct Story: Sendable, CustomTestStringConvertible {
        let name: String
        let steps: [(Event, [Action])]

        init(_ name: String, _ steps: (Event, [Action])...) { (self.name, self.steps) = (name, steps) }

        var testDescription: String { name }
    }

    static let stories: [Story] = [
        Story(
            "requests before the connection opens are performed after it",
            (.asked(.read(1, minimum: 1, maximum: 8)), []), (.asked(.write(2)), []), (.opened, [.write(2)]),
            (.received(3), [.deliver(1, count: 3, isAtEnd: false)]), (.written, [])),
        Story(
            "reads are served in order, each with at most its maximum",
            (.opened, []), (.asked(.read(1, minimum: 4, maximum: 5)), []), (.asked(.read(2, minimum: 0, maximum: 9)), []),
            (.received(3), []), (.received(4), [.deliver(1, count: 5, isAtEnd: false), .deliver(2, count: 2, isAtEnd: false)])),
        Story(
            "a read without a minimum waits for a byte",
            (.opened, []), (.asked(.read(1, minimum: 0, maximum: 1)), []),
            (.received(2), [.deliver(1, count: 1, isAtEnd: false)])),
        Story(
            "writes are performed one after another",
            (.opened, []), (.asked(.write(1)), [.write(1)]), (.asked(.write(2)), []), (.written, [.write(2)]), (.written, [])),
        Story(
            "a waiting read does not block a write",
            (.opened, []), (.asked(.read(1, minimum: 1, maximum: 1)), []), (.asked(.write(2)), [.write(2)])),
        Story(
            "at the end of the stream a read gets the rest, and later ones nothing",
            (.opened, []), (.asked(.read(1, minimum: 9, maximum: 9)), []), (.received(4), []),
            (.inputEnded, [.tellReadClosed, .deliver(1, count: 4, isAtEnd: true)]),
            (.asked(.read(2, minimum: 1, maximum: 9)), [.deliver(2, count: 0, isAtEnd: true)])),
        Story(
            "the end is reported with the last bytes",
            (.opened, []), (.received(4), []), (.inputEnded, [.tellReadClosed]),
            (.asked(.read(1, minimum: 1, maximum: 3)), [.deliver(1, count: 3, isAtEnd: false)]),
            (.asked(.read(2, minimum: 1, maximum: 3)), [.deliver(2, count: 1, isAtEnd: true)])),
        Story("the end is reported once", (.opened, []), (.inputEnded, [.tellReadClosed]), (.inputEnded, [])),
        Story(
            "invalid lengths are refused at once",
            (.asked(.read(1, minimum: 2, maximum: 1)), [.refuse(1, .lengths)]),
            (.asked(.read(2, minimum: 0, maximum: 0)), [.refuse(2, .lengths)]),
            (.asked(.read(3, minimum: -1, maximum: 1)), [.refuse(3, .lengths)])),
        Story(
            "the write side closes after pending writes, and later writes are refused",
            (.opened, []), (.asked(.write(1)), [.write(1)]), (.asked(.closeWrite), []), (.asked(.write(2)), []),
            (.written, [.closeOutput]), (.outputClosed, [.tellWriteClosed, .refuse(2, .closed)]), (.asked(.closeWrite), [])),
        Story(
            "the read side closes after pending reads, and later reads are refused",
            (.opened, []), (.asked(.read(1, minimum: 2, maximum: 2)), []), (.asked(.closeRead), []),
            (.asked(.read(2, minimum: 1, maximum: 1)), []),
            (.received(3), [.deliver(1, count: 2, isAtEnd: false), .discardInput, .tellReadClosed, .refuse(2, .closed)]),
            (.received(3), [])),
        Story(
            "reading may stop before pending reads",
            (.opened, []), (.asked(.read(1, minimum: 1, maximum: 1)), []),
            (.asked(.stopReading), [.refuse(1, .closed), .discardInput, .tellReadClosed])),
        Story(
            "the stream ends when both sides are closed and all received bytes are read",
            (.opened, []), (.received(1), []), (.inputEnded, [.tellReadClosed]), (.asked(.closeWrite), [.closeOutput]),
            (.outputClosed, [.tellWriteClosed]),
            (.asked(.read(1, minimum: 1, maximum: 1)), [.deliver(1, count: 1, isAtEnd: true), .end]),
            (.asked(.write(2)), [])),
        Story(
            "the stream ends when the task has closed both sides",
            (.opened, []), (.received(1), []), (.asked(.closeRead), [.discardInput, .tellReadClosed]),
            (.asked(.closeWrite), [.closeOutput]), (.outputClosed, [.tellWriteClosed, .end])),
        Story(
            "TLS starts after pending requests, and later ones wait for it",
            (.opened, []), (.asked(.read(1, minimum: 1, maximum: 1)), []), (.asked(.write(2)), [.write(2)]),
            (.asked(.secure), []), (.asked(.write(3)), []), (.asked(.read(4, minimum: 1, maximum: 9)), []),
            (.written, []), (.received(1), [.deliver(1, count: 1, isAtEnd: false), .secure]), (.received(1), []),
            (.secured, [.deliver(4, count: 1, isAtEnd: false), .write(3)])),
        Story(
            "TLS is not started twice",
            (.secured, []), (.opened, []), (.received(1), []), (.asked(.secure), []), (.asked(.write(1)), [.write(1)])),
        Story(
            "unread bytes before TLS fail the stream",
            (.opened, []), (.received(2), []),
            (.asked(.read(1, minimum: 1, maximum: 1)), [.deliver(1, count: 1, isAtEnd: false)]),
            (.asked(.secure), [.fail(.unreadBytes)]), (.received(1), [])),
        Story(
            "TLS does not start when a side is closed",
            (.opened, []), (.inputEnded, [.tellReadClosed]), (.asked(.secure), [.fail(.endedBeforeTLS)])),
        Story(
            "the stream is captured after pending requests, and continues",
            (.opened, []), (.asked(.write(1)), [.write(1)]), (.asked(.capture), []), (.received(2), []),
            (.written, [.capture]), (.asked(.read(2, minimum: 1, maximum: 9)), [.deliver(2, count: 2, isAtEnd: false)])),
        Story(
            "a timed-out read is refused, and the next one gets its bytes",
            (.opened, []), (.asked(.read(1, minimum: 4, maximum: 4)), []), (.asked(.read(2, minimum: 2, maximum: 4)), []),
            (.received(3), []), (.timedOut(1), [.refuse(1, .timeout), .deliver(2, count: 3, isAtEnd: false)]), (.timedOut(1), [])),
        Story(
            "a write that times out before it starts is refused",
            (.opened, []), (.asked(.write(1)), [.write(1)]), (.asked(.write(2)), []), (.timedOut(2), [.refuse(2, .timeout)]),
            (.written, [])),
        Story(
            "a write that times out halfway fails the stream",
            (.opened, []), (.asked(.write(1)), [.write(1)]), (.timedOut(1), [.refuse(1, .timeout), .fail(.partialWrite)]),
            (.written, [])),
        Story(
            "nothing is done while the task is suspended",
            (.opened, []), (.held(true), []), (.asked(.write(1)), []), (.asked(.read(2, minimum: 1, maximum: 1)), []),
            (.received(1), []), (.held(false), [.deliver(2, count: 1, isAtEnd: false), .write(1)])),
    ]

    @Test(arguments: stories) func `events lead to the expected actions`(story: Story) {
        var machine = StreamMachine()
        for (index, (event, actions)) in story.steps.enumerated() {
            #expect(machine.handle(event) == actions, "step \(index): \(event)")
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func `no read, write or byte is lost in any history`(seed: UInt64) {
        var history = StreamHistory(seed: seed)
        for _ in 0..<2_000 { history.run(25) }
        #expect(history.faults.isEmpty, "\(history.faults.prefix(5))")
        #expect(history.kinds == StreamHistory.allKinds)
    }
}

/// Simulates random lives of streams, and records violated rules.
struct StreamHistory {
    private(set) var faults: [String] = []
    /// The kinds of actions seen.
    private(set) var kinds: Set<String> = []
    static let allKinds: Set<String> = [
        "deliver", "write", "refuse", "closeOutput", "discardInput", "secure", "capture", "tellReadClosed", "tellWriteClosed",
        "end",
        "fail",
    ]

    private var random: SeededNumbers

    private struct Life {
        var machine = StreamMachine()
        var last = 0
        var reads: [(number: Int, minimum: Int, maximum: Int)] = []
        var writes: [Int] = []
        var received = 0
        var delivered = 0
        var writing: Int?
        var closing = false
        var securing = false
        var hasEnded = false
        var readClosed = 0
        var writeClosed = 0
        var isOver = false
        var isOpen = false
    }

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    mutating func run(_ length: Int) {
        var life = Life()
        for _ in 0..<length {
            guard let event = event(of: &life) else { continue }
            let actions = life.machine.handle(event)
            if life.isOver, !actions.isEmpty { faults.append("\(actions) after the end") }
            for action in actions { check(action, &life) }
        }
        if life.delivered > life.received { faults.append("more was read than received") }
        if life.readClosed > 1 || life.writeClosed > 1 { faults.append("a side was closed twice") }
    }

    private mutating func event(of life: inout Life) -> StreamMachine.Event? {
        switch Int.random(in: 0..<16, using: &random) {
        case 0...2:
            life.last += 1
            let minimum = Int.random(in: 0..<6, using: &random)
            let maximum = Int.random(in: 1..<9, using: &random)
            life.reads.append((life.last, minimum, maximum))
            return .asked(.read(life.last, minimum: minimum, maximum: maximum))
        case 3...4:
            life.last += 1
            life.writes.append(life.last)
            return .asked(.write(life.last))
        case 5: return .asked([.closeRead, .closeWrite, .stopReading][Int.random(in: 0..<3, using: &random)])
        case 6: return .asked(Bool.random(using: &random) ? .secure : .capture)
        case 7, 8:
            guard life.isOpen, !life.hasEnded else { return nil }
            let count = Int.random(in: 1..<7, using: &random)
            life.received += count
            return .received(count)
        case 9:
            guard life.isOpen, Int.random(in: 0..<4, using: &random) == 0 else { return nil }
            life.hasEnded = true
            return .inputEnded
        case 10, 11:
            guard let number = life.writing.take() else { return nil }
            life.writes.removeAll { $0 == number }
            return .written
        case 12:
            guard life.closing else { return nil }
            life.closing = false
            return .outputClosed
        case 13:
            guard life.securing else { return nil }
            life.securing = false
            return .secured
        case 14: return .timedOut(Int.random(in: 1...max(1, life.last), using: &random))
        default:
            if !life.isOpen {
                life.isOpen = true
                return .opened
            }
            return .held(Bool.random(using: &random))
        }
    }

    private mutating func check(_ action: StreamMachine.Action, _ life: inout Life) {
        kinds.insert(String("\(action)".prefix { $0 != "(" }))
        switch action {
        case .deliver(let number, let count, let isAtEnd):
            guard let first = life.reads.first, first.number == number else {
                return faults.append("read \(number) is not next")
            }
            life.reads.removeFirst()
            life.delivered += count
            if count > first.maximum || !isAtEnd && !life.hasEnded && count < max(1, first.minimum) {
                faults.append("a read of \(first) got \(count)")
            }
            if isAtEnd, !life.hasEnded { faults.append("an end was reported too early") }
            if life.securing { faults.append("a read while TLS starts") }
        case .write(let number):
            if life.writing != nil || life.closing || life.securing || life.writes.first != number || life.writeClosed > 0 {
                faults.append("write \(number) is not next")
            }
            life.writing = number
        case .refuse(let number, _):
            let count = life.reads.count + life.writes.count
            life.reads.removeAll { $0.number == number }
            life.writes.removeAll { $0 == number }
            if life.reads.count + life.writes.count != count - 1 { faults.append("\(number) had a result already") }
        case .closeOutput:
            if life.writing != nil || life.closing { faults.append("closed in the middle of a write") }
            life.closing = true
        case .secure:
            if life.writing != nil || life.closing || life.received != life.delivered { faults.append("TLS too soon") }
            life.securing = true
        case .tellReadClosed: life.readClosed += 1
        case .tellWriteClosed: life.writeClosed += 1
        case .end, .fail: life.isOver = true
        case .discardInput, .capture: break
        }
    }
}
