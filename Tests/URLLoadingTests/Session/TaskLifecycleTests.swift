// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import SeededNumbers
import Testing

@Suite struct TaskLifecycleTests {
    typealias Event = TaskLifecycle.Event
    typealias Action = TaskLifecycle.Action

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var events: [Event]
        var actions: [Action]
        var phase: TaskLifecycle.Phase
    }

    static let rows: [Row] = [
        Row(testDescription: "a new task waits", events: [], actions: [], phase: .unstarted(suspensions: 1)),
        Row(testDescription: "resume starts it", events: [.resume], actions: [.start], phase: .running),
        Row(testDescription: "a second resume does nothing", events: [.resume, .resume], actions: [.start], phase: .running),
        Row(
            testDescription: "suspensions before the start nest", events: [.suspend, .resume],
            actions: [], phase: .unstarted(suspensions: 1)
        ),
        Row(
            testDescription: "the same number of resumptions starts it", events: [.suspend, .resume, .resume],
            actions: [.start], phase: .running
        ),
        Row(
            testDescription: "suspensions nest", events: [.resume, .suspend, .suspend, .resume],
            actions: [.start, .pause], phase: .paused(suspensions: 1)
        ),
        Row(
            testDescription: "the last resumption resumes it", events: [.resume, .suspend, .suspend, .resume, .resume],
            actions: [.start, .pause, .unpause], phase: .running
        ),
        Row(
            testDescription: "cancel ends a task that never began", events: [.cancel], actions: [.endUnstarted],
            phase: .cancelling),
        Row(testDescription: "cancel aborts a load", events: [.resume, .cancel], actions: [.start, .abort], phase: .cancelling),
        Row(
            testDescription: "cancel aborts a paused load", events: [.resume, .suspend, .cancel],
            actions: [.start, .pause, .abort], phase: .cancelling
        ),
        Row(
            testDescription: "cancel acts once", events: [.resume, .cancel, .cancel, .resume, .suspend],
            actions: [.start, .abort], phase: .cancelling
        ),
        Row(
            testDescription: "the end is told once", events: [.resume, .finished, .finished, .cancel, .resume, .suspend],
            actions: [.start, .complete], phase: .completed
        ),
        Row(
            testDescription: "a cancelled task completes", events: [.resume, .cancel, .finished],
            actions: [.start, .abort, .complete], phase: .completed
        ),
    ]

    @Test(arguments: rows) func `each sequence of events leads to its actions and phase`(row: Row) {
        var lifecycle = TaskLifecycle()
        let actions = row.events.compactMap { lifecycle.handle($0) }
        #expect(actions == row.actions)
        #expect(lifecycle.phase == row.phase)
    }

    @Test func `any sequence starts at most once, aborts at most once and completes exactly once`() {
        for seed in UInt64(1)...2_000 {
            var random = SeededNumbers(seed: seed)
            var lifecycle = TaskLifecycle()
            var history: [Event] = []
            var counts: [Action: Int] = [:]
            var depth = 1
            func step(_ event: Event) {
                history.append(event)
                if let action = lifecycle.handle(event) { counts[action, default: 0] += 1 }
            }
            for _ in 0..<12 {
                let event: Event = [.resume, .suspend, .cancel, .resume, .suspend, .finished][random.next(below: 6)]
                // A load cannot end before it started, unless it was cancelled.
                if event == .finished, lifecycle.isUnstarted { continue }
                if event == .suspend { depth += 1 }
                if event == .resume { depth = max(0, depth - 1) }
                step(event)
                switch lifecycle.phase {
                case .unstarted(let suspensions), .paused(let suspensions):
                    #expect(suspensions == depth, "seed \(seed): \(history)")
                case .running: #expect(depth == 0, "seed \(seed): \(history)")
                case .cancelling, .completed: break
                }
            }
            step(.cancel)
            step(.finished)
            #expect(lifecycle.isOver, "seed \(seed): \(history)")
            #expect(counts[.complete] == 1, "seed \(seed): \(history)")
            #expect((counts[.start] ?? 0) + (counts[.endUnstarted] ?? 0) == 1, "seed \(seed): \(history)")
            #expect((counts[.abort] ?? 0) <= (counts[.start] ?? 0), "seed \(seed): \(history)")
            #expect((counts[.unpause] ?? 0) <= (counts[.pause] ?? 0), "seed \(seed): \(history)")
        }
    }
}
