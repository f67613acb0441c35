// SPDX-License-Identifier: Apache-2.0

import CQUIC
import FoundationEssentials
import LoadingModel
import NIOCore
import Testing

@testable import HTTPTransport

/// Bodies of requests over HTTP/3.
@Suite struct HTTP3BodyTests {
    private func pieces(_ peer: FakeQUICNetwork.Peer) -> [FakeQUIC.Call] {
        peer.fake.takeCalls().filter { if case .body = $0 { true } else { false } }
    }

    private func send(_ network: FakeQUICNetwork, _ peer: FakeQUICNetwork.Peer) {
        peer.fake.sending = [.bodySent(0)]
        peer.quic.scheduleFlush()
        network.loop.run()
    }

    @Test func `the next piece is passed when the last one was sent`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin(FakeQUICNetwork.message("PUT", body: .data(Data(count: 600_000))))
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        #expect(pieces(peer) == [.body(0, 262_144, isLast: false)] && exchange.sentBodyBytes == 0)
        send(network, peer)
        #expect(pieces(peer) == [.body(0, 262_144, isLast: false)] && exchange.sentBodyBytes == 262_144)
        control.suspend()
        send(network, peer)
        #expect(pieces(peer) == [] && exchange.sentBodyBytes == 524_288)
        control.resume(now: network.loop.now)
        network.loop.run()
        #expect(pieces(peer) == [.body(0, 75_712, isLast: true)] && !exchange.hasSentRequest)
        send(network, peer)
        #expect(pieces(peer) == [] && exchange.sentBodyBytes == 600_000 && exchange.hasSentRequest)
        #expect(peer.fake.faults == [])
    }

    enum End: CaseIterable {
        case sent, stopped, reset, closed, cancelled, lost
    }

    /// A write that is not answered would keep the exchange, and a reader of a stream, for ever.
    @Test(arguments: End.allCases) func `each write of a body is answered, whatever happens`(end: End) throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin(FakeQUICNetwork.message("PUT", body: .data(Data(count: 1))))
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        weak let pump = (exchange.carrier as? HTTP3Stream)?.pump
        #expect(pump != nil)
        switch end {
        case .sent: send(network, peer)
        case .stopped: network.receive([.stopped(0)], at: peer)
        case .reset: network.receive([.reset(0, 0x10C)], at: peer)
        case .closed: network.receive([.closed(0)], at: peer)
        case .cancelled: exchange.cancel()
        case .lost: network.receive([.over(CQUIC_IDLE_TIMEOUT)], at: peer)
        }
        network.loop.run()
        #expect(pump == nil)
        #expect((exchange.sentBodyBytes == 1) == (end == .sent))
        // The response counts, though the request was stopped.
        #expect(exchange.isOver == (end != .sent && end != .stopped) && peer.fake.faults == [])
    }

    @Test func `a response that is an error ends the sending`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin(FakeQUICNetwork.message("PUT", body: .data(Data(count: 600_000))))
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        network.receive([.sectionBegan(0), .field(0, ":status", "413"), .sectionEnded(0)], at: peer)
        _ = peer.fake.takeCalls()
        send(network, peer)
        #expect(pieces(peer) == [])
        network.receive([.responseEnded(0)], at: peer)
        #expect(exchange.hasWholeBody && peer.fake.takeCalls().first == .cancelSending(0, 0x100) && peer.fake.faults == [])
    }

    @Test(arguments: [false, true]) func `content waits for 100`(isRefused: Bool) throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (_, control) = try network.begin(
            FakeQUICNetwork.message("PUT", body: .data(Data(count: 5)), expectsContinue: true))
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        #expect(pieces(peer) == [])
        network.receive([.sectionBegan(0), .field(0, ":status", isRefused ? "417" : "100"), .sectionEnded(0)], at: peer)
        #expect(pieces(peer) == (isRefused ? [] : [.body(0, 5, isLast: true)]) && peer.fake.faults == [])
    }
}
