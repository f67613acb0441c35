//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Synchronization

/// Knows the live tasks of a session, and when the last is gone after the session was invalidated.
///
/// Tasks that were never started are held weakly: dropping one drops it. Started ones are held until they completed.
final class TaskRegistry: Sendable {
    private struct WeakTask {
        weak var task: URLSessionTask?
    }

    private struct State {
        var started: [Int: URLSessionTask] = [:]
        var unstarted: [Int: WeakTask] = [:]
        var isClosed = false
        /// Called once, when the registry is closed and empty.
        var whenEmpty: (@Sendable () -> Void)?

        mutating func takeFarewell() -> (@Sendable () -> Void)? {
            guard isClosed, started.isEmpty, unstarted.isEmpty else { return nil }
            defer { whenEmpty = nil }
            return whenEmpty
        }
    }

    private let state = Mutex(State())
    private let lastIdentifier = Atomic<Int>(0)

    func nextIdentifier() -> Int { lastIdentifier.add(1, ordering: .relaxed).newValue }

    /// A task exists, suspended.
    ///
    /// Not kept when no tasks are taken any more.
    func add(unstarted task: URLSessionTask, identifier: Int) {
        state.withLock { if !$0.isClosed { $0.unstarted[identifier] = WeakTask(task: task) } }
    }

    /// Holds a task from now on.
    ///
    /// Returns false when no tasks are taken any more and the task was not known before.
    func start(_ task: URLSessionTask) -> Bool {
        let identifier = task.identity
        return state.withLock { state in
            if state.unstarted.isEmpty || state.unstarted.removeValue(forKey: identifier) == nil {
                guard !state.isClosed else { return false }
            }
            state.started[identifier] = task
            return true
        }
    }

    /// Another task goes on with a load.
    func replace(_ identifier: Int, by task: URLSessionTask) {
        state.withLock { $0.started[identifier] = task }
    }

    /// A task completed and everybody knows, or went away unstarted.
    func forget(_ identifier: Int) {
        // The task is released only after the lock: its `deinit` may come back here.
        let (task, farewell) = state.withLock { state in
            let task = state.started.removeValue(forKey: identifier)
            if task == nil, !state.unstarted.isEmpty { state.unstarted.removeValue(forKey: identifier) }
            return (task, state.takeFarewell())
        }
        withExtendedLifetime(task) { farewell?() }
    }

    /// Every task that has not completed, in the order of creation.
    var tasks: [URLSessionTask] {
        let all = state.withLock { state in
            state.started.map { ($0.key, $0.value) }
                + state.unstarted.compactMap { entry in
                    entry.value.task.map { (entry.key, $0) }
                }
        }
        return all.sorted { $0.0 < $1.0 }.map(\.1).filter { $0.state != .completed }
    }

    /// Whether no more tasks are taken.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Takes no more tasks, and calls back once the last is gone: at once if there is none.
    ///
    /// Later calls have no effect.
    func close(whenEmpty: @escaping @Sendable () -> Void) {
        let farewell = state.withLock { state in
            guard !state.isClosed else { return nil as (@Sendable () -> Void)? }
            state.isClosed = true
            state.whenEmpty = whenEmpty
            return state.takeFarewell()
        }
        farewell?()
    }
}
