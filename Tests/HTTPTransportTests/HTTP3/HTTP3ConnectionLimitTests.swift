// SPDX-License-Identifier: Apache-2.0

import CQUIC
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import Testing

@testable import HTTPTransport

/// The limits of HTTP/3 connections, and how it is found out whether their servers live.
@Suite struct HTTP3ConnectionLimitTests {
    private typealias Load = (exchange: Exchange, control: LoadControl)

    private static func answer(_ id: Int64) -> [FakeQUIC.Event] {
        [.sectionBegan(id), .field(id, ":status", "204"), .sectionEnded(id, endsStream: true), .responseEnded(id), .closed(id)]
    }

    /// Carries out requests, one after the other.
    private func load(_ count: Int, _ network: FakeQUICNetwork) throws {
        for _ in 0..<count {
            let load = try network.begin()
            let peer = try #require(network.peers.first)
            network.receive(Self.answer((load.exchange.carrier as? HTTP3Stream)?.id ?? -1), at: peer)
            #expect(load.exchange.hasWholeBody)
            load.control.enter(.elsewhere)
        }
    }

    /// Asks for connections at once; returns how many loads got the first connection.
    private func granted(_ count: Int, _ network: FakeQUICNetwork) -> (leases: [ConnectionPool.Lease], granted: Int) {
        let leases = (0..<count).map { _ in network.lease().0 }
        network.loop.run()
        return (leases, leases.count { $0.isAnswered })
    }

    private func release(_ leases: [ConnectionPool.Lease], _ network: FakeQUICNetwork) {
        for lease in leases {
            lease.control.abort(.cancelled)
            _ = try? network.pool.take(lease)
        }
    }

    /// "Maximum Streams … is a count of the cumulative number of streams" (RFC 9000, section 19.11).
    @Test(arguments: [
        (allowed: 1, done: 0, wanted: 3, granted: 1), (allowed: 3, done: 0, wanted: 5, granted: 3),
        (allowed: 3, done: 2, wanted: 5, granted: 1), (allowed: 40, done: 9, wanted: 40, granted: 31),
        (allowed: 40, done: 39, wanted: 3, granted: 1), (allowed: 10_000, done: 0, wanted: 300, granted: 256),
    ]) func `the pool knows how many requests the server still allows`(
        row: (allowed: UInt64, done: Int, wanted: Int, granted: Int)
    ) throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        network.beginning = [.handshakeCompleted, .requestsAllowed(row.allowed)]
        try load(row.done, network)
        let (leases, granted) = granted(row.wanted, network)
        #expect(granted == row.granted)
        #expect(network.peers.count == 1 && network.peers.first?.fake.faults == [])
        release(leases, network)
    }

    @Test func `a raised limit lets waiting loads begin`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        network.beginning = [.handshakeCompleted, .requestsAllowed(2)]
        try load(2, network)
        let (leases, before) = granted(5, network)
        let peer = try #require(network.peers.first)
        #expect(before == 0 && network.peers.count == 1)
        network.receive([.requestsAllowed(5)], at: peer)
        #expect(leases.count { $0.isAnswered } == 3)
        network.receive([.requestsAllowed(100)], at: peer)
        #expect(leases.allSatisfy(\.isAnswered) && network.peers.count == 1)
        release(leases, network)
    }

    /// The pool is not told about each request while much is left, and so may grant too much.
    @Test func `a load whose connection allows no more requests sees that before it begins`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        network.beginning = [.handshakeCompleted, .requestsAllowed(100)]
        try load(50, network)
        let (leases, granted) = granted(100, network)
        let peer = try #require(network.peers.first)
        var loads: [Load] = []
        for lease in leases where lease.isAnswered {
            let connection = try network.pool.take(lease)
            guard connection.allowsExchange else {
                network.pool.giveBack(connection)
                continue
            }
            loads.append((try connection.begin(FakeQUICNetwork.message(), control: lease.control), lease.control))
            network.loop.run()
        }
        #expect(granted >= 50 && loads.count == 50)
        #expect(peer.fake.streams.count == 100 && peer.fake.faults == [] && !peer.connection.allowsExchange)
        for load in loads { load.exchange.cancel() }
        release(leases, network)
    }

    @Test func `a request that the library refuses is not processed, and its connection takes no more`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (lease, control) = network.lease()
        defer { control.enter(.elsewhere) }
        network.loop.run()
        let connection = try network.pool.take(lease)
        let peer = try #require(network.peers.first)
        peer.fake.refusesRequests = true
        #expect(throws: LoadError.self) { try connection.begin(FakeQUICNetwork.message(), control: control) }
        #expect(connection.evidenceBeforeRequest == .notProcessed(.init(endsConnection: true)) && connection.isGone)
        network.pool.giveBack(connection)
        #expect(peer.fake.destroyCount == 1 && peer.fake.faults == [])
    }

    // MARK: Floods

    @Test func `datagrams without end that carry nothing end the connection`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let load = try network.begin()
        defer { load.control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        var count = 0
        while !load.exchange.isOver, count < 200_000 {
            network.receive([], at: peer)
            count += 1
        }
        #expect(count > 60_000 && count < 200_000)
        #expect(load.exchange.failureKind == .badServerResponse && load.exchange.evidence == .streamFailed)
        #expect(
            peer.fake.takeCalls().suffix(2) == [.close(isApplication: true, code: 0x107), .destroy] && peer.fake.faults == [])
    }

    @Test func `small datagrams are no flood if they carry content`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let load = try network.begin()
        defer { load.control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        network.receive([.sectionBegan(0), .field(0, ":status", "200"), .sectionEnded(0)], at: peer)
        for _ in 0..<70_000 { network.receive([.content(0, 1)], at: peer) }
        #expect(!load.exchange.isOver && load.exchange.record.responseBodyBytes == 70_000)
    }

    /// The rest of such a section is not awaited.
    private static let excess: [(name: String, events: [FakeQUIC.Event], kind: LoadError.Kind)] = [
        (
            "a section of too many bytes",
            [.sectionBegan(0), .field(0, ":status", "200")]
                + (0..<40).map { .field(0, "f\($0)", String(repeating: "v", count: 10_000)) },
            .dataLengthExceedsMaximum
        ),
        (
            "a section of too many fields",
            [.sectionBegan(0), .field(0, ":status", "200")] + (0..<20_000).map { .field(0, "f\($0)", "v") },
            .dataLengthExceedsMaximum
        ),
        (
            "informational responses without end",
            (0..<101).flatMap { _ in [.sectionBegan(0), .field(0, ":status", "103"), .sectionEnded(0)] as [FakeQUIC.Event] },
            .badServerResponse
        ),
    ]

    @Test(arguments: excess.indices) func `a response that is too much ends its stream`(index: Int) throws {
        let row = Self.excess[index]
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let load = try network.begin()
        defer { load.control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        network.receive(row.events, at: peer)
        while load.exchange.takeEvent() != nil {}
        #expect(load.exchange.isOver && load.exchange.failureKind == row.kind, "\(row.name)")
        #expect(peer.fake.takeCalls().contains(.cancel(0, 0x107)), "\(row.name)")
        #expect(peer.connection.channelIsActive && peer.fake.faults == [])
    }

    @Test func `more content than the window allows ends the stream`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let load = try network.begin(FakeQUICNetwork.message("PUT", body: .data(.init(count: 1))))
        defer { load.control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        load.control.suspend()
        network.receive(
            [
                .sectionBegan(0), .field(0, ":status", "200"), .sectionEnded(0), .content(0, HTTP3Connection.streamWindow),
                .content(0, 1),
            ],
            at: peer)
        #expect(load.exchange.isOver && peer.fake.takeCalls().contains(.cancel(0, 0x107)))
        #expect(peer.connection.channelIsActive && peer.fake.faults == [])
    }

    // MARK: Liveness

    private func keepAlives(_ peer: FakeQUICNetwork.Peer) -> [UInt64] {
        peer.fake.takeCalls().compactMap { if case .keepAlive(let time) = $0 { time } else { nil } }
    }

    @Test func `signs of life are asked for only while a response is awaited`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let first = try network.begin()
        let peer = try #require(network.peers.first)
        #expect(keepAlives(peer) == [.max, 10_000_000_000])
        let second = try network.begin()
        #expect(keepAlives(peer) == [])
        network.receive(Self.answer(0), at: peer)
        #expect(keepAlives(peer) == [])
        second.exchange.cancel()
        #expect(keepAlives(peer) == [.max])
        let third = try network.begin()
        #expect(keepAlives(peer) == [10_000_000_000])
        network.receive([.reset(8, 0x10C)], at: peer)
        #expect(keepAlives(peer) == [.max])
        for load in [first, second, third] { load.control.enter(.elsewhere) }
    }

    /// What happens to a request that begins after a silence, by the second at which the server is heard again.
    @Test(arguments: [
        (heardAfter: 0, isBarred: false, ends: false), (heardAfter: 2, isBarred: true, ends: false),
        (heardAfter: 60, isBarred: true, ends: true),
    ]) func `a server that was silent is asked, doubted and given up`(row: (heardAfter: Int64, isBarred: Bool, ends: Bool)) throws
    {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        try load(1, network)
        let peer = try #require(network.peers.first)
        network.advance(.seconds(5))
        _ = peer.fake.takeCalls()
        let late = try network.begin()
        defer { late.control.enter(.elsewhere) }
        #expect(peer.fake.takeCalls().contains(.ping))
        network.advance(.milliseconds(100))
        if row.heardAfter == 0 { network.receive([], at: peer) }
        network.advance(.milliseconds(1_900))
        // New requests use another connection.
        let next = try network.begin()
        defer { next.control.enter(.elsewhere) }
        #expect((network.peers.count == 2) == row.isBarred && !late.exchange.isOver)
        if row.heardAfter == 2 { network.receive([], at: peer) }
        network.advance(.seconds(2))
        #expect(late.exchange.isOver == row.ends && peer.connection.channelIsActive != row.ends)
        if row.ends {
            #expect(late.exchange.failureKind == .connectionLost && late.exchange.evidence == .none)
            // The server had answered: its place is no worse than before.
            #expect(network.directory.failedCount == 0)
        }
        #expect(network.peers.allSatisfy { $0.fake.faults == [] })
    }

    @Test func `a server that never answers on a new connection is a fault of its place`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let load = try network.begin()
        defer { load.control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        peer.quic.socket?.channel?.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel)
        network.loop.run()
        #expect(peer.fake.takeCalls().contains(.ping) && !load.exchange.isOver)
        network.advance(.seconds(4))
        #expect(load.exchange.isOver && load.exchange.failureKind == .connectionLost && network.directory.failedCount == 1)
        #expect(peer.fake.destroyCount == 1 && peer.fake.faults == [])
    }
}
