//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Decides what a task's `resume`, `suspend` and `cancel` mean for its load, and which state the app sees: the machine behind
/// `URLSessionTask.state`.
///
/// A task begins suspended. Suspensions nest: as many resumptions are needed, and resumptions beyond them have no effect. The
/// machine ends in ``Phase/completed``, from which nothing leads away; each way through it completes exactly once.
///
/// Every event has at most one consequence, so that ``handle(_:)`` returns an optional and costs no allocation.
package struct TaskLifecycle: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// Not ordered yet; waits for as many resumptions.
        case unstarted(suspensions: Int)
        /// Ordered, and not held back.
        case running
        /// Ordered, and held back until as many resumptions came.
        case paused(suspensions: Int)
        /// The app gave up; the load's end is awaited.
        case cancelling
        /// The load ended, and the app was or is being told.
        case completed
    }

    package enum Event: Hashable, Sendable, CaseIterable {
        case resume, suspend, cancel
        /// The load ended, however it did.
        case finished
    }

    package enum Action: Hashable, Sendable {
        /// Order the load.
        case start
        case pause
        case unpause
        /// Tell the load that it is given up; it answers by ending.
        case abort
        /// There is no load to tell: end the task here and now, as cancelled.
        case endUnstarted
        /// Let the app know. Comes exactly once.
        case complete
    }

    package private(set) var phase: Phase

    package init() { phase = .unstarted(suspensions: 1) }

    package var isOver: Bool { phase == .completed }

    /// Whether the load was never ordered; only then may the task's delegate still be set.
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
