//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import Testing

/// How a connection of HTTP/2 finds out that its server is gone: PING (RFC 9113, section 6.7), and time.
@Suite struct HTTP2ProbeTests {
    private func withPeer(_ test: (EmbeddedPeer) throws -> Void) throws {
        let peer = try EmbeddedPeer()
        defer { peer.finish() }
        try test(peer)
    }

    @Test func `a request after ten seconds of silence comes with a question`() throws {
        for (seconds, isAsked) in [(0, false), (9, false), (10, false), (11, true), (3_600, true)] as [(Int64, Bool)] {
            try withPeer { peer in
                peer.loop.advanceTime(by: .seconds(seconds))
                _ = try peer.begin()
                #expect(peer.takePings().count == (isAsked ? 1 : 0), "\(seconds) seconds")
            }
        }
    }

    @Test func `many requests come with one question`() throws {
        try withPeer { peer in
            peer.loop.advanceTime(by: .seconds(11))
            for _ in 0..<10 { _ = try peer.begin() }
            #expect(peer.takePings().count == 1)
        }
    }

    @Test func `a server that does not answer within five seconds is given up, and all its loads fail`() throws {
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
                // Whether it is sent again is for its method to say: the server has said nothing.
                #expect(exchange.evidence == .none && !exchange.record.hasReceivedBytes)
            }
            #expect(!peer.connection.channelIsActive && !peer.channel.isActive && peer.connection.isIdle)
        }
    }

    /// Not the acknowledgement alone: a server that is busy with others is there.
    @Test func `any sign of life keeps the connection`() throws {
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

    @Test func `after an answer the next silence is asked about again, by another question`() throws {
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

    @Test func `a connection that nobody uses is not asked`() throws {
        try withPeer { peer in
            peer.loop.advanceTime(by: .hours(1))
            #expect(peer.takeSent().isEmpty && peer.connection.channelIsActive)
        }
    }

    // MARK: Loads whose time is up

    @Test func `a load that times out without a word from the server has it asked, and its neighbours fail with the connection`()
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

    @Test func `a load that times out while others are answered is its own affair`() throws {
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

    @Test func `a load that is cancelled says nothing of the server`() throws {
        try withPeer { peer in
            let load = try peer.begin()
            peer.loop.advanceTime(by: .seconds(2))
            load.control.abort(LoadError(.cancelled, "cancelled"))
            load.exchange.cancel()
            #expect(peer.takePings().isEmpty)
        }
    }

    @Test func `a server that has answered is asked again, at once, where it is doubted again`() throws {
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
            // The first question's patience would end here.
            peer.loop.advanceTime(by: .seconds(4))
            #expect(peer.connection.channelIsActive && first.exchange.failureKind == nil)
            peer.loop.advanceTime(by: .seconds(1))
            #expect(first.exchange.failureKind == .connectionLost && !peer.connection.channelIsActive)
        }
    }
}
