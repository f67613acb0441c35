// SPDX-License-Identifier: Apache-2.0

import LibC
import SystemThreads

/// Calls that wait for the disk, and the thread that commits them together.
///
/// While one group of calls is being committed, the next group is collected, so that many callers share one wait.
// Sendable because the lock of `monitor` guards the state.
final class CommitQueue: @unchecked Sendable {
    /// The changes that one caller makes together.
    struct Call: Sendable {
        let changes: [TransferStore.Change]
        let done: @Sendable (Result<Void, StorageFailure>) -> Void
        let weight: Int
    }

    /// The work of the thread.
    struct Work: Sendable {
        /// Commits the calls, and returns the result of each.
        let commit: @Sendable ([Call]) -> [Result<Void, StorageFailure>]
        /// Cleans up a little; returns whether there is more to clean up.
        let tidy: @Sendable () -> Bool
        /// Called once, at the end.
        let end: @Sendable () -> Void
    }

    static let limit = (changes: 100_000, bytes: 64 << 20)

    private struct State {
        var waiting: [Call] = []
        /// The totals of the queued calls and the calls that are being committed.
        var changes = 0
        var bytes = 0
        var mustTidy = true
        var isClosing = false
        var hasEnded = false
        var thread: pthread_t?
    }

    private let monitor = Monitor()
    /// Guarded by the lock of `monitor`.
    private var state = State()

    func start(_ work: Work) throws(StorageFailure) {
        // The thread retains the queue until it is closed.
        guard Threads.start("transfer store", { self.run(work) }) != nil else {
            throw .failed("The system cannot create a thread for the store of background transfers.")
        }
    }

    /// Adds a call, or returns why it cannot be added.
    func add(_ call: Call) -> StorageFailure? {
        monitor.locked {
            guard !state.isClosing else { return .closed }
            // A single call is accepted whatever its size.
            let fits =
                state.changes + call.changes.count <= Self.limit.changes && state.bytes + call.weight <= Self.limit.bytes
            guard fits || state.changes == 0 else { return .busy }
            state.waiting.append(call)
            state.changes += call.changes.count
            state.bytes += call.weight
            monitor.wakeAll()
            return nil
        }
    }

    /// Commits the queued calls, and accepts no more; with `mustWait`, waits for the thread's end, unless called on that thread.
    func close(andWait mustWait: Bool) {
        monitor.locked {
            state.isClosing = true
            monitor.wakeAll()
            if let thread = state.thread, pthread_equal(thread, pthread_self()) != 0 { return }
            while mustWait, !state.hasEnded { monitor.wait(until: nil) }
        }
    }

    private enum Next { case commit([Call]), tidy, end }

    private func run(_ work: Work) {
        monitor.locked { state.thread = pthread_self() }
        while true {
            switch next() {
            case .commit(let calls):
                let results = work.commit(calls)
                monitor.locked {
                    for call in calls {
                        state.changes -= call.changes.count
                        state.bytes -= call.weight
                    }
                    state.mustTidy = true
                }
                for (call, result) in zip(calls, results) { call.done(result) }
            case .tidy:
                let hasMore = work.tidy()
                monitor.locked { state.mustTidy = hasMore }
            case .end:
                work.end()
                monitor.locked {
                    state.hasEnded = true
                    monitor.wakeAll()
                }
                return
            }
        }
    }

    private func next() -> Next {
        monitor.locked {
            while true {
                if !state.waiting.isEmpty {
                    defer { state.waiting = [] }
                    return .commit(state.waiting)
                }
                if state.isClosing { return .end }
                if state.mustTidy { return .tidy }
                monitor.wait(until: nil)
            }
        }
    }
}
