// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import NIOCore
import Testing

/// The sizes of stream windows (RFC 9113, section 5.2): they follow the round-trip time, up to a limit of the process.
@Suite struct HTTP2WindowTests {
    private func peer(roundTrip: TimeAmount) throws -> EmbeddedPeer {
        let peer = try EmbeddedPeer()
        peer.loop.advanceTime(by: roundTrip)
        peer.receive(EmbeddedPeer.frame(HTTP2Frames.settings, flags: HTTP2Frames.Flag.ack))
        _ = peer.takeSent()
        return peer
    }

    /// The increments of the streams' windows since the last call.
    private func widened(_ peer: EmbeddedPeer) -> [Int: Int] {
        var found: [Int: Int] = [:]
        for frame in peer.takeSent() where frame.type == HTTP2Frames.windowUpdate && frame.stream != 0 {
            found[frame.stream, default: 0] += frame.payload.reduce(0) { $0 << 8 | Int($1) }
        }
        return found
    }

    @Test func `the first GET over a long round trip has a large window at once`() throws {
        let rows: [(roundTrip: TimeAmount, method: String, window: Int)] = [
            (.milliseconds(50), "GET", 33_550_000), (.milliseconds(10), "GET", 6_710_000), (.milliseconds(1), "GET", 1 << 20),
            (.seconds(60), "GET", 1 << 25), (.milliseconds(50), "POST", 1 << 20), (.milliseconds(50), "HEAD", 1 << 20),
        ]
        for (roundTrip, method, window) in rows {
            let peer = try peer(roundTrip: roundTrip)
            defer { peer.finish() }
            _ = try peer.begin(method)
            #expect(widened(peer)[1, default: 0] == window - 1 << 20, "\(method) over \(roundTrip)")
            // The windows of later streams depend on the responses.
            _ = try peer.begin()
            #expect(widened(peer).isEmpty)
        }
    }

    @Test func `the sum of large windows is limited in the process, and each is released with its stream`() throws {
        let peers = try (0..<12).map { _ in try peer(roundTrip: .seconds(1)) }
        defer { for peer in peers { peer.finish() } }
        let one = 1 << 25 - 1 << 20
        var lent = 0
        for peer in peers {
            _ = try peer.begin()
            lent += widened(peer)[1, default: 0]
        }
        #expect(lent <= 1 << 28 && lent > 1 << 28 - one)
        // The process's limit is exhausted.
        let late = try peer(roundTrip: .seconds(1))
        defer { late.finish() }
        _ = try late.begin()
        #expect(widened(late).isEmpty)
        for peer in peers { peer.finish() }
        late.receive(EmbeddedPeer.head(1, ends: true))
        _ = try late.begin()
        #expect(widened(late) == [3: one])
    }
}
