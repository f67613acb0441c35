// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

@Suite struct FileSinkMachineTests {
    private typealias Event = FileSinkMachine.Event
    private typealias Step = FileSinkMachine.Step

    private static let batch = FileSinkMachine.batchSize

    /// Events with the expected steps.
    private static let rows: [(name: String, staysWhenFull: Bool, history: [(Event, Step)])] = [
        (
            "small pieces are collected", false,
            [
                (.queued(batch - 1), .nothing), (.queued(1), .start), (.queued(batch), .nothing), (.threadIsFree, .write),
                (.wrote(Int64(2 * batch), of: 2 * batch), .nothing), (.threadIsFree, .leave), (.queued(1), .nothing),
            ]
        ),
        (
            "a flush writes a small piece, once", false,
            [
                (.flush, .nothing), (.queued(1), .nothing), (.flush, .start), (.threadIsFree, .write),
                (.wrote(1, of: 1), .nothing),
                (.threadIsFree, .leave), (.queued(batch), .start), (.threadIsFree, .write),
                (.wrote(Int64(batch), of: batch), .nothing), (.queued(1), .nothing), (.threadIsFree, .leave),
            ]
        ),
        (
            "a file is closed after the last write, once", false,
            [
                (.queued(1), .nothing), (.end(.close), .start), (.threadIsFree, .write), (.wrote(1, of: 1), .nothing),
                (.threadIsFree, .close(isFull: false)), (.threadIsFree, .leave), (.end(.keep), .start), (.threadIsFree, .tell),
                (.threadIsFree, .leave), (.queued(batch), .nothing), (.flush, .nothing),
            ]
        ),
        (
            "a closed file is deleted, once", false,
            [
                (.end(.close), .start), (.threadIsFree, .close(isFull: false)), (.abort, .nothing),
                (.threadIsFree, .discard(isOpen: false)), (.threadIsFree, .leave), (.abort, .start), (.threadIsFree, .leave),
                (.end(.close), .start), (.threadIsFree, .tell), (.threadIsFree, .leave),
            ]
        ),
        (
            "an aborted file is deleted, and the end is reported", false,
            [
                (.queued(batch), .start), (.end(.close), .nothing), (.abort, .nothing), (.threadIsFree, .discard(isOpen: true)),
                (.threadIsFree, .tell), (.threadIsFree, .leave), (.queued(batch), .nothing),
            ]
        ),
        (
            "a file that cannot be written is deleted at its end", false,
            [
                (.queued(batch), .start), (.threadIsFree, .write), (.wrote(7, of: batch), .nothing),
                (.failed(isFull: true), .unlink),
                (.threadIsFree, .leave), (.queued(batch), .nothing), (.flush, .nothing), (.end(.keep), .start),
                (.threadIsFree, .discard(isOpen: true)), (.threadIsFree, .tell), (.threadIsFree, .leave),
            ]
        ),
        (
            "a file that fills the disk is kept on request", true,
            [
                (.queued(batch), .start), (.threadIsFree, .write), (.failed(isFull: true), .nothing), (.threadIsFree, .leave),
                (.end(.close), .start), (.threadIsFree, .tell), (.end(.keep), .nothing), (.threadIsFree, .close(isFull: true)),
                (.end(.keep), .nothing), (.threadIsFree, .tell), (.threadIsFree, .leave),
            ]
        ),
        (
            "after another failure a file is not kept", true,
            [
                (.failed(isFull: false), .unlink), (.end(.keep), .start), (.threadIsFree, .discard(isOpen: true)),
                (.threadIsFree, .tell), (.threadIsFree, .leave),
            ]
        ),
        (
            "a complete file is kept when it is closed", true,
            [(.end(.keep), .start), (.threadIsFree, .close(isFull: false)), (.threadIsFree, .leave)]
        ),
        (
            "a file that cannot be closed is deleted", true,
            [
                (.end(.close), .start), (.threadIsFree, .close(isFull: false)), (.failed(isFull: true), .unlink),
                (.abort, .nothing),
                (.threadIsFree, .leave),
            ]
        ),
        (
            "no thread uses the file while a pump does", false,
            [
                (.pumpEntered, .nothing), (.moved(9), .nothing), (.end(.close), .nothing), (.pumpLeft, .start),
                (.threadIsFree, .close(isFull: false)), (.threadIsFree, .leave),
            ]
        ),
        ("a leaving pump causes no step", false, [(.pumpEntered, .nothing), (.pumpLeft, .nothing), (.abort, .start)]),
        (
            "a thread yields to a pump and returns", false,
            [
                (.queued(batch), .start), (.pumpEntered, .nothing), (.abort, .nothing), (.threadIsFree, .leave),
                (.pumpLeft, .start), (.threadIsFree, .discard(isOpen: true)),
            ]
        ),
        (
            "a thread that is still there when the pump leaves continues", false,
            [
                (.queued(batch), .start), (.pumpEntered, .nothing), (.abort, .nothing), (.pumpLeft, .nothing),
                (.threadIsFree, .discard(isOpen: true)),
            ]
        ),
    ]

    @Test(arguments: rows.indices) func `events lead to the expected steps`(index: Int) {
        let (name, staysWhenFull, history) = Self.rows[index]
        var file = FileSinkMachine(written: 0)
        if staysWhenFull { file.keepWhenFull() }
        for (place, (event, step)) in history.enumerated() {
            let found = file.handle(event)
            #expect(found == step, "\(name): \(event), at \(place)")
        }
    }

    @Test func `written bytes are counted, including those of a failed batch and of a pump`() {
        var file = FileSinkMachine(written: 5)
        for event in [.queued(Self.batch), .wrote(7, of: Self.batch), .moved(11)] as [Event] { _ = file.handle(event) }
        #expect(file.written == 23)
        #expect(file.outstanding == 0)
        #expect(file.isOpen)
        #expect(!file.isGone)
    }

    /// With events in any order, the file has one user at a time, is closed once, and the end is reported.
    @Test(arguments: 0..<200 as Range<UInt64>) func `a file has one user at a time, and one end`(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        var file = FileSinkMachine(written: 0)
        if numbers.next(below: 2) == 0 { file.keepWhenFull() }
        var (threads, hasPump, closings, isAborted, isDue) = (0, false, 0, false, false)
        func send(_ event: Event) -> Step {
            let step = file.handle(event)
            if step == .start {
                threads += 1
                #expect(!hasPump && threads == 1, "\(event)")
            }
            return step
        }
        func runThread() {
            let step = send(.threadIsFree)
            switch step {
            case .write:
                #expect(!hasPump && closings == 0 && file.outstanding > 0)
                let size = file.outstanding
                let isCut = numbers.next(below: 8) == 0
                if isCut { _ = send(.failed(isFull: numbers.next(below: 2) == 0)) }
                _ = send(.wrote(isCut ? 1 : Int64(size), of: size))
            case .close:
                #expect(!hasPump)
                (closings, isDue) = (closings + 1, false)
                if numbers.next(below: 8) == 0 { _ = send(.failed(isFull: false)) }
            case .discard(let isOpen):
                #expect(!hasPump)
                if isOpen { closings += 1 }
            case .tell: isDue = false
            case .leave: threads -= 1
            default: Issue.record("a thread received \(step)")
            }
            #expect(closings <= 1 && file.isOpen == (closings == 0) || isAborted)
        }
        for _ in 0..<60 {
            switch numbers.next(below: 10) {
            case 0, 1, 2: _ = send(.queued(numbers.next(below: 2 * Self.batch)))
            case 3: _ = send(.flush)
            case 4 where numbers.next(below: 3) == 0:
                isDue = true
                _ = send(.end(numbers.next(below: 2) == 0 ? .close : .keep))
            case 5 where numbers.next(below: 8) == 0:
                isAborted = true
                _ = send(.abort)
            // Callers start a pump only while the file is open and its end was not requested.
            case 6 where !hasPump && !isDue && file.isOpen && !isAborted:
                hasPump = true
                _ = send(.pumpEntered)
            case 7 where hasPump:
                hasPump = false
                _ = send(.pumpLeft)
            default: if threads > 0 { runThread() }
            }
        }
        if hasPump {
            hasPump = false
            _ = send(.pumpLeft)
        }
        while threads > 0 { runThread() }
        #expect(!isDue)
        #expect(file.isGone || !isAborted)
        _ = send(.abort)
        while threads > 0 { runThread() }
        #expect(closings == 1 && file.isGone && !file.isOpen)
    }
}
