//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Synchronization

/// Holds the tasks of a session, and knows when the last is gone after the session was invalidated.
///
/// A task is its session's from when it is made until it ended, whether it was resumed or not, and whether or not the app keeps it:
/// `weak var task = session.dataTask(with: url)` can be resumed in the next line. One that is never resumed stays until it is cancelled.
final class TaskRegistry: Sendable {
    private enum Intake {
        case open
        /// No more tasks are taken, and those there are go on.
        case closed
        /// No more tasks are taken, and those there were are being cancelled.
        case abandoned
    }

    private struct State {
        var tasks: [Int: URLSessionTask] = [:]
        var intake = Intake.open
        /// In the order of their numbers.
        var sorted: [URLSessionTask] { tasks.values.sorted { $0.identity < $1.identity } }
        /// Called once, when the registry takes no more tasks and is empty.
        var whenEmpty: (@Sendable () -> Void)?

        mutating func close(_ intake: Intake, _ whenEmpty: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
            let isFirst = self.intake == .open
            if self.intake != .abandoned { self.intake = intake }
            guard isFirst else { return nil }
            self.whenEmpty = whenEmpty
            return takeFarewell()
        }

        mutating func takeFarewell() -> (@Sendable () -> Void)? {
            guard intake != .open, tasks.isEmpty else { return nil }
            defer { whenEmpty = nil }
            return whenEmpty
        }
    }

    private let state = Mutex(State())
    private let lastIdentifier = Atomic<Int>(0)

    /// Has numbers begin behind one that an earlier session of the same identifier gave.
    func number(after last: Int) {
        lastIdentifier.store(last, ordering: .relaxed)
    }

    func nextIdentifier() -> Int { lastIdentifier.add(1, ordering: .relaxed).newValue }

    /// A task exists, suspended.
    ///
    /// Not kept when no tasks are taken any more.
    func add(_ task: URLSessionTask) {
        state.withLock { if $0.intake == .open { $0.tasks[task.identity] = task } }
    }

    /// A task begins.
    ///
    /// Returns false when no tasks are taken any more and the task was not known before.
    func start(_ task: URLSessionTask) -> Bool {
        state.withLock { state in
            guard state.intake == .open else { return state.tasks[task.identity] != nil }
            state.tasks[task.identity] = task
            return true
        }
    }

    /// A task takes over the load, and the number, of another.
    func replace(by task: URLSessionTask) {
        state.withLock { $0.tasks[task.identity] = task }
    }

    /// A task completed and everybody knows.
    func forget(_ identifier: Int) {
        // The task is released only after the lock, as are the closures of the app's that it holds.
        let (task, farewell) = state.withLock { ($0.tasks.removeValue(forKey: identifier), $0.takeFarewell()) }
        withExtendedLifetime(task) { farewell?() }
    }

    /// Every task that has not completed, in the order of creation; none once all were given up.
    var tasks: [URLSessionTask] {
        let all = state.withLock { $0.intake == .abandoned ? [] : $0.sorted }
        return all.filter { $0.state != .completed }
    }

    /// Whether no more tasks are taken.
    var isClosed: Bool { state.withLock { $0.intake != .open } }

    /// Takes no more tasks, and calls back once the last is gone: at once if there is none.
    ///
    /// Of several calls only the first is called back.
    func close(whenEmpty: @escaping @Sendable () -> Void) {
        let farewell = state.withLock { $0.close(.closed, whenEmpty) }
        farewell?()
    }

    /// The same, and hands over the tasks there are, to be cancelled; they are listed no more.
    func abandon(whenEmpty: @escaping @Sendable () -> Void) -> [URLSessionTask] {
        let (tasks, farewell) = state.withLock { state in
            let tasks = state.sorted
            return (tasks, state.close(.abandoned, whenEmpty))
        }
        farewell?()
        return tasks
    }
}
