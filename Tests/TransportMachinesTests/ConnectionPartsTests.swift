// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing
import TransportMachines

/// The parts of an HTTP/2 connection: stream numbers, the peer's settings, and the limits on frames without content.
@Suite struct ConnectionPartsTests {
    // MARK: Numbers

    @Test func `frames are accepted for open or closed streams only`() throws {
        var numbers = StreamNumbers()
        for _ in 0..<3 { numbers.open() }
        #expect(numbers.next == 7)
        numbers.reset(3)
        let rows: [(stream: UInt32, mayBeOver: Bool, code: HTTP2ErrorCode?)] = [
            (1, true, nil), (1, false, .streamClosed), (3, true, nil), (3, false, nil), (5, false, .streamClosed),
            (7, true, .protocolError), (7, false, .protocolError), (2, true, .protocolError), (0, true, .protocolError),
        ]
        for (stream, mayBeOver, code) in rows {
            #expect(failure { try numbers.accept(stream, mayBeOver: mayBeOver) }?.code == code, "\(stream), \(mayBeOver)")
        }
    }

    @Test func `frames for forgotten reset streams are accepted`() {
        var numbers = StreamNumbers()
        for _ in 0..<10_000 { numbers.open() }
        let count: UInt32 = 4_097
        // The first reset is forgotten; a second reset of the same stream does not count.
        for place in 0..<count {
            numbers.reset(101 + 2 * place)
            numbers.reset(101 + 2 * place)
        }
        for (stream, isExcused) in [(1, true), (101, true), (103, true), (101 + 2 * (count - 1), true), (101 + 2 * count, false)]
        {
            #expect((failure { try numbers.accept(stream, mayBeOver: false) } == nil) == isExcused, "\(stream)")
        }
    }

    // MARK: Settings

    @Test func `settings are applied, and changes for streams are returned`() {
        var peer = PeerSettings()
        #expect(peer.window == 65_535 && peer.frameSize == 16_384 && peer.listSize == nil && peer.capacity == nil)
        var settings = HTTP2Settings()
        var (change, capacity) = peer.take(settings)
        #expect(change == nil && capacity == 256)
        settings.initialWindowSize = 100
        settings.largestInitialWindowSize = 70_000
        settings.maxConcurrentStreams = 1_000
        settings.maxFrameSize = 20_000
        settings.maxHeaderListSize = 30_000
        (change, capacity) = peer.take(settings)
        #expect(change?.total == 100 - 65_535 && change?.largest == 70_000 - 65_535 && capacity == nil)
        #expect(peer.window == 100 && peer.frameSize == 20_000 && peer.listSize == 30_000 && peer.capacity == 256)
        settings = HTTP2Settings()
        settings.maxConcurrentStreams = 0
        (change, capacity) = peer.take(settings)
        #expect(change == nil && capacity == 0 && peer.window == 100 && peer.frameSize == 20_000 && peer.listSize == 30_000)
        (change, capacity) = peer.take(HTTP2Settings())
        #expect(change == nil && capacity == nil && peer.capacity == 0)
    }

    // MARK: Floods

    @Test func `frames without content have an allowance, which time and content restore`() throws {
        var flood = FrameFlood(now: 0)
        for _ in 0..<FrameFlood.limit { try flood.spend(now: 0) }
        #expect(failure { try flood.spend(now: 19_999_999) }?.code == .enhanceYourCalm)
        try flood.spend(now: 20_000_000)
        #expect(failure { try flood.spend(now: 20_000_000) } != nil)
        flood.earn()
        try flood.spend(now: 20_000_000)
        #expect(failure { try flood.spend(now: 20_000_000) } != nil)
        for _ in 0..<FrameFlood.limit { try flood.spend(now: 1_000_000_000_000) }
        #expect(failure { try flood.spend(now: 1_000_000_000_000) } != nil)
    }

    @Test func `window updates that follow sent content use no allowance`() throws {
        var flood = FrameFlood(now: 0)
        flood.sentContent(1_000)
        for _ in 0..<FrameFlood.limit { try flood.spend(now: 0) }
        for increment in [1_000, 744, 256] { try flood.spend(onUpdate: increment, now: 0) }
        #expect(failure { try flood.spend(onUpdate: 256, now: 0) } != nil)
        flood.sentContent(1_000)
        // The remainder covers one frame; updates that are too small do not count.
        try flood.spend(onUpdate: 255, now: 0)
        #expect(failure { try flood.spend(onUpdate: 255, now: 0) } != nil)
    }

    @Test func `unread replies are limited`() throws {
        var flood = FrameFlood(now: 0)
        for _ in 0..<FrameFlood.maximumUnreadReplies { try flood.answer(isRead: false) }
        try flood.answer(isRead: true)
        #expect(failure { try flood.answer(isRead: false) }?.code == .enhanceYourCalm)
        flood.repliesWereRead()
        try flood.answer(isRead: false)
    }

    private func failure(_ work: () throws -> Void) -> HTTP2Failure? {
        do { try work() } catch { return error as? HTTP2Failure }
        return nil
    }
}
