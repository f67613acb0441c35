// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Retains the tasks of a session, and detects when the last task has ended after the session was invalidated.
///
/// A session retains each task from creation to end, even if the app neither resumes nor retains the task. An app can therefore
/// resume the task in `weak var task = session.dataTask(with: url)` on the next line. A task that is never resumed remains until it
/// is cancelled.
final class TaskRegistry: Sendable {
    private enum Intake {
        case open
        /// No new tasks are accepted; existing ones continue.
        case closed
        /// No new tasks are accepted; existing ones are being cancelled.
        case abandoned
    }

    private struct State {
        var tasks: [Int: URLSessionTask] = [:]
        var intake = Intake.open
        /// The tasks in the order of their identifiers.
        var sorted: [URLSessionTask] { tasks.values.sorted { $0.identity < $1.identity } }
        /// Called once, when the registry is closed and empty.
        var whenEmpty: (@Sendable () -> Void)?
        /// End the waits of callers that are between two tasks, when the registry is closed.
        var waits: [Int: @Sendable () -> Void] = [:]

        mutating func close(_ intake: Intake, _ whenEmpty: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
            let isFirst = self.intake == .open
            if self.intake != .abandoned { self.intake = intake }
            guard isFirst else { return nil }
            self.whenEmpty = whenEmpty
            return takeEmptyHandler()
        }

        mutating func takeEmptyHandler() -> (@Sendable () -> Void)? {
            guard intake != .open, tasks.isEmpty else { return nil }
            defer { whenEmpty = nil }
            return whenEmpty
        }

        mutating func takeWaits() -> [@Sendable () -> Void] {
            defer { waits = [:] }
            return Array(waits.values)
        }
    }

    private let state = Mutex(State())
    private let lastIdentifier = Atomic<Int>(0)
    private let nextWait = Atomic<Int>(0)

    /// Numbers new tasks after the last task of an earlier session that had the same session identifier.
    func continueNumbering(after last: Int) {
        lastIdentifier.store(last, ordering: .relaxed)
    }

    func nextIdentifier() -> Int { lastIdentifier.add(1, ordering: .relaxed).newValue }

    /// Adds a new, suspended task.
    ///
    /// Ignored if the registry is closed.
    func add(_ task: URLSessionTask) {
        state.withLock { if $0.intake == .open { $0.tasks[task.identity] = task } }
    }

    /// Adds a task that is about to start.
    ///
    /// Returns false if the task must not start, because the registry is closed and does not contain the task.
    func start(_ task: URLSessionTask) -> Bool {
        state.withLock { state in
            guard state.intake == .open else { return state.tasks[task.identity] != nil }
            state.tasks[task.identity] = task
            return true
        }
    }

    /// Replaces a task by the task that takes over its load and identifier.
    func replace(by task: URLSessionTask) {
        state.withLock { $0.tasks[task.identity] = task }
    }

    /// Removes a task that has completed and delivered its result.
    func forget(_ identifier: Int) {
        // The task, and with it the app's closures that it retains, is released outside the lock.
        let (task, emptyHandler) = state.withLock { ($0.tasks.removeValue(forKey: identifier), $0.takeEmptyHandler()) }
        withExtendedLifetime(task) { emptyHandler?() }
    }

    /// The tasks that have not completed, in the order of their creation; empty after `abandon(whenEmpty:)`.
    var tasks: [URLSessionTask] {
        let all = state.withLock { $0.intake == .abandoned ? [] : $0.sorted }
        return all.filter { $0.state != .completed }
    }

    /// Whether no new tasks are accepted.
    var isClosed: Bool { state.withLock { $0.intake != .open } }

    /// Adds a wait, which `end` ends when the registry is closed.
    ///
    /// Returns the argument for ``removeWait(_:)``; nil if the registry is closed already.
    func addWait(_ end: @escaping @Sendable () -> Void) -> Int? {
        let number = nextWait.add(1, ordering: .relaxed).newValue
        return state.withLock { state in
            guard state.intake == .open else { return nil }
            state.waits[number] = end
            return number
        }
    }

    func removeWait(_ number: Int) { state.withLock { $0.waits[number] = nil } }

    /// Closes the registry, and calls `whenEmpty` as soon as the registry is empty: immediately if there are no tasks.
    ///
    /// If this method is called several times, only the first closure is called.
    func close(whenEmpty: @escaping @Sendable () -> Void) {
        let (emptyHandler, waits) = state.withLock { ($0.close(.closed, whenEmpty), $0.takeWaits()) }
        for end in waits { end() }
        emptyHandler?()
    }

    /// Closes the registry like `close(whenEmpty:)`, and returns the existing tasks for the caller to cancel; `tasks` no longer
    /// lists them.
    func abandon(whenEmpty: @escaping @Sendable () -> Void) -> [URLSessionTask] {
        let (tasks, emptyHandler, waits) = state.withLock { state in
            let tasks = state.sorted
            return (tasks, state.close(.abandoned, whenEmpty), state.takeWaits())
        }
        for end in waits { end() }
        emptyHandler?()
        return tasks
    }
}
