// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The number of bytes that may be sent (RFC 9113, section 5.2) on a stream or on a whole connection.
package struct SendWindow: Sendable, Hashable {
    /// Negative if the peer reduced the window by more than was left (section 6.9.2).
    package private(set) var available: Int

    package init(_ size: Int = FlowControl.initialWindow) { available = size }

    package mutating func take(_ count: Int) { available -= count }

    /// Applies a change of the window by the peer; returns false if the window exceeds the maximum (section 6.9.1).
    package mutating func widen(by change: Int) -> Bool {
        guard available + change <= HTTP2Settings.largestWindow else { return false }
        available += change
        return true
    }
}

/// The number of bytes that the peer may send, and when to send it a WINDOW_UPDATE.
///
/// The unread bytes and the bytes that the peer may still send together never exceed `size`, which is the memory that a stream may
/// take.
package struct ReceiveWindow: Sendable, Hashable {
    package private(set) var size: Int
    /// The number of bytes that the peer may still send.
    package private(set) var available: Int

    package init(_ size: Int) {
        self.size = size
        available = size
    }

    /// Counts received bytes; returns false if they exceed the window.
    package mutating func receive(_ count: Int) -> Bool {
        guard count <= available else { return false }
        available -= count
        return true
    }

    /// Grows the window to this size, unless it is larger already.
    package mutating func grow(to size: Int) { self.size = max(self.size, min(size, HTTP2Settings.largestWindow)) }

    /// The increment to send to the peer, given the number of unread bytes; nil if the increment is too small to be worth a frame.
    package mutating func update(waiting: Int) -> Int? {
        let change = size - waiting - available
        // An update is sent when half of the window is used: the other half is in flight while the update travels.
        guard change > 0, change * 2 >= size else { return nil }
        available += change
        return change
    }
}

package enum FlowControl {
    /// The initial window of connections and streams (RFC 9113, section 6.9.2).
    package static let initialWindow = 65_535
    /// The target rate of a stream on a long path: 5.4 Gbit/s, in bytes per microsecond.
    private static let rate: Int64 = 671

    /// The window that allows a stream the target rate with this round-trip time in nanoseconds.
    ///
    /// A larger window would only cost memory: the peer fills it even if the app does not read as fast.
    package static func window(roundTrip: Int64, within bounds: ClosedRange<Int>) -> Int {
        let wanted = max(0, roundTrip) / 1_000 * rate
        return min(max(Int(min(wanted, Int64(bounds.upperBound))), bounds.lowerBound), bounds.upperBound)
    }

    /// Whether the window limited the transfer: a whole window arrived in about the time that a window update needs to take
    /// effect.
    package static func isShort(windowTook elapsed: Int64, roundTrip: Int64) -> Bool { elapsed <= 2 * roundTrip }
}
