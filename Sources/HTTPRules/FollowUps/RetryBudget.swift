// SPDX-License-Identifier: Apache-2.0

/// Limits the retries for a failing host, so that they do not amplify an outage.
///
/// The budget has ten units. A failed attempt costs one unit; each response and each second returns a tenth of a unit. A load is
/// retried while at least five units are left: a failing host gets five retries, then one for every ten responses or ten seconds.
/// gRPC throttles retries in the same way.
package struct RetryBudget: Sendable, Hashable {
    private static let most = 100.0
    private static let cost = 10.0

    private var tenths = Self.most
    /// The caller's clock at the last change, in seconds.
    private var last: Double

    /// Creates a full budget.
    ///
    /// - Parameter now: The time, in seconds.
    package init(now: Double) { last = now }

    /// Whether no recent attempt failed.
    package var isFull: Bool { tenths == Self.most }

    /// Records a failure.
    ///
    /// - Parameter now: The time, in seconds.
    /// - Returns: Whether the request may be retried.
    package mutating func noteFailure(now: Double) -> Bool {
        recover(now)
        tenths = max(0, tenths - Self.cost)
        return tenths >= Self.most / 2
    }

    /// Records a response that was not a failure.
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
