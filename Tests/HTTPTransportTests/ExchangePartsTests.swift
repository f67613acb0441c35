// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import NIOCore
import Testing

/// Decisions of an exchange: whether to keep reading, when to wake its load, and how many interim responses to accept.
@Suite struct ExchangePartsTests {
    @Test func `reading stops at the high-water mark and continues at the low-water mark`() {
        var reading = BodyReading()
        let (low, high) = (Exchange.lowWaterMark, Exchange.highWaterMark)
        let rows: [(waiting: Int, isSuspended: Bool, wants: Bool)] = [
            (0, false, true), (high - 1, false, true), (high, false, false), (low + 1, false, false), (low, false, true),
            (low + 1, false, true), (0, true, false), (low + 1, false, false), (0, false, true),
        ]
        for (place, row) in rows.enumerated() {
            #expect(reading.update(isSuspended: row.isSuspended, waiting: row.waiting) == row.wants, "row \(place)")
        }
        reading.bypass(true)
        #expect(reading.update(isSuspended: true, waiting: 0) == nil)
        reading.bypass(false)
        #expect(reading.update(isSuspended: false, waiting: high - 1) == true)
    }

    @Test func `a load is woken at once for much data, and after some time for little`() {
        var wakes = BodyWakes()
        let begin = NIODeadline.uptimeNanoseconds(1_000_000_000)
        #expect(wakes.isDue(for: 20_000, now: begin))
        wakes.note(begin)
        #expect(!wakes.isDue(for: 524_287, now: begin + .microseconds(499)))
        #expect(wakes.isDue(for: 524_288, now: begin))
        #expect(wakes.isDue(for: 20_000, now: begin + .microseconds(500)))
        #expect(wakes.plan() == begin + .microseconds(500))
        #expect(wakes.plan() == nil)
        wakes.planEnded()
        wakes.note(begin + .microseconds(600))
        #expect(wakes.plan() == begin + .microseconds(1_100))
    }

    @Test func `interim responses and their fields are limited`() {
        let small = ResponseHead(majorVersion: 2, minorVersion: 0, status: 103, headers: HeaderBlock([]))
        var many = InformationalResponses()
        for _ in 0..<InformationalResponses.limit {
            let isTaken = many.append(small, sentBodyBytes: 0)
            #expect(isTaken)
            #expect(many.popFirst()?.status == 103)
        }
        // Interim responses that were already delivered count, too.
        let isOneTooMany = !many.append(small, sentBodyBytes: 65_535)
        #expect(isOneTooMany && many.isEmpty && many.popFirst() == nil)
        // More interim responses are accepted as the upload progresses, because a server may report the progress.
        let isTaken = many.append(small, sentBodyBytes: 131_072)
        #expect(isTaken)
        let large = HeaderBlock([("Link", String(repeating: "a", count: 100_000))])
        var fat = InformationalResponses()
        let taken = (0..<3).map { _ in
            fat.append(ResponseHead(majorVersion: 2, minorVersion: 0, status: 103, headers: large), sentBodyBytes: 0)
        }
        #expect(taken == [true, true, false])
    }
}
