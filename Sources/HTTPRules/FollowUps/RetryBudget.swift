//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// How much of a host's load attempts that follow failures may be, so that they do not multiply an outage.
///
/// An attempt that failed costs one of ten, one that did not brings back a tenth, and a load is tried again while more than half are left: a host
/// that fails is tried five times more at once, and then as often as a tenth of what it answers. gRPC throttles retries in the same way.
package struct RetryBudget: Sendable, Hashable {
    private static let most = 100
    private static let cost = 10

    private var tenths = Self.most

    package init() {}

    /// Nothing failed lately.
    package var isFull: Bool { tenths == Self.most }

    /// Notes a failure.
    ///
    /// - Returns: Whether it may be followed by another attempt.
    package mutating func noteFailure() -> Bool {
        tenths = max(0, tenths - Self.cost)
        return tenths >= Self.most / 2
    }

    /// Notes an answer that was none.
    package mutating func noteSuccess() { tenths = min(Self.most, tenths + 1) }
}
