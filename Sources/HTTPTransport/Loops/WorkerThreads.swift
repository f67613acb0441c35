// SPDX-License-Identifier: Apache-2.0

import NIOCore
import SystemThreads

/// Threads for blocking work.
///
/// If no thread is idle, new work starts another thread, up to a limit. A thread ends after a period without work.
///
/// Work starts in FIFO order. An instance must live as long as the process: its threads use it, and the runtime references
/// executors unowned.
// Sendable because the lock of `monitor` guards the state.
package final class WorkerThreads: @unchecked Sendable {
    package typealias Work = @Sendable () -> Void

    private struct State {
        var waiting = CircularBuffer<Work>()
        /// The number of threads that are waiting for work; some may have been woken for items in `waiting`.
        var idleCount = 0
        var count = 0
    }

    /// The threads for computations that take milliseconds and wait for nothing: evaluating certificates, creating TLS contexts.
    package static let computing = WorkerThreads("url-computing", maximumCount: max(2, System.coreCount))

    /// How long a thread waits for more work, in seconds: long enough that no threads are restarted in busy times.
    private static let patience = 5.0

    private let name: String
    private let maximumCount: Int
    private let monitor = Monitor()
    /// Guarded by the lock of `monitor`.
    private var state = State()

    /// - Parameters:
    ///   - name: The threads' name in system tools; at most 15 bytes.
    ///   - maximumCount: The maximum number of threads.
    package init(_ name: String, maximumCount: Int) {
        self.name = name
        self.maximumCount = maximumCount
    }

    /// Runs work on one of the threads: at once if a thread is idle or can be started, and otherwise after earlier work.
    ///
    /// - Returns: false if there is no thread and the system cannot create one; the work is not run then.
    package func run(_ work: @escaping Work) -> Bool {
        let (isTaken, isForIdle) = monitor.locked { () -> (Bool, Bool) in
            state.waiting.append(work)
            if state.idleCount >= state.waiting.count { return (true, true) }
            if state.count < maximumCount, Threads.start(name, { self.work() }) != nil {
                state.count += 1
                return (true, false)
            }
            if state.count > 0 { return (true, false) }
            _ = state.waiting.popLast()
            return (false, false)
        }
        // The thread is woken outside the lock, because a thread woken inside it would only have to wait for the lock.
        if isForIdle { monitor.wakeOne() }
        return isTaken
    }

    /// Runs work on a thread until the thread has been idle for too long.
    private func work() {
        while let work = next() { work() }
    }

    private func next() -> Work? {
        monitor.locked {
            if let work = state.waiting.popFirst() { return work }
            state.idleCount += 1
            defer { state.idleCount -= 1 }
            while true {
                let wasWoken = monitor.wait(until: Monitor.clock + Self.patience)
                if let work = state.waiting.popFirst() { return work }
                if wasWoken { continue }
                state.count -= 1
                return nil
            }
        }
    }
}

extension WorkerThreads: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let work: Work = { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        // If no thread is available, run the work here: slow is better than never.
        if !run(work) { work() }
    }
}
