//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// How often the loads of a host that fails are tried again, so that they do not multiply an outage.
///
/// An attempt that failed costs one of ten; an answer brings back a tenth of one, and so does each second. A load is tried again while five are
/// left: a host that fails has five such attempts at once, then one for ten of its answers, or for ten seconds. gRPC throttles retries in the same
/// way.
package struct RetryBudget: Sendable, Hashable {
    private static let most = 100.0
    private static let cost = 10.0

    private var tenths = Self.most
    /// Seconds of the clock that the caller has, at the last change.
    private var last: Double

    /// A whole budget.
    ///
    /// - Parameter now: The time, in seconds.
    package init(now: Double) { last = now }

    /// Nothing failed lately.
    package var isFull: Bool { tenths == Self.most }

    /// Notes a failure.
    ///
    /// - Parameter now: The time, in seconds.
    /// - Returns: Whether it may be followed by another attempt.
    package mutating func noteFailure(now: Double) -> Bool {
        recover(now)
        tenths = max(0, tenths - Self.cost)
        return tenths >= Self.most / 2
    }

    /// Notes an answer that was none.
    ///
    /// - Parameter now: The time, in seconds.
    package mutating func noteSuccess(now: Double) {
        recover(now)
        tenths = min(Self.most, tenths + 1)
    }

    private mutating func recover(_ now: Double) {
        tenths = min(Self.most, tenths + max(0, now - last))
        last = now
    }
}
