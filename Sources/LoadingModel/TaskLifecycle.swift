// SPDX-License-Identifier: Apache-2.0

/// The state machine behind `URLSessionTask.state`: maps `resume`, `suspend` and `cancel` to actions on the load.
///
/// A task begins suspended. Suspensions nest: each needs its own resume, and excess resumes have no effect. The machine ends in
/// ``Phase/completed``, which is final; every path completes exactly once.
///
/// Every event has at most one action, so that ``handle(_:)`` returns an optional and does not allocate.
package struct TaskLifecycle: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// The load has not been submitted; it starts after `suspensions` resumes.
        case unstarted(suspensions: Int)
        /// The load was submitted and is not suspended.
        case running
        /// The load was submitted, and is suspended until `suspensions` resumes.
        case paused(suspensions: Int)
        /// The app cancelled the task, which waits for the load's end.
        case cancelling
        /// The load ended, and the app was or is being notified.
        case completed
    }

    package enum Event: Hashable, Sendable, CaseIterable {
        case resume, suspend, cancel
        /// The load ended, with any result.
        case finished
    }

    package enum Action: Hashable, Sendable {
        /// Submit the load.
        case start
        case pause
        case unpause
        /// Cancel the load, which then reports its end.
        case abort
        /// No load was submitted: end the task immediately as cancelled.
        case endUnstarted
        /// Notify the app. Happens exactly once.
        case complete
    }

    package private(set) var phase: Phase

    package init() { phase = .unstarted(suspensions: 1) }

    package var isOver: Bool { phase == .completed }

    /// Whether the load was never submitted; only then may the task's delegate still be set.
    package var isUnstarted: Bool {
        if case .unstarted = phase { true } else { false }
    }

    package mutating func handle(_ event: Event) -> Action? {
        switch (phase, event) {
        case (.unstarted(let suspensions), .resume):
            guard suspensions <= 1 else {
                phase = .unstarted(suspensions: suspensions - 1)
                return nil
            }
            phase = .running
            return .start
        case (.unstarted(let suspensions), .suspend):
            phase = .unstarted(suspensions: suspensions + 1)
            return nil
        case (.unstarted, .cancel):
            phase = .cancelling
            return .endUnstarted

        case (.running, .suspend):
            phase = .paused(suspensions: 1)
            return .pause
        case (.paused(let suspensions), .suspend):
            phase = .paused(suspensions: suspensions + 1)
            return nil
        case (.paused(let suspensions), .resume):
            guard suspensions <= 1 else {
                phase = .paused(suspensions: suspensions - 1)
                return nil
            }
            phase = .running
            return .unpause
        case (.running, .cancel), (.paused, .cancel):
            phase = .cancelling
            return .abort

        case (.unstarted, .finished), (.running, .finished), (.paused, .finished), (.cancelling, .finished):
            phase = .completed
            return .complete

        case (.running, .resume), (.cancelling, .resume), (.cancelling, .suspend), (.cancelling, .cancel),
            (.completed, _):
            return nil
        }
    }
}
