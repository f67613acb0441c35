// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LoadingModel
import SeededNumbers
import Synchronization
import Testing

/// Resuming callers whose results arrived together.
@Suite(.timeLimit(.minutes(1)))
struct WakingTests {
    @Test(arguments: 0..<200)
    func `each caller is resumed once, and immediately if its executor or priority differs`(seed: UInt64) async {
        var numbers = SeededNumbers(seed: seed)
        let priorities = (0..<Int.random(in: 0...12, using: &numbers)).map { _ in
            [nil, .medium, .medium, .high, .background].randomElement(using: &numbers) ?? nil as TaskPriority?
        }
        let asleep = Mutex<[Int: UnsafeContinuation<Data, any Error>]>([:])
        let woken = Mutex<[Int]>([])
        let (runs, ran) = AsyncStream.makeStream(of: Int.self)
        for number in priorities.indices {
            let executor = RecordingExecutor(enqueued: { woken.withLock { $0.append(number) } }, ran: { ran.yield(number) })
            Task(executorPreference: executor) { @Sendable in
                _ = try await withUnsafeThrowingContinuation { caller in asleep.withLock { $0[number] = caller } }
            }
        }
        var iterator = runs.makeAsyncIterator()
        for _ in priorities { _ = await iterator.next() }
        woken.withLock { $0 = [] }
        let callers = asleep.withLock { $0 }
        Waking.run(
            priorities.enumerated().compactMap { number, priority in
                callers[number].map { Waking($0, priority: priority?.rawValue, with: Data()) }
            }
        )
        let atOnce = woken.withLock { $0 }
        let together = priorities.lazy.compactMap { $0 }.first
        #expect(priorities.indices.allSatisfy { (priorities[$0] != nil && priorities[$0] == together) || atOnce.contains($0) })
        if priorities.count <= 2 { #expect(atOnce.count == priorities.count) }
        var all: [Int] = []
        while all.count < priorities.count, let number = await iterator.next() { all.append(number) }
        #expect(all.sorted() == Array(priorities.indices))
    }
}

/// Runs jobs on any thread, and reports when one is enqueued and when it has run.
private final class RecordingExecutor: TaskExecutor {
    private let enqueued: @Sendable () -> Void
    private let ran: @Sendable () -> Void

    init(enqueued: @escaping @Sendable () -> Void, ran: @escaping @Sendable () -> Void) {
        self.enqueued = enqueued
        self.ran = ran
    }

    func enqueue(_ job: consuming ExecutorJob) {
        enqueued()
        let job = UnownedJob(job)
        DispatchQueue.global().async {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
            self.ran()
        }
    }
}
