// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Synchronization
import URLLoading

/// Limits one direction of a transfer to `--limit-rate`.
///
/// Each transferred byte costs time: callers learn how long to wait before the next bytes.
final class RateLimiter: Sendable {
    private struct State {
        var next = ContinuousClock.now
        var isHolding = false
    }

    private let rate: Double
    private let state = Mutex(State())

    /// - Parameter rate: The limit in bytes per second.
    init(_ rate: Int64) { self.rate = Double(max(1, rate)) }

    /// The maximum number of bytes per read; it is small, so that pauses are short.
    var piece: Int { Int(min(max(rate / 10, 1), 65_536)) }

    /// Counts transferred bytes, and returns the seconds to wait before the next ones.
    func wait(after count: Int) -> Double {
        state.withLock { state in
            // Unused time is not saved up.
            state.next = max(state.next, .now).advanced(by: .seconds(Double(count) / rate))
            return ContinuousClock.now.duration(to: state.next) / .seconds(1)
        }
    }

    /// Counts bytes that a task received, and suspends it for the time that they cost.
    func hold(_ task: URLSessionTask, after count: Int) {
        let wait = wait(after: count)
        let isHeld = state.withLock { state in
            guard wait > 0.005, !state.isHolding else { return true }
            state.isHolding = true
            return false
        }
        guard !isHeld else { return }
        task.suspend()
        release(task, after: wait)
    }

    private func release(_ task: URLSessionTask, after seconds: Double) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [self] in
            // More data may have been in flight when the task was suspended.
            let rest = state.withLock { state in
                let rest = ContinuousClock.now.duration(to: state.next) / .seconds(1)
                state.isHolding = rest > 0
                return rest
            }
            if rest > 0 { release(task, after: rest) } else { task.resume() }
        }
    }
}

/// A request body that is read no faster than `--limit-rate` permits.
final class RateLimitedStream: InputStream {
    private let source: InputStream
    private let pace: RateLimiter

    init(_ source: InputStream, _ pace: RateLimiter) {
        self.source = source
        self.pace = pace
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { source.hasBytesAvailable }
    override var streamStatus: Stream.Status { source.streamStatus }
    override var streamError: (any Error)? { source.streamError }
    override func open() { source.open() }
    override func close() { source.close() }

    /// Reads bytes, and blocks for the time that they cost.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let count = source.read(buffer, maxLength: min(maxLength, pace.piece))
        if count > 0 { Thread.sleep(forTimeInterval: min(pace.wait(after: count), 3600)) }
        return count
    }
}
