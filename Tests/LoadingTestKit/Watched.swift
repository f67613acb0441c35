// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A value that tests can wait for: each change resumes the waiters whose condition has become true.
///
/// Waiting does not poll.
package final class Watched<Value: Sendable>: Sendable {
    private struct Waiter {
        /// Resumes the waiter if the value meets its condition; returns whether it did.
        var offer: @Sendable (Value) -> Bool
        var cancel: @Sendable () -> Void
    }

    private struct State {
        var value: Value
        var waiters: [Int: Waiter] = [:]
        var cancelled: Set<Int> = []
        var nextID = 0
    }

    private let state: Mutex<State>

    package init(_ value: Value) { state = Mutex(State(value: value)) }

    package func read<Result: Sendable>(_ body: (Value) -> Result) -> Result {
        state.withLock { body($0.value) }
    }

    @discardableResult
    package func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state.value)
            if !state.waiters.isEmpty {
                for (id, waiter) in state.waiters where waiter.offer(state.value) { state.waiters[id] = nil }
            }
            return result
        }
    }

    /// Waits until `pick` returns a value.
    ///
    /// Throws `CancellationError` when the task is cancelled, for instance by a time limit.
    package func value<Found: Sendable>(where pick: @escaping @Sendable (Value) -> Found?) async throws -> Found {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Waiter(
                    offer: { value in
                        guard let found = pick(value) else { return false }
                        continuation.resume(returning: found)
                        return true
                    },
                    cancel: { continuation.resume(throwing: CancellationError()) }
                )
                state.withLock { state in
                    if state.cancelled.remove(id) != nil { return waiter.cancel() }
                    if !waiter.offer(state.value) { state.waiters[id] = waiter }
                }
            }
        } onCancel: {
            state.withLock { state in
                guard let waiter = state.waiters.removeValue(forKey: id) else {
                    state.cancelled.insert(id)
                    return
                }
                waiter.cancel()
            }
        }
    }
}
