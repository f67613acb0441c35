// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import NIOEmbedded
import Testing

/// An HTTP/2 connection that ends while its streams are in any state.
@Suite struct HTTP2EndTests {
    private typealias Load = (exchange: Exchange, control: LoadControl)

    /// One load in each state; the streams are numbered 1, 3 and so on, in this order.
    private static var states: [(name: String, begin: (EmbeddedPeer) throws -> Load, answer: (UInt8) -> [UInt8])] {
        let large = Data(count: 500_000)
        let get = { (peer: EmbeddedPeer) in try peer.begin() }
        let put = { (peer: EmbeddedPeer) in try peer.begin("PUT", body: .data(large)) }
        return [
            ("sent", get, { _ in [] }),
            ("its body waits for a window", put, { _ in [] }),
            ("it waits for 100", { try $0.begin("PUT", body: .data(large), expectsContinue: true) }, { _ in [] }),
            // A literal field without indexing, with the name of entry 8 and the value 103.
            ("after 103", get, { EmbeddedPeer.head($0, [0x08, 0x03] + Array("103".utf8)) }),
            ("after the head", get, { EmbeddedPeer.head($0) }),
            ("in the body", get, { EmbeddedPeer.head($0) + EmbeddedPeer.data($0, "part") }),
            ("in both bodies", put, { EmbeddedPeer.head($0) + EmbeddedPeer.data($0, "part") }),
        ]
    }

    private static var ends: [(name: String, isTold: Bool, end: (EmbeddedPeer) -> Void)] {
        [
            ("the channel is closed", false, { $0.channel.close(promise: nil) }),
            ("the channel says so", false, { $0.channel.pipeline.fireChannelInactive() }),
            ("an error", false, { $0.channel.pipeline.fireErrorCaught(ChannelError.ioOnClosedChannel) }),
            ("the network is gone", false, { $0.connection.networkIsLost(LoadError(.connectionLost, "gone")) }),
            (
                "the server breaks the protocol", true,
                { $0.receive(EmbeddedPeer.frame(HTTP2Frames.pushPromise, flags: 4, stream: 1, [0, 0, 0, 2])) }
            ),
            (
                "GOAWAY, and the end", false,
                { peer in
                    peer.receive(EmbeddedPeer.frame(HTTP2Frames.goAway, [0, 0, 0, 5, 0, 0, 0, 0]))
                    peer.channel.close(promise: nil)
                }
            ),
            (
                "a probe without an answer", false,
                { peer in
                    peer.timeOut((try? peer.begin()) ?? { preconditionFailure("no load") }())
                    peer.loop.advanceTime(by: .seconds(5))
                }
            ),
        ]
    }

    @Test(arguments: ends.indices) func `a connection that ends fails each of its loads once, in any state`(
        index: Int
    ) throws {
        let (name, isTold, end) = Self.ends[index]
        let peer = try EmbeddedPeer()
        defer { peer.finish() }
        var loads: [Load] = []
        for (place, state) in Self.states.enumerated() {
            loads.append(try state.begin(peer))
            let answer = state.answer(UInt8(2 * place + 1))
            if !answer.isEmpty { peer.receive(answer) }
        }
        for load in loads { #expect(!load.exchange.hasWholeBody && load.control.failure == nil) }
        peer.loop.advanceTime(by: .milliseconds(100))
        end(peer)
        peer.loop.run()
        let kinds = loads.map { Self.end(of: $0.exchange) }
        for (state, kind) in zip(Self.states, kinds) {
            #expect(kind == (isTold ? .badServerResponse : .connectionLost), "\(state.name): \(name)")
        }
        #expect(peer.connection.isIdle && !peer.connection.channelIsActive, "\(name)")
        // Later events change nothing, and no load can begin on the connection.
        peer.channel.close(promise: nil)
        peer.loop.advanceTime(by: .seconds(60))
        for load in loads { load.exchange.cancel() }
        #expect(loads.map { Self.end(of: $0.exchange) } == kinds)
        #expect(throws: LoadError.self) { try peer.begin() }
    }

    /// The write that the body waits for completes after the stream is gone.
    @Test(arguments: [4, 500_000]) func `a response that arrives before the request's body was written is the result`(
        length: Int
    ) throws {
        let peer = try EmbeddedPeer()
        defer { peer.finish() }
        let (exchange, _) = try peer.begin("PUT", body: .data(Data(count: length)), runs: false)
        // The larger window removes the stream from the queue of senders.
        let window = EmbeddedPeer.frame(HTTP2Frames.windowUpdate, [0, 16, 0, 0])
        peer.receive(EmbeddedPeer.head(1) + EmbeddedPeer.data(1, "enough", ends: true) + window)
        // A body that is not completely written is sent to its end, because the server may need it (RFC 9113, section 8.1).
        if length > 65_535 {
            #expect(exchange.hasHead && !exchange.hasWholeBody && !peer.connection.isIdle)
            peer.receive(EmbeddedPeer.frame(HTTP2Frames.windowUpdate, stream: 1, [0, 16, 0, 0]))
        }
        #expect(exchange.head?.status == 200 && exchange.hasWholeBody && Self.end(of: exchange) == nil)
        #expect(peer.connection.isIdle && peer.connection.channelIsActive)
        let sent = peer.takeSent()
        #expect(!sent.contains { $0.type == HTTP2Frames.reset })
        #expect(sent.filter { $0.type == HTTP2Frames.data }.reduce(0) { $0 + $1.payload.count } == length)
    }

    /// Returns the error of a load after the load has processed everything that arrived before the end.
    private static func end(of exchange: Exchange) -> LoadError.Kind? {
        while let event = exchange.takeEvent() { if case .head = event { break } }
        let result = Outcome(exchange)
        Task.immediate {
            do throws(LoadError) {
                while try await result.exchange.next() != nil {}
            } catch { result.kind = error.kind }
            result.isOver = true
        }
        #expect(result.isOver, "the load never ends")
        return result.isOver ? result.kind : .unknown
    }
}

/// Passes an exchange into a task that ends before the function that creates the task returns.
//
// `@unchecked`: everything happens on one thread, one after the other.
private final class Outcome: @unchecked Sendable {
    let exchange: Exchange
    var kind: LoadError.Kind?
    var isOver = false

    init(_ exchange: Exchange) { self.exchange = exchange }
}
