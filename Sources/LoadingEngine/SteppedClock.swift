// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Synchronization

/// A clock that only a test advances.
///
/// A session uses it for timeouts, pauses and stores instead of the system's clocks.
package final class SteppedClock: Sendable {
    /// Called for each step with the clock's time in nanoseconds since the start.
    ///
    /// Must keep the step until all due work is done. Returns false if the follower follows no longer.
    package typealias Follower = @Sendable (_ elapsed: Int64, _ step: Step) -> Bool

    /// A step of the clock, which is done when nothing keeps it any more.
    package final class Step: Sendable {
        private let done: @Sendable () -> Void

        fileprivate init(done: @escaping @Sendable () -> Void) { self.done = done }

        deinit { done() }
    }

    private struct Wait {
        let end: Int64
        let isTimeout: Bool
        let wake: @Sendable () -> Void
    }

    private struct Watcher {
        let count: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var elapsed: Int64 = 0
        var lastNumber = 0
        var followers: [Int: Follower] = [:]
        var waits: [Int: Wait] = [:]
        var watchers: [Int: Watcher] = [:]

        var sleeperCount: Int { waits.values.count { !$0.isTimeout } }

        mutating func number() -> Int {
            lastNumber += 1
            return lastNumber
        }

        mutating func satisfied() -> [Watcher] {
            let count = sleeperCount
            let satisfied = watchers.filter { $0.value.count <= count }
            for number in satisfied.keys { watchers[number] = nil }
            return Array(satisfied.values)
        }
    }

    /// When the clock started, in seconds since the reference date of `Date`.
    private let start: Double
    private let state = Mutex(State())

    package init(start: Double) { self.start = start }

    /// Nanoseconds since the start.
    package var elapsed: Int64 { state.withLock(\.elapsed) }

    /// The time of day, in seconds since the reference date of `Date`.
    package var seconds: Double { start + Double(elapsed) / 1e9 }

    /// Advances the time.
    ///
    /// Returns when all due work is done and all due waits have been woken.
    package func step(by nanoseconds: Int64) async {
        let (elapsed, followers) = state.withLock { state in
            let (sum, overflow) = state.elapsed.addingReportingOverflow(max(0, nanoseconds))
            state.elapsed = overflow ? .max : sum
            return (state.elapsed, state.followers)
        }
        // Followers first: the step must not count as idle time of a paused load.
        await withCheckedContinuation { continuation in
            let step = Step { continuation.resume() }
            for (number, follower) in followers where !follower(elapsed, step) {
                state.withLock { $0.followers[number] = nil }
            }
        }
        let due = state.withLock { state in
            let due = state.waits.filter { $0.value.end <= elapsed }
            for number in due.keys { state.waits[number] = nil }
            return due.values.sorted { $0.end < $1.end }
        }
        for wait in due { wait.wake() }
    }

    // MARK: Followers

    /// Adds a follower, which is called for every following step.
    package func add(_ follower: @escaping Follower) { state.withLock { $0.followers[$0.number()] = follower } }

    // MARK: Waits

    /// Calls `wake` when the clock reaches `end`, or immediately if that time has passed.
    ///
    /// - Returns: The argument for ``cancel(_:)``.
    package func wait(until end: Int64, isTimeout: Bool = false, _ wake: @escaping @Sendable () -> Void) -> Int? {
        let (number, satisfied) = state.withLock { state -> (Int?, [Watcher]) in
            guard state.elapsed < end else { return (nil, []) }
            let number = state.number()
            state.waits[number] = Wait(end: end, isTimeout: isTimeout, wake: wake)
            return (number, state.satisfied())
        }
        if number == nil { wake() }
        for watcher in satisfied { watcher.continuation.resume() }
        return number
    }

    /// Cancels a wait.
    ///
    /// - Returns: True if the wait was still pending.
    @discardableResult
    package func cancel(_ number: Int?) -> Bool {
        guard let number else { return false }
        return state.withLock { $0.waits.removeValue(forKey: number) != nil }
    }

    /// Waits a number of seconds by this clock.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled first.
    package func sleep(for seconds: Double, isTimeout: Bool = false) async throws {
        try await sleep(until: elapsed.addingSaturating(Int64(min(max(0, seconds), 1e9) * 1e9)), isTimeout: isTimeout)
    }

    /// Waits until the clock reaches a time, in nanoseconds since the start.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled first.
    package func sleep(until end: Int64, isTimeout: Bool = false) async throws {
        let sleeper = Sleeper()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                sleeper.begin(continuation)
                let number = wait(until: end, isTimeout: isTimeout) { sleeper.end() }
                sleeper.note(number, of: self)
            }
        } onCancel: {
            sleeper.cancel()
        }
        try Task.checkCancellation()
    }

    /// Waits until at least `count` waits for this clock are pending at the same time, not counting timeouts.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled first.
    package func waits(atLeast count: Int) async throws {
        let number = state.withLock { $0.number() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.sleeperCount < count, !Task.isCancelled else { return true }
                    state.watchers[number] = Watcher(count: count, continuation: continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.watchers.removeValue(forKey: number) }?.continuation.resume()
        }
        try Task.checkCancellation()
    }
}

/// A Swift task that sleeps by a ``SteppedClock``.
///
/// It is woken once: by the clock, or by cancellation.
private final class Sleeper: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Void, Never>?
        var wait: (number: Int, clock: SteppedClock)?
        var isOver = false
    }

    private let state = Mutex(State())

    func begin(_ continuation: CheckedContinuation<Void, Never>) {
        let isOver = state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return state.isOver
        }
        if isOver { continuation.resume() }
    }

    func note(_ number: Int?, of clock: SteppedClock) {
        guard let number else { return }
        let isOver = state.withLock { state in
            if !state.isOver { state.wait = (number, clock) }
            return state.isOver
        }
        if isOver { clock.cancel(number) }
    }

    func end() {
        let continuation = state.withLock { state in
            defer { state = State(isOver: true) }
            return state.continuation
        }
        continuation?.resume()
    }

    func cancel() {
        let (continuation, wait) = state.withLock { state in
            defer { state = State(isOver: true) }
            return (state.continuation, state.wait)
        }
        wait?.clock.cancel(wait?.number)
        continuation?.resume()
    }
}
