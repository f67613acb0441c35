// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import Testing

/// How an HTTP/2 connection detects that its server is gone: PING (RFC 9113, section 6.7) and timers.
@Suite struct HTTP2ProbeTests {
    private func withPeer(_ test: (EmbeddedPeer) throws -> Void) throws {
        let peer = try EmbeddedPeer()
        defer { peer.finish() }
        try test(peer)
    }

    @Test func `a request after ten seconds of silence sends a PING`() throws {
        for (seconds, isAsked) in [(0, false), (9, false), (10, false), (11, true), (3_600, true)] as [(Int64, Bool)] {
            try withPeer { peer in
                peer.loop.advanceTime(by: .seconds(seconds))
                _ = try peer.begin()
                #expect(peer.takePings().count == (isAsked ? 1 : 0), "\(seconds) seconds")
            }
        }
    }

    @Test func `several requests send one PING`() throws {
        try withPeer { peer in
            peer.loop.advanceTime(by: .seconds(11))
            for _ in 0..<10 { _ = try peer.begin() }
            #expect(peer.takePings().count == 1)
        }
    }

    @Test func `a server that does not answer a PING within five seconds fails the connection and its loads`() throws {
        try withPeer { peer in
            let early = try peer.begin("POST")
            peer.loop.advanceTime(by: .seconds(11))
            let late = try peer.begin()
            #expect(peer.takePings().count == 1)
            peer.loop.advanceTime(by: .milliseconds(4_999))
            #expect(early.exchange.failureKind == nil && late.exchange.failureKind == nil && peer.connection.channelIsActive)
            peer.loop.advanceTime(by: .milliseconds(1))
            for exchange in [early.exchange, late.exchange] {
                #expect(exchange.failureKind == .connectionLost)
                // The server has sent nothing, so the method decides whether the request is retried.
                #expect(exchange.evidence == .none && !exchange.record.hasReceivedBytes)
            }
            #expect(!peer.connection.channelIsActive && !peer.channel.isActive && peer.connection.isIdle)
        }
    }

    /// Bytes other than the acknowledgement count, too, because a server that is busy with other streams is alive.
    @Test func `any received bytes keep the connection`() throws {
        let signs: [(String, ([UInt8]) -> [UInt8])] = [
            ("an acknowledgement", EmbeddedPeer.pong), ("SETTINGS", { _ in EmbeddedPeer.frame(HTTP2Frames.settings) }),
            ("a head", { _ in EmbeddedPeer.head(1) }), ("a part of a frame", { _ in [0] }),
        ]
        for (name, sign) in signs {
            try withPeer { peer in
                peer.loop.advanceTime(by: .seconds(11))
                let load = try peer.begin()
                let ping = try #require(peer.takePings().first)
                peer.loop.advanceTime(by: .milliseconds(4_999))
                peer.receive(sign(ping))
                peer.loop.advanceTime(by: .seconds(60))
                #expect(peer.connection.channelIsActive && load.exchange.failureKind == nil, "\(name)")
                #expect(peer.takePings().isEmpty, "\(name)")
            }
        }
    }

    @Test func `the next silence after an answer sends another PING`() throws {
        try withPeer { peer in
            var questions: Set<[UInt8]> = []
            for _ in 0..<3 {
                peer.loop.advanceTime(by: .seconds(11))
                _ = try peer.begin()
                let ping = try #require(peer.takePings().first)
                peer.receive(EmbeddedPeer.pong(ping))
                questions.insert(ping)
                peer.loop.advanceTime(by: .seconds(5))
            }
            #expect(questions.count == 3 && peer.connection.channelIsActive)
        }
    }

    @Test func `an idle connection sends no PING`() throws {
        try withPeer { peer in
            peer.loop.advanceTime(by: .hours(1))
            #expect(peer.takeSent().isEmpty && peer.connection.channelIsActive)
        }
    }

    // MARK: Loads that time out

    @Test func `a load that times out without any received bytes sends a PING, which may fail the connection`()
        throws
    {
        try withPeer { peer in
            let neighbour = try peer.begin()
            let load = try peer.begin()
            peer.loop.advanceTime(by: .seconds(2))
            peer.timeOut(load)
            let sent = peer.takeSent()
            #expect(sent.contains { $0.type == HTTP2Frames.reset && $0.stream == 3 })
            #expect(sent.contains { $0.type == HTTP2Frames.ping })
            peer.loop.advanceTime(by: .seconds(5))
            #expect(neighbour.exchange.failureKind == .connectionLost && !peer.connection.channelIsActive)
        }
    }

    @Test func `a load that times out while other loads receive bytes does not affect the others`() throws {
        try withPeer { peer in
            let neighbour = try peer.begin()
            let load = try peer.begin()
            peer.loop.advanceTime(by: .seconds(2))
            peer.receive(EmbeddedPeer.head(1))
            peer.timeOut(load)
            #expect(peer.takePings().isEmpty)
            peer.loop.advanceTime(by: .seconds(5))
            #expect(neighbour.exchange.failureKind == nil && peer.connection.channelIsActive)
        }
    }

    @Test func `a cancelled load sends no PING`() throws {
        try withPeer { peer in
            let load = try peer.begin()
            peer.loop.advanceTime(by: .seconds(2))
            load.control.abort(LoadError(.cancelled, "cancelled"))
            load.exchange.cancel()
            #expect(peer.takePings().isEmpty)
        }
    }

    @Test func `a server that answered a PING receives another at the next timeout`() throws {
        try withPeer { peer in
            peer.loop.advanceTime(by: .seconds(11))
            let first = try peer.begin()
            let ping = try #require(peer.takePings().first)
            peer.loop.advanceTime(by: .seconds(1))
            peer.receive(EmbeddedPeer.pong(ping))
            let second = try peer.begin()
            peer.loop.advanceTime(by: .seconds(2))
            peer.timeOut(second)
            let another = try #require(peer.takePings().first)
            #expect(another != ping)
            // The timeout of the first PING would expire here.
            peer.loop.advanceTime(by: .seconds(4))
            #expect(peer.connection.channelIsActive && first.exchange.failureKind == nil)
            peer.loop.advanceTime(by: .seconds(1))
            #expect(first.exchange.failureKind == .connectionLost && !peer.connection.channelIsActive)
        }
    }
}
