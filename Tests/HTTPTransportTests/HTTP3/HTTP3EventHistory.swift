// SPDX-License-Identifier: Apache-2.0

import CQUIC
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import NIOEmbedded

@testable import HTTPTransport

/// A history of what servers, the network and loads do with HTTP/3 connections, decoded from bytes.
///
/// Any bytes are a history. What must hold at any time is checked after each step; what does not hold is a fault.
///
/// Confined to the thread of its loop.
final class HTTP3EventHistory {
    private let network: FakeQUICNetwork
    private var loads: [HTTP3HistoryLoad] = []
    private var bytes: ArraySlice<UInt8>
    private let isStrict: Bool
    /// The steps so far, to be shown with a fault.
    private(set) var steps: [String] = []
    private(set) var faults: [String] = []
    /// How many exchanges ended with a whole response, and in another way.
    private(set) var completeCount = 0
    private(set) var failedCount = 0

    private static let maximumLoads = 40
    private static let codes: [UInt64] = [0x100, 0x107, 0x10B, 0x10C, 0x10E, 0x110, 0x200, 0, .max]
    private static let ends = [
        CQUIC_CLOSED_BY_APPLICATION, CQUIC_CLOSED_BY_TRANSPORT, CQUIC_STATELESS_RESET, CQUIC_IDLE_TIMEOUT,
        CQUIC_VIOLATION_OF_TRANSPORT,
        CQUIC_VIOLATION_OF_APPLICATION, CQUIC_FAILURE,
    ]
    private static let fields = [
        (":status", "200"), (":status", "103"), (":status", "100"), (":status", "204"), (":status", "304"), (":status", "404"),
        (":status", "x"), ("content-length", "5"), ("content-length", "-1"), ("content-length", "0"), ("Upper", "a"), ("a", "b"),
        ("", ""), (":path", "/"), ("connection", "close"), ("set-cookie", String(repeating: "c", count: 9_000)),
    ]

    init(_ bytes: some Sequence<UInt8>, on loop: EmbeddedEventLoop = EmbeddedEventLoop()) {
        self.bytes = ArraySlice(bytes)
        network = FakeQUICNetwork(loop)
        let first = self.bytes.popFirst() ?? 0
        isStrict = first & 1 == 0
        let allowed: UInt64 = [100, 3, 1, 300][Int(first >> 1 & 3)]
        network.beginning = [.handshakeCompleted, .requestsAllowed(allowed)]
        if first & 8 != 0 {
            network.beginning.append(.settings(sectionSize: first & 16 == 0 ? .max : 10, allowsExtendedConnect: true))
        }
        if first & 32 != 0 { network.beginning.append(.goingAway(0)) }
    }

    func run() {
        while !bytes.isEmpty, faults.isEmpty {
            step()
            proceed()
            check()
        }
        finish()
    }

    // MARK: Choices

    private func next() -> Int { Int(bytes.popFirst() ?? 0) }

    private func choose<Element>(_ list: [Element]) -> Element? { list.isEmpty ? nil : list[next() % list.count] }

    private var exchanging: [HTTP3HistoryLoad] { loads.filter { $0.exchange != nil && $0.outcome == nil } }

    /// A peer, the newest more often than others.
    private func choosePeer() -> FakeQUICNetwork.Peer? {
        let choice = next()
        return choice & 3 != 0
            ? network.peers.last : network.peers.isEmpty ? nil : network.peers[choice / 4 % network.peers.count]
    }

    private func note(_ step: String) { steps.append(step) }

    // MARK: Steps

    private func step() {
        switch next() % 32 {
        case 0...3: begin(FakeQUICNetwork.message(), "GET")
        case 4: begin(FakeQUICNetwork.message("HEAD"), "HEAD")
        case 5: begin(FakeQUICNetwork.message("PUT", body: .data(Data(count: next() * 1_000))), "PUT")
        case 6: begin(FakeQUICNetwork.message("PUT", body: .data(Data(count: 100)), expectsContinue: true), "PUT, expecting 100")
        case 7: beginStream()
        case 8: begin(FakeQUICNetwork.message("CONNECT", asksToSwitch: true), "CONNECT")
        case 9...11: respond()
        case 12...16: arrive { network.receive($0, at: $1) }
        case 17: arrive { network.expire($0, at: $1) }
        case 18:
            arrive { events, peer in
                peer.fake.sending = events
                peer.fake.batches = events.count & 7
                peer.quic.scheduleFlush()
            }
        case 19: sendBodies()
        case 20...23: stepOfLoad()
        case 24: stepOfNetwork()
        case 25: stepOfPool()
        case 26:
            let time = TimeAmount.milliseconds(Int64(next()) * 20)
            note("\(time.nanoseconds / 1_000_000) ms")
            network.advance(time)
        default: take()
        }
        network.loop.run()
    }

    private func begin(_ message: OutgoingMessage, _ name: String, _ stream: HistoryBody? = nil) {
        guard loads.count < Self.maximumLoads else { return }
        note("load \(loads.count): \(name)")
        loads.append(HTTP3HistoryLoad(loads.count, message, stream, network))
    }

    private func beginStream() {
        let choice = next()
        let body = HistoryBody(pieces: choice & 7, fails: choice & 8 != 0)
        let length: Int64? = choice & 16 == 0 ? nil : Int64(choice >> 5) * 100
        begin(FakeQUICNetwork.message("POST", body: .stream(body, length: length)), "POST of a stream", body)
    }

    /// Lets a load that has a connection begin its exchange.
    private func proceed() {
        for load in loads where load.proceed() { note("load \(load.number) begins on \(load.stream ?? -1)") }
        network.loop.run()
    }

    /// A whole response, whose length may be wrong.
    private func respond() {
        guard let load = choose(exchanging), let peer = peer(of: load), let id = load.stream else { return }
        let (choice, length) = (next(), next() * 50)
        var events: [FakeQUIC.Event] = [.sectionBegan(id), .field(id, ":status", choice & 8 == 0 ? "200" : "404")]
        if choice & 1 == 0 { events.append(.field(id, "content-length", String(choice & 16 == 0 ? length : length + 1))) }
        events.append(.sectionEnded(id, endsStream: length == 0))
        if length > 0 { events += [.content(id, length / 2), .content(id, length - length / 2)] }
        if choice & 6 == 6 {
            events += [.sectionBegan(id, isTrailers: true), .field(id, "a", "b"), .sectionEnded(id, endsStream: true)]
        }
        events.append(.responseEnded(id))
        if choice & 32 != 0 { events.append(.closed(id)) }
        note("\(events)")
        network.receive(events, at: peer)
    }

    private func arrive(_ pass: ([FakeQUIC.Event], FakeQUICNetwork.Peer) -> Void) {
        guard let peer = choosePeer() else { return }
        let events = (0..<next() % 8).map { _ in event(peer) }
        note("\(peer.connection.id): \(events)")
        peer.fake.isStrict = isStrict
        pass(events, peer)
    }

    private func event(_ peer: FakeQUICNetwork.Peer) -> FakeQUIC.Event {
        let kind = next()
        let id = Int64(next() % max(1, peer.fake.streams.count + (isStrict ? 0 : 1))) * 4
        return switch kind % 32 {
        case 0...3: .sectionBegan(id, isTrailers: kind & 32 != 0)
        case 4...9: choose(Self.fields).map { .field(id, $0.0, $0.1) } ?? .sectionEnded(id)
        case 10...13: .sectionEnded(id, endsStream: kind & 64 != 0)
        case 14...17: .content(id, next() * (kind & 64 == 0 ? 1 : 2_000))
        case 18, 19: .responseEnded(id)
        case 20, 21: .bodySent(id)
        case 22: .stopped(id)
        case 23: .reset(id, Self.codes[next() % Self.codes.count])
        case 24: .closed(id, Self.codes[next() % Self.codes.count])
        case 25: .goingAway(Int64(next() % 12) * 4)
        case 26...28: .requestsAllowed(UInt64(next() * 4))
        case 29: .settings(sectionSize: UInt64(next() * 10), allowsExtendedConnect: kind & 32 != 0)
        case 30: .handshakeCompleted
        default:
            .over(
                Self.ends[next() % Self.ends.count], code: Self.codes[next() % Self.codes.count],
                stream: kind & 32 == 0 ? -1 : id,
                text: "words")
        }
    }

    /// Sends all pieces of bodies that were passed.
    private func sendBodies() {
        for peer in network.peers {
            peer.fake.sending = peer.fake.streams.filter { $0.value.owesSent }.keys.sorted().map { .bodySent($0) }
            peer.quic.scheduleFlush()
        }
    }

    private func stepOfLoad() {
        let choice = next()
        guard let load = choose(loads) else { return }
        note("load \(load.number): \(choice % 8)")
        switch choice % 8 {
        case 0: load.exchange?.cancel()
        case 1:
            load.control.abort(LoadError(.timedOut, "late"))
            load.exchange?.cancel()
        case 2: load.control.suspend()
        case 3, 4: load.control.resume(now: network.loop.now)
        case 5: load.exchange?.priorityChanged(choice & 8 == 0 ? 0.25 : 0.75)
        case 6: load.write(next() * 100)
        default: load.linger()
        }
    }

    private func stepOfNetwork() {
        let choice = next()
        guard let peer = choosePeer() else { return }
        note("\(peer.connection.id): network \(choice % 6)")
        peer.fake.migrates = choice & 8 == 0
        network.reopens = choice & 16 == 0
        switch choice % 6 {
        case 0: peer.quic.socket?.channel?.close(promise: nil)
        case 1: peer.connection.networkIsLost(LoadError(.connectionLost, "the network is gone"))
        case 2: peer.quic.socket?.channel?.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel)
        case 3: peer.fake.refusesRequests = choice & 32 == 0
        case 4: network.receive([], at: peer)
        default: peer.connection.findBetterRoute()
        }
    }

    private func stepOfPool() {
        let choice = next()
        guard let peer = choosePeer() else { return }
        note("\(peer.connection.id): pool \(choice % 4)")
        switch choice % 4 {
        case 0: network.pool.closeIdle()
        case 1: peer.connection.giveUp()
        case 2: network.pool.retire(peer.connection.facts)
        default: if peer.connection.isIdle { peer.connection.close() }
        }
    }

    private func take() {
        for load in loads { load.take() }
    }

    // MARK: Checks

    private func peer(of load: HTTP3HistoryLoad) -> FakeQUICNetwork.Peer? {
        network.peers.first { $0.connection === load.connection }
    }

    private func expect(_ condition: Bool, _ fault: @autoclosure () -> String) {
        if !condition { faults.append(fault()) }
    }

    private func check() {
        for fake in network.fakes { faults += fake.faults }
        for peer in network.peers {
            expect(peer.fake.destroyCount <= 1, "destroyed twice")
            expect(peer.quic.isOpen == (peer.fake.destroyCount == 0), "open, and destroyed")
            if !peer.connection.isOpen {
                expect(peer.connection.isIdle, "the connection has ended, but not its streams")
                expect(peer.fake.destroyCount == 1, "the connection has ended, but was not destroyed")
            }
        }
        for load in loads {
            if let connection = load.connection, !connection.isOpen {
                expect(load.exchange?.isOver != false, "the connection has ended, but not the exchange of load \(load.number)")
            }
            load.check(peer(of: load)?.fake) { self.faults.append("load \(load.number): \($0)") }
        }
    }

    private func finish() {
        for load in loads { load.control.resume(now: network.loop.now) }
        proceed()
        network.pool.shutDown()
        network.loop.run()
        // A load whose connection takes no more requests waits for another, in vain.
        for _ in 0..<2 { proceed() }
        for peer in network.peers { peer.connection.close() }
        network.advance(.seconds(100))
        take()
        check()
        for load in loads {
            if let need = load.need { faults.append("load \(load.number) waits for \(need)") }
            if load.outcome == .some("complete") { completeCount += 1 } else { failedCount += 1 }
            load.release()
        }
        for fake in network.fakes { expect(fake.destroyCount == 1, "not destroyed") }
        network.finish()
        for load in loads { expect(load.pump == nil, "a write of load \(load.number)'s body is never answered") }
    }
}

/// A body that is read in pieces.
//
// `@unchecked`: it is used on the thread of the loop.
final class HistoryBody: BodyStream, @unchecked Sendable {
    private var pieces: Int
    private let fails: Bool
    private(set) var isClosed = false
    private(set) var readCount = 0

    init(pieces: Int, fails: Bool) {
        self.pieces = pieces
        self.fails = fails
    }

    func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        readCount += 1
        guard pieces == 0 else {
            pieces -= 1
            return reply(.success(Data(count: min(count, 100))))
        }
        reply(fails ? .failure(ChannelError.eof) : .success(Data()))
    }

    func close() { isClosed = true }
}
