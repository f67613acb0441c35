//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel
import SeededNumbers
import Synchronization
import Testing

/// Callers of loads that ended together.
@Suite(.timeLimit(.minutes(1)))
struct WakingTests {
    @Test(arguments: 0..<200)
    func `everybody is woken once, and at once who runs elsewhere or has another priority`(seed: UInt64) async {
        var numbers = SeededNumbers(seed: seed)
        let priorities = (0..<Int.random(in: 0...12, using: &numbers)).map { _ in
            [nil, .medium, .medium, .high, .background].randomElement(using: &numbers) ?? nil as TaskPriority?
        }
        let (woken, continuation) = AsyncStream.makeStream(of: Int.self)
        let known = Mutex<[Int]>([])
        Waking.run(
            priorities.enumerated().map { number, priority in
                Waking(priority: priority?.rawValue) {
                    known.withLock { $0.append(number) }
                    continuation.yield(number)
                }
            }
        )
        let atOnce = known.withLock { $0 }
        let together = priorities.lazy.compactMap { $0 }.first
        #expect(priorities.indices.allSatisfy { (priorities[$0] != nil && priorities[$0] == together) || atOnce.contains($0) })
        if priorities.count <= 2 { #expect(atOnce.count == priorities.count) }
        var all: [Int] = []
        var iterator = woken.makeAsyncIterator()
        while all.count < priorities.count, let number = await iterator.next() { all.append(number) }
        #expect(all.sorted() == Array(priorities.indices))
    }
}
