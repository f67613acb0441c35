//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Dispatch
import Foundation
import Synchronization
import URLLoading

/// Holds one direction of a transfer to `--limit-rate`.
///
/// What was moved is paid for by time: whoever moves bytes is told how long to wait before the next ones.
final class Pace: Sendable {
    private struct State {
        var next = ContinuousClock.now
        var isHolding = false
    }

    private let rate: Double
    private let state = Mutex(State())

    /// - Parameter rate: Bytes in a second.
    init(_ rate: Int64) { self.rate = Double(max(1, rate)) }

    /// The most bytes to move in one piece, so that no pause is long.
    var piece: Int { Int(min(max(rate / 10, 1), 65_536)) }

    /// Notes bytes that were moved, and says the seconds until the next may be.
    func wait(after count: Int) -> Double {
        state.withLock { state in
            // A pause that was not used is not made up for.
            state.next = max(state.next, .now).advanced(by: .seconds(Double(count) / rate))
            return ContinuousClock.now.duration(to: state.next) / .seconds(1)
        }
    }

    /// Notes bytes that a task received, and has it receive no more until they are paid for.
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
            // More may have been under way when it was held.
            let rest = state.withLock { state in
                let rest = ContinuousClock.now.duration(to: state.next) / .seconds(1)
                state.isHolding = rest > 0
                return rest
            }
            if rest > 0 { release(task, after: rest) } else { task.resume() }
        }
    }
}

/// A body that is read no faster than `--limit-rate` lets it be sent.
final class PacedStream: InputStream {
    private let source: InputStream
    private let pace: Pace

    init(_ source: InputStream, _ pace: Pace) {
        self.source = source
        self.pace = pace
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { source.hasBytesAvailable }
    override var streamStatus: Stream.Status { source.streamStatus }
    override var streamError: (any Error)? { source.streamError }
    override func open() { source.open() }
    override func close() { source.close() }

    /// Blocks, as reading a file does.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let count = source.read(buffer, maxLength: min(maxLength, pace.piece))
        if count > 0 { Thread.sleep(forTimeInterval: min(pace.wait(after: count), 3600)) }
        return count
    }
}
