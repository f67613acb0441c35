//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// How much may be sent (RFC 9113, section 5.2): of a stream, or of a whole connection.
package struct SendWindow: Sendable, Hashable {
    /// Below zero where the peer took back more than was left (section 6.9.2).
    package private(set) var available: Int

    package init(_ size: Int = FlowControl.initialWindow) { available = size }

    package mutating func take(_ count: Int) { available -= count }

    /// The peer allows so much more, or less; false where the window becomes larger than one may be (section 6.9.1).
    package mutating func widen(by change: Int) -> Bool {
        guard available + change <= HTTP2Settings.largestWindow else { return false }
        available += change
        return true
    }
}

/// How much the peer may send, and when it is told that it may send more.
///
/// What waits here and what the peer may still send is never more than `size`, which is what a stream can hold in memory.
package struct ReceiveWindow: Sendable, Hashable {
    package private(set) var size: Int
    /// What the peer may still send.
    package private(set) var available: Int

    package init(_ size: Int) {
        self.size = size
        available = size
    }

    /// So much came; false where that is more than was allowed.
    package mutating func receive(_ count: Int) -> Bool {
        guard count <= available else { return false }
        available -= count
        return true
    }

    /// The window is to be that large, unless it is larger already.
    package mutating func grow(to size: Int) { self.size = max(self.size, min(size, HTTP2Settings.largestWindow)) }

    /// What to tell the peer that it may send more, now that so much waits here; nil where that is not worth a frame.
    package mutating func update(waiting: Int) -> Int? {
        let change = size - waiting - available
        // Half a window: the other half is on its way meanwhile.
        guard change > 0, change * 2 >= size else { return nil }
        available += change
        return change
    }
}

package enum FlowControl {
    /// Of connections and streams, until something else is said (RFC 9113, section 6.9.2).
    package static let initialWindow = 65_535
    /// What a stream is to come to on a long way: 5.4 Gbit/s, in bytes for each microsecond.
    private static let rate: Int64 = 671

    /// The window that lets a stream come at that rate where the answer to what is written takes so many nanoseconds.
    ///
    /// A larger one would bring nothing but memory: what the peer may send is sent, whether or not somebody takes it as fast.
    package static func window(roundTrip: Int64, within bounds: ClosedRange<Int>) -> Int {
        let wanted = max(0, roundTrip) / 1_000 * rate
        return min(max(Int(min(wanted, Int64(bounds.upperBound))), bounds.lowerBound), bounds.upperBound)
    }

    /// Whether a whole window that took so long to come was waited for: it did so in about the time that an update of it takes.
    package static func isShort(windowTook elapsed: Int64, roundTrip: Int64) -> Bool { elapsed <= 2 * roundTrip }
}
