//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingStores
import Synchronization
import Testing

@Suite struct DiskQueueTests {
    private final class Log: Sendable {
        private let numbers = Mutex<[Int]>([])
        func note(_ number: Int) { numbers.withLock { $0.append(number) } }
        var all: [Int] { numbers.withLock { $0 } }
    }

    @Test func `work runs in the order in which it came`() {
        let queue = DiskQueue()
        let log = Log()
        for number in 0..<1000 { queue.run { log.note(number) } }
        #expect(queue.runAndWait { log.all } == Array(0..<1000))
    }

    @Test func `a long queue takes no longer for each than a short one`() {
        let queue = DiskQueue()
        let log = Log()
        // With an array that is emptied from its front, this takes minutes.
        let count = 400_000
        queue.run { for number in 0..<count { queue.run { if number % 1000 == 0 { log.note(number) } } } }
        queue.drain(seconds: 60)
        #expect(log.all == Array(stride(from: 0, to: count, by: 1000)))
    }

    @Test func `waiting inside does not wait for itself`() {
        let queue = DiskQueue()
        #expect(queue.runAndWait { queue.runAndWait { 7 } } == 7)
    }

    @Test func `delayed work waits for its time, and lets other work pass`() {
        let queue = DiskQueue()
        let log = Log()
        queue.run(after: 3_600) { log.note(1) }
        queue.run { log.note(2) }
        #expect(queue.runAndWait { log.all } == [2])
        queue.drain(seconds: 10)
        #expect(log.all == [2, 1])
    }

    @Test func `delayed work runs when its time has come`() async {
        let queue = DiskQueue()
        await withCheckedContinuation { continuation in
            queue.run(after: 0.01) { continuation.resume() }
        }
    }

    @Test func `where there is no thread to be had, work runs all the same, in order, and one at a time`() {
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

    @Test func `draining does not wait for what work delays meanwhile`() {
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

    @Test func `a queue nobody has runs what it was given`() async {
        await withCheckedContinuation { continuation in
            let queue = DiskQueue()
            queue.run(after: 3_600) { continuation.resume() }
        }
    }

    @Test func `work is let go once it ran`() {
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
