// SPDX-License-Identifier: Apache-2.0

import DequeModule
import LibC
import SystemThreads

/// The thread of a ``DiskQueue`` lane and its queued work.
///
/// The thread ends after the worker is closed and all work is done.
// Sendable because the lock of `monitor` guards the state.
final class DiskWorker: @unchecked Sendable {
    typealias Work = @Sendable () -> Void

    private struct State {
        var ready = Deque<Work>()
        var later: [(due: Double, work: Work)] = []
        var thread: pthread_t?
        /// The thread of a caller that runs the work because no thread could be started.
        var substitute: pthread_t?
        /// The start of the current work item.
        var busySince: Double?
        var isClosed = false
        /// Set while the process exits: delayed work that is added from then on does not run.
        var isDraining = false
    }

    private let monitor = Monitor()
    private let mayStart: Bool
    /// Guarded by the lock of `monitor`.
    private var state = State()

    /// Without `mayStart`, the worker behaves as if the system could not start a thread.
    init(mayStart: Bool) { self.mayStart = mayStart }

    var isCurrent: Bool {
        monitor.locked {
            [state.thread, state.substitute].contains { $0.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
        }
    }

    func add(_ work: @escaping Work, delay: Double) {
        let hasThread = monitor.locked {
            if delay > 0 {
                state.later.append((Monitor.clock + min(delay, 86_400), work))
            } else {
                state.ready.append(work)
            }
            if state.thread == nil { state.thread = start() }
            monitor.wakeAll()
            return state.thread != nil
        }
        // If no thread can be started, the caller runs the work.
        if !hasThread { substitute() }
    }

    func close() {
        monitor.locked {
            state.isClosed = true
            monitor.wakeAll()
        }
    }

    func isBusy(longerThan seconds: Double) -> Bool {
        monitor.locked { state.busySince.map { Monitor.clock - $0 > seconds } ?? false }
    }

    // MARK: At the end

    /// Makes delayed work due.
    func beginDraining() {
        monitor.locked {
            state.isDraining = true
            state.ready.append(contentsOf: state.later.map(\.work))
            state.later = []
            if state.thread == nil, !state.ready.isEmpty { state.thread = start() }
            monitor.wakeAll()
        }
    }

    /// Runs the queued work, or waits for it; returns whether there was any.
    func finish(until deadline: Double) -> Bool {
        if isCurrent { return runReady() }
        if !monitor.locked({ state.thread != nil }) { substitute() }
        return monitor.locked {
            guard !state.ready.isEmpty || state.busySince != nil else { return false }
            while !state.ready.isEmpty || state.busySince != nil, Monitor.clock < deadline { monitor.wait(until: deadline) }
            return true
        }
    }

    func endDraining() {
        monitor.locked {
            state.isDraining = false
            monitor.wakeAll()
        }
    }

    private func start() -> pthread_t? { mayStart ? Threads.start("URLLoading disk") { self.work() } : nil }

    /// The thread's main loop.
    private func work() {
        while let work = next() {
            work()
        }
    }

    private func next() -> Work? {
        monitor.locked {
            while state.substitute != nil { monitor.wait(until: nil) }
            state.busySince = nil
            while true {
                moveDue()
                if let work = state.ready.popFirst() {
                    state.busySince = Monitor.clock
                    return work
                }
                monitor.wakeAll()
                if state.isClosed, state.later.isEmpty { return nil }
                monitor.wait(until: state.isDraining ? nil : state.later.map(\.due).min())
            }
        }
    }

    private func moveDue() {
        guard !state.later.isEmpty, !state.isDraining else { return }
        let now = Monitor.clock
        // A closed queue runs delayed work immediately.
        let isDue = { [isClosed = state.isClosed] (due: Double) in due <= now || isClosed }
        state.ready.append(contentsOf: state.later.filter { isDue($0.due) }.map(\.work))
        state.later.removeAll { isDue($0.due) }
    }

    /// Runs work on the caller's thread until the queue is empty or a thread is available.
    ///
    /// Only one caller does so at a time, to keep the order.
    private func substitute() {
        let isFirst = monitor.locked {
            guard state.substitute == nil, state.thread == nil else { return false }
            state.substitute = pthread_self()
            return true
        }
        guard isFirst else { return }
        while true {
            let work = monitor.locked {
                moveDue()
                let work = state.thread == nil ? state.ready.popFirst() : nil
                state.busySince = work.map { _ in Monitor.clock }
                if work == nil {
                    state.substitute = nil
                    monitor.wakeAll()
                }
                return work
            }
            guard let work else { return }
            work()
        }
    }

    private func runReady() -> Bool {
        var hasRun = false
        while let work = monitor.locked({ state.ready.popFirst() }) {
            work()
            hasRun = true
        }
        return hasRun
    }
}
