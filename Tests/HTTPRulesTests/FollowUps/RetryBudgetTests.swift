// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

/// How often requests to a failing host are retried.
struct RetryBudgetTests {
    @Test func `requests to a failing host are retried five times`() {
        var budget = RetryBudget(now: 0)
        #expect(budget.isFull)
        var answers: [Bool] = []
        for _ in 1...8 { answers.append(budget.noteFailure(now: 0)) }
        #expect(answers == [true, true, true, true, true, false, false, false])
        #expect(!budget.isFull)
    }

    @Test func `each success restores a tenth of a retry`() {
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

    @Test func `requests to a host that fails a tenth of the time are always retried`() {
        var budget = RetryBudget(now: 0)
        for _ in 0..<1_000 {
            let mayTry = budget.noteFailure(now: 0)
            #expect(mayTry)
            for _ in 0..<10 { budget.noteSuccess(now: 0) }
        }
    }

    @Test func `the budget is also restored by time`() {
        var budget = RetryBudget(now: 1_000)
        for _ in 0..<20 { _ = budget.noteFailure(now: 1_000) }
        let early = budget.noteFailure(now: 1_059)
        #expect(!early)
        let late = budget.noteFailure(now: 1_120)
        #expect(late)
        budget.noteSuccess(now: 2_000)
        #expect(budget.isFull)
        // A clock that is set back restores nothing.
        let back = budget.noteFailure(now: 1_000)
        #expect(back)
    }

    @Test(arguments: [
        (1, 0.0, 0.25), (1, 1.0, 0.5), (2, 1.0, 1.0), (3, 1.0, 2.0), (4, 1.0, 3.0), (90, 1.0, 3.0), (0, 1.0, 0.0), (1, 9.0, 0.5),
    ])
    func `pauses double up to a maximum, and half of each is random`(count: Int, jitter: Double, expected: Double) {
        #expect(Backoff.pause(before: count, first: 0.5, longest: 3, jitter: jitter) == expected)
    }
}
