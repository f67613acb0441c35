// SPDX-License-Identifier: Apache-2.0

import Testing
import TransportMachines

/// The flow control of HTTP/2 (RFC 9113, section 5.2).
struct FlowControlTests {
    @Test func `a send window may become negative, and must not exceed 2^31-1`() {
        var window = SendWindow()
        var isWidened = false
        #expect(window.available == 65_535)
        window.take(65_535)
        isWidened = window.widen(by: -60_000)
        #expect(isWidened)
        #expect(window.available == -60_000)
        isWidened = window.widen(by: Int(Int32.max) + 60_000)
        #expect(isWidened)
        let full = window
        isWidened = window.widen(by: 1)
        #expect(!isWidened)
        #expect(window == full)
    }

    @Test func `a receive window is updated by halves, and limits buffered bytes to its size`() {
        var window = ReceiveWindow(1_000)
        var isAllowed = false
        var change: Int?
        isAllowed = window.receive(499)
        #expect(isAllowed)
        change = window.update(waiting: 0)
        #expect(change == nil)
        isAllowed = window.receive(1)
        #expect(isAllowed)
        change = window.update(waiting: 0)
        #expect(change == 500)
        isAllowed = window.receive(1_000)
        #expect(isAllowed)
        change = window.update(waiting: 501)
        #expect(change == nil)
        change = window.update(waiting: 500)
        #expect(change == 500)
        isAllowed = window.receive(501)
        #expect(!isAllowed)
        #expect(window.available == 500)
        window.grow(to: 2_000)
        change = window.update(waiting: 500)
        #expect(change == 1_000)
        window.grow(to: 10)
        #expect(window.size == 2_000)
    }

    @Test func `the window size follows the round-trip time, within limits`() {
        let bounds = 1 << 20...1 << 25
        let rows: [(milliseconds: Double, window: Int)] = [
            (-1, 1 << 20), (0, 1 << 20), (0.2, 1 << 20), (1.5, 1 << 20), (10, 6_710_000), (30, 20_130_000), (50, 33_550_000),
            (51, 1 << 25), (400, 1 << 25), (1e12, 1 << 25),
        ]
        for (milliseconds, window) in rows {
            let roundTrip = Int64(min(milliseconds * 1e6, 9e18))
            #expect(FlowControl.window(roundTrip: roundTrip, within: bounds) == window, "\(milliseconds) ms")
        }
    }

    @Test func `a window used up within two round trips is too small`() {
        #expect(FlowControl.isShort(windowTook: 50_000_000, roundTrip: 50_000_000))
        #expect(FlowControl.isShort(windowTook: 100_000_000, roundTrip: 50_000_000))
        #expect(!FlowControl.isShort(windowTook: 100_000_001, roundTrip: 50_000_000))
        #expect(!FlowControl.isShort(windowTook: 1_000_000, roundTrip: 100_000))
    }
}
