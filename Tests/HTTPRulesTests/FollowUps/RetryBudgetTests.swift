//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import Testing

/// How much a failing host is asked again.
struct RetryBudgetTests {
    @Test func `a host that fails is tried again five times, and then no more`() {
        var budget = RetryBudget(now: 0)
        #expect(budget.isFull)
        var answers: [Bool] = []
        for _ in 1...8 { answers.append(budget.noteFailure(now: 0)) }
        #expect(answers == [true, true, true, true, true, false, false, false])
        #expect(!budget.isFull)
    }

    @Test func `what it answers brings its budget back, a tenth of an attempt at a time`() {
        var budget = RetryBudget(now: 0)
        for _ in 0..<20 { _ = budget.noteFailure(now: 0) }
        for _ in 0..<59 { budget.noteSuccess(now: 0) }
        let early = budget.noteFailure(now: 0)
        #expect(!early)
        for _ in 0..<11 { budget.noteSuccess(now: 0) }
        let late = budget.noteFailure(now: 0)
        #expect(late)
        for _ in 0..<50 { budget.noteSuccess(now: 0) }
        #expect(budget.isFull)
    }

    @Test func `a host that fails a tenth of the time is always tried again`() {
        var budget = RetryBudget(now: 0)
        for _ in 0..<1_000 {
            let mayTry = budget.noteFailure(now: 0)
            #expect(mayTry)
            for _ in 0..<10 { budget.noteSuccess(now: 0) }
        }
    }

    @Test func `time brings it back, too`() {
        var budget = RetryBudget(now: 1_000)
        for _ in 0..<20 { _ = budget.noteFailure(now: 1_000) }
        let early = budget.noteFailure(now: 1_059)
        #expect(!early)
        let late = budget.noteFailure(now: 1_120)
        #expect(late)
        budget.noteSuccess(now: 2_000)
        #expect(budget.isFull)
        // A clock that goes back brings nothing.
        let back = budget.noteFailure(now: 1_000)
        #expect(back)
    }

    @Test(arguments: [
        (1, 0.0, 0.25), (1, 1.0, 0.5), (2, 1.0, 1.0), (3, 1.0, 2.0), (4, 1.0, 3.0), (90, 1.0, 3.0), (0, 1.0, 0.0), (1, 9.0, 0.5),
    ])
    func `pauses double up to the longest, and half of each is random`(count: Int, jitter: Double, expected: Double) {
        #expect(Backoff.pause(before: count, first: 0.5, longest: 3, jitter: jitter) == expected)
    }
}
