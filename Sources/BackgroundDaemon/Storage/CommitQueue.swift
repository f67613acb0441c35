//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import SystemThreads

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Calls that wait for the disk, and the thread that commits all of them together.
///
/// While one group is on its way to the disk the next one gathers, so that many callers share one wait for it.
// Sendable because the lock of `monitor` guards the state.
final class CommitQueue: @unchecked Sendable {
    /// What one caller wants changed together.
    struct Call: Sendable {
        let changes: [TransferStore.Change]
        let done: @Sendable (Result<Void, StorageFailure>) -> Void
        let weight: Int
    }

    /// What the thread does with them.
    struct Work: Sendable {
        /// Commits them, and says of each what came of it.
        let commit: @Sendable ([Call]) -> [Result<Void, StorageFailure>]
        /// Tidies up a little; whether there is more to tidy.
        let tidy: @Sendable () -> Bool
        /// Called once, at the end.
        let end: @Sendable () -> Void
    }

    static let limit = (changes: 100_000, bytes: 64 << 20)

    private struct State {
        var waiting: [Call] = []
        /// Of what waits and what is being committed.
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
        // The thread keeps the queue until it is closed.
        guard Threads.start("transfer store", { self.live(work) }) != nil else {
            throw .failed("The system has no thread for the store of background transfers.")
        }
    }

    /// Takes a call, or says why not.
    func add(_ call: Call) -> StorageFailure? {
        monitor.locked {
            guard !state.isClosing else { return .closed }
            // One alone is taken whatever its size.
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

    /// Commits what waits, and takes no more; returns when the thread has ended, unless that is who calls.
    func close(andWait mustWait: Bool) {
        monitor.locked {
            state.isClosing = true
            monitor.wakeAll()
            if let thread = state.thread, pthread_equal(thread, pthread_self()) != 0 { return }
            while mustWait, !state.hasEnded { monitor.wait(until: nil) }
        }
    }

    private enum Next { case commit([Call]), tidy, end }

    private func live(_ work: Work) {
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
