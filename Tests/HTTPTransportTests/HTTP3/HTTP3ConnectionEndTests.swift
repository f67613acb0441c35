// SPDX-License-Identifier: Apache-2.0

import CQUIC
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import Testing

@testable import HTTPTransport

/// What becomes of exchanges when their stream or their connection ends.
@Suite struct HTTP3ConnectionEndTests {
    private struct Row {
        var name: String
        var event: FakeQUIC.Event
        var kind: LoadError.Kind
        var evidence: RetryEvidence
        /// The evidence after the response's head has arrived.
        var late: RetryEvidence
        var close: FakeQUIC.Call?
    }

    private static let head: [FakeQUIC.Event] = [.sectionBegan(0), .field(0, ":status", "200"), .sectionEnded(0)]
    private static let refused = RetryEvidence.notProcessed(.init(endsConnection: false))
    private static let unprocessed = RetryEvidence.notProcessed(.init(endsConnection: true))

    private static let ends: [Row] = [
        Row(
            name: "H3_NO_ERROR", event: .over(CQUIC_CLOSED_BY_APPLICATION, code: 0x100), kind: .connectionLost, evidence: .none,
            late: .none),
        Row(
            name: "H3_VERSION_FALLBACK", event: .over(CQUIC_CLOSED_BY_APPLICATION, code: 0x110), kind: .connectionLost,
            evidence: .requires(.http1), late: .none),
        Row(
            name: "a QUIC error", event: .over(CQUIC_CLOSED_BY_TRANSPORT, code: 1), kind: .connectionLost, evidence: .none,
            late: .none),
        Row(
            name: "certificate_required", event: .over(CQUIC_CLOSED_BY_TRANSPORT, code: 0x174), kind: .clientCertificateRequired,
            evidence: .none, late: .none),
        Row(name: "stateless reset", event: .over(CQUIC_STATELESS_RESET), kind: .connectionLost, evidence: .none, late: .none),
        Row(name: "silence", event: .over(CQUIC_IDLE_TIMEOUT), kind: .connectionLost, evidence: .none, late: .none),
        Row(
            name: "a violation of QUIC", event: .over(CQUIC_VIOLATION_OF_TRANSPORT, code: 7), kind: .badServerResponse,
            evidence: .streamFailed, late: .streamFailed, close: .close(isApplication: false, code: 7)),
        Row(
            name: "a violation of HTTP/3", event: .over(CQUIC_VIOLATION_OF_APPLICATION, code: 0x105), kind: .badServerResponse,
            evidence: .streamFailed, late: .streamFailed, close: .close(isApplication: true, code: 0x105)),
        Row(
            name: "a malformed message", event: .over(CQUIC_VIOLATION_OF_APPLICATION, code: 0x10E, stream: 0),
            kind: .cannotParseResponse, evidence: .streamFailed, late: .streamFailed,
            close: .close(isApplication: true, code: 0x10E)),
        // What is known of it helps other requests to be repeated.
        Row(
            name: "a malformed message on another stream", event: .over(CQUIC_VIOLATION_OF_APPLICATION, code: 0x10E, stream: 4),
            kind: .connectionLost, evidence: .none, late: .none, close: .close(isApplication: true, code: 0x10E)),
        Row(
            name: "the library failed", event: .over(CQUIC_FAILURE, code: 1), kind: .connectionLost, evidence: .none, late: .none),
    ]

    private static let endsOfStreams: [Row] = [
        Row(
            name: "H3_REQUEST_REJECTED", event: .reset(0, 0x10B), kind: .connectionLost, evidence: refused, late: .streamFailed,
            close: .cancel(0, 0x10C)),
        Row(
            name: "H3_VERSION_FALLBACK", event: .reset(0, 0x110), kind: .connectionLost, evidence: .requires(.http1),
            late: .streamFailed,
            close: .cancel(0, 0x10C)),
        Row(
            name: "H3_MESSAGE_ERROR", event: .reset(0, 0x10E), kind: .cannotParseResponse, evidence: .streamFailed,
            late: .streamFailed,
            close: .cancel(0, 0x10C)),
        Row(
            name: "H3_NO_ERROR", event: .reset(0, 0x100), kind: .connectionLost, evidence: .streamFailed, late: .streamFailed,
            close: .cancel(0, 0x10C)),
        Row(name: "closed", event: .closed(0), kind: .connectionLost, evidence: .streamFailed, late: .streamFailed),
        Row(
            name: "GOAWAY", event: .goingAway(0), kind: .connectionLost, evidence: unprocessed, late: unprocessed,
            close: .cancel(0, 0x10C)),
        Row(
            name: "the stream ends without a response", event: .responseEnded(0), kind: .cannotParseResponse,
            evidence: .streamFailed,
            late: .none, close: .cancel(0, 0x10E)),
        Row(
            name: "content before the head", event: .content(0, 1), kind: .cannotParseResponse, evidence: .streamFailed,
            late: .none,
            close: .cancel(0, 0x10E)),
        Row(
            name: "an empty section", event: .sectionEnded(0), kind: .cannotParseResponse, evidence: .streamFailed,
            late: .streamFailed,
            close: .cancel(0, 0x10E)),
    ]

    @Test(arguments: ends.indices, [false, true]) func `the end of a connection says what may be repeated`(
        index: Int, hasHead: Bool
    ) throws {
        let row = Self.ends[index]
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin()
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        if hasHead { network.receive(Self.head, at: peer) }
        _ = peer.fake.takeCalls()
        network.receive([row.event], at: peer)
        try expect(row, hasHead, exchange)
        #expect(!peer.connection.channelIsActive && peer.connection.isIdle && peer.connection.isGone, "\(row.name)")
        // A place whose connections end before an answer is tried again later.
        let isFault = row.name != "H3_VERSION_FALLBACK"
        #expect(network.directory.failedCount == (hasHead || !isFault ? 0 : 1), "\(row.name)")
        let end: [FakeQUIC.Call] = (row.close.map { [$0] } ?? []) + [.destroy]
        #expect(peer.fake.takeCalls().filter { if case .keepAlive = $0 { false } else { true } } == end, "\(row.name)")
        #expect(peer.fake.faults == [])
    }

    @Test(arguments: endsOfStreams.indices, [false, true]) func `the end of a stream says what may be repeated`(
        index: Int, hasHead: Bool
    ) throws {
        let row = Self.endsOfStreams[index]
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin()
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        if hasHead { network.receive(Self.head, at: peer) }
        if hasHead, case .content = row.event { return }
        if hasHead, case .responseEnded = row.event { return }
        _ = peer.fake.takeCalls()
        network.receive([row.event], at: peer)
        try expect(row, hasHead, exchange)
        let calls = peer.fake.takeCalls()
        #expect(calls.first { if case .keepAlive = $0 { false } else { true } } == row.close, "\(row.name): \(calls)")
        #expect(peer.connection.isIdle && peer.fake.faults == [], "\(row.name)")
        // The connection serves other requests, unless the server goes away.
        if case .goingAway = row.event {
            #expect(!peer.connection.channelIsActive && peer.fake.destroyCount == 1)
        } else {
            #expect(peer.connection.channelIsActive && !peer.connection.isGone, "\(row.name)")
        }
    }

    private func expect(_ row: Row, _ hasHead: Bool, _ exchange: Exchange) throws {
        #expect(exchange.isOver && !exchange.hasWholeBody, "\(row.name)")
        #expect(exchange.evidence == (hasHead ? row.late : row.evidence), "\(row.name), head: \(hasHead)")
        if !hasHead { #expect(exchange.failureKind == row.kind, "\(row.name)") }
    }

    /// A whole response counts, however its stream or connection ends while the rest of the request is being sent.
    @Test(arguments: [
        FakeQUIC.Event.over(CQUIC_CLOSED_BY_APPLICATION), .over(CQUIC_STATELESS_RESET), .over(CQUIC_VIOLATION_OF_TRANSPORT),
        .closed(0),
        .stopped(0), .reset(0, 0x100), .goingAway(0),
    ]) func `a whole response is the result though the request was not sent completely`(event: FakeQUIC.Event) throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin(FakeQUICNetwork.message("PUT", body: .data(.init(count: 500_000))))
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        network.receive(Self.head + [.content(0, 3), .responseEnded(0)], at: peer)
        #expect(!exchange.isOver, "the server may want the rest")
        peer.fake.isStrict = false
        network.receive([event], at: peer)
        #expect(exchange.hasWholeBody && exchange.head?.status == 200 && exchange.takeWhole()?.readableBytes == 3)
        #expect(peer.connection.isIdle && peer.fake.faults == [])
    }

    @Test func `what comes after the end of a response changes nothing`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let (exchange, control) = try network.begin(FakeQUICNetwork.message("PUT", body: .data(.init(count: 500_000))))
        defer { control.enter(.elsewhere) }
        let peer = try #require(network.peers.first)
        network.receive(Self.head + [.content(0, 3), .responseEnded(0)], at: peer)
        peer.fake.isStrict = false
        network.receive(Self.head + [.content(0, 3), .responseEnded(0)], at: peer)
        #expect(!exchange.isOver)
        network.receive([.closed(0)], at: peer)
        #expect(exchange.hasWholeBody && exchange.takeWhole()?.readableBytes == 3 && peer.fake.faults == [])
    }

    @Test func `a connection on which the server goes away takes no more requests, and keeps those that it processes`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        let first = try network.begin()
        let second = try network.begin()
        defer { for load in [first, second] { load.control.enter(.elsewhere) } }
        let peer = try #require(network.peers.first)
        let (lease, control) = network.lease()
        defer { control.enter(.elsewhere) }
        network.loop.run()
        let leased = try network.pool.take(lease)
        #expect(leased === peer.connection)
        network.receive([.goingAway(4)], at: peer)
        #expect(!first.exchange.isOver && second.exchange.isOver && leased.isGone)
        #expect(second.exchange.evidence == Self.unprocessed)
        #expect(throws: LoadError.self) { try leased.begin(FakeQUICNetwork.message(), control: control) }
        #expect(leased.evidenceBeforeRequest == Self.unprocessed)
        network.pool.giveBack(leased)
        network.receive(Self.head + [.responseEnded(0)], at: peer)
        #expect(first.exchange.hasWholeBody && peer.fake.destroyCount == 1)
        // The next request uses another connection.
        let third = try network.begin()
        third.control.enter(.elsewhere)
        #expect(network.peers.count == 2 && peer.fake.faults == [])
    }

    @Test func `a connection on which the server goes away before the first request is not used`() throws {
        let network = FakeQUICNetwork()
        defer { network.finish() }
        network.beginning.append(.goingAway(0))
        #expect(throws: LoadError.self) { try network.begin() }
        #expect(network.peers.isEmpty && network.fakes.allSatisfy { $0.destroyCount == 1 && $0.faults == [] })
    }
}
