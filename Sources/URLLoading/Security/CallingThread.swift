// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Synchronization

/// Runs asynchronous work to completion on the calling thread, for functions that are synchronous in Apple's API.
///
/// The work runs on no other thread, so it completes even if calls of ``wait(for:)`` block every thread of the cooperative pool. The
/// work must not wait for an actor on which the caller runs.
final class CallingThread: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
    }

    private final class Outcome<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    private let state = Mutex(State())
    /// Counts the queued jobs.
    private let arrivals = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        arrivals.signal()
    }

    static func wait<Value: Sendable>(for work: @escaping @Sendable () async -> Value) -> Value {
        let thread = CallingThread()
        let outcome = Outcome<Value>()
        Task(executorPreference: thread) {
            let value = await work()
            outcome.value.withLock { $0 = value }
        }
        while true {
            thread.runNext()
            if let value = outcome.value.withLock({ $0 }) { return value }
        }
    }

    private func runNext() {
        arrivals.wait()
        guard let job = state.withLock({ $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }) else { return }
        job.runSynchronously(on: asUnownedTaskExecutor())
    }
}
