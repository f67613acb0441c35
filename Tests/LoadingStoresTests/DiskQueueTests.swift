// SPDX-License-Identifier: Apache-2.0

import LoadingStores
import Synchronization
import Testing

@Suite struct DiskQueueTests {
    private final class Log: Sendable {
        private let numbers = Mutex<[Int]>([])
        func note(_ number: Int) { numbers.withLock { $0.append(number) } }
        var all: [Int] { numbers.withLock { $0 } }
    }

    @Test func `work runs in the order of submission`() {
        let queue = DiskQueue()
        let log = Log()
        for number in 0..<1000 { queue.run { log.note(number) } }
        #expect(queue.runAndWait { log.all } == Array(0..<1000))
    }

    @Test func `enqueuing takes constant time in a long queue`() {
        let queue = DiskQueue()
        let log = Log()
        // With an array whose first element is removed, this takes minutes.
        let count = 400_000
        queue.run { for number in 0..<count { queue.run { if number % 1000 == 0 { log.note(number) } } } }
        queue.drain(seconds: 60)
        #expect(log.all == Array(stride(from: 0, to: count, by: 1000)))
    }

    @Test func `waiting from within the queue does not deadlock`() {
        let queue = DiskQueue()
        #expect(queue.runAndWait { queue.runAndWait { 7 } } == 7)
    }

    @Test func `delayed work waits, and other work overtakes it`() {
        let queue = DiskQueue()
        let log = Log()
        queue.run(after: 3_600) { log.note(1) }
        queue.run { log.note(2) }
        #expect(queue.runAndWait { log.all } == [2])
        queue.drain(seconds: 10)
        #expect(log.all == [2, 1])
    }

    @Test func `delayed work runs after its delay`() async {
        let queue = DiskQueue()
        await withCheckedContinuation { continuation in
            queue.run(after: 0.01) { continuation.resume() }
        }
    }

    @Test func `without a thread, work still runs in order and one item at a time`() {
        let queue = DiskQueue(hasThread: false)
        let log = Log()
        queue.run {
            log.note(1)
            queue.run { log.note(3) }
            #expect(queue.runAndWait { 7 } == 7)
            log.note(2)
        }
        queue.run(after: 3_600) { log.note(5) }
        queue.run { log.note(4) }
        #expect(log.all == [1, 2, 3, 4])
        #expect(queue.runAndWait { 8 } == 8)
        queue.drain(seconds: 10)
        #expect(log.all == [1, 2, 3, 4, 5])
    }

    @Test func `draining does not wait for work that is delayed meanwhile`() {
        let queue = DiskQueue()
        let log = Log()
        queue.run(after: 3_600) {
            log.note(1)
            queue.run(after: 3_600) { log.note(2) }
        }
        queue.drain(seconds: 10)
        #expect(log.all == [1])
        #expect(queue.runAndWait { 3 } == 3)
    }

    @Test func `a queue without references still runs its work`() async {
        await withCheckedContinuation { continuation in
            let queue = DiskQueue()
            queue.run(after: 3_600) { continuation.resume() }
        }
    }

    @Test func `work is released after it ran`() {
        final class Token: Sendable {}
        let queue = DiskQueue()
        weak var token: Token?
        do {
            let strong = Token()
            token = strong
            queue.run { _ = strong }
        }
        queue.runAndWait {}
        queue.runAndWait {}
        #expect(token == nil)
    }
}
