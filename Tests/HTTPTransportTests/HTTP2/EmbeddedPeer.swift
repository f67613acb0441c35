// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import NIOEmbedded

/// An HTTP/2 connection on a loop whose time the test advances, and the frames that the connection sends.
final class EmbeddedPeer {
    struct Frame: Equatable {
        var type: UInt8
        var flags: UInt8
        var stream: Int
        var payload: [UInt8]
    }

    let channel = EmbeddedChannel()
    let connection: HTTP2Connection
    private var controls: [LoadControl] = []
    private var written: [UInt8] = []

    var loop: EmbeddedEventLoop { channel.embeddedEventLoop }

    init() throws {
        let facts = ConnectionFacts(
            localAddress: nil, localPort: nil, remoteAddress: "127.0.0.1", remotePort: 80, tlsVersion: nil, tlsCipherSuite: nil,
            domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil, secureConnectionEnd: nil,
            connectEnd: nil)
        connection = HTTP2Connection(id: 1, facts: facts, loop: channel.embeddedEventLoop)
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        receive(Self.frame(HTTP2Frames.settings))
        _ = takeSent()
    }

    // MARK: The client's side

    func begin(
        _ method: String = "GET", body: OutgoingBody = .none, expectsContinue: Bool = false, runs: Bool = true
    ) throws -> (exchange: Exchange, control: LoadControl) {
        let head = RequestHead(method: method, target: "/", headers: HeaderBlock([("Host", "a.test")]))
        let control = LoadControl(on: LoopExecutor(loop), now: loop.now)
        let message = OutgoingMessage(head: head, body: body, expectsContinue: expectsContinue)
        let exchange = try connection.begin(message, control: control)
        control.enter(.exchanging(exchange))
        controls.append(control)
        // Without this run, writes would wait for the loop's next turn.
        if runs { loop.run() }
        return (exchange, control)
    }

    /// Makes the load time out.
    func timeOut(_ load: (exchange: Exchange, control: LoadControl)) {
        load.control.abort(LoadError(.timedOut, "late"))
        load.exchange.cancel()
        loop.run()
    }

    // MARK: The server's side

    func receive(_ bytes: [UInt8]) {
        channel.pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        channel.pipeline.fireChannelReadComplete()
        loop.run()
    }

    /// Returns the frames that the connection sent since the last call.
    func takeSent() -> [Frame] {
        loop.run()
        while let buffer = try? channel.readOutbound(as: ByteBuffer.self) { written += Array(buffer.readableBytesView) }
        let preface = Array("\(HTTP2Frames.preface)".utf8)
        if written.starts(with: preface) { written.removeFirst(preface.count) }
        var frames: [Frame] = []
        while written.count >= 9 {
            let length = Int(written[0]) << 16 | Int(written[1]) << 8 | Int(written[2])
            let stream = written[5..<9].reduce(0) { $0 << 8 | Int($1) }
            frames.append(Frame(type: written[3], flags: written[4], stream: stream, payload: Array(written[9..<9 + length])))
            written.removeFirst(9 + length)
        }
        return frames
    }

    /// Returns the payloads of the PING frames that the connection sent since the last call, without acknowledgements.
    func takePings() -> [[UInt8]] { takeSent().filter { $0.type == HTTP2Frames.ping && $0.flags == 0 }.map(\.payload) }

    static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type, flags, 0, 0, 0, stream] + payload
    }

    static func pong(_ payload: [UInt8]) -> [UInt8] { frame(HTTP2Frames.ping, flags: HTTP2Frames.Flag.ack, payload) }

    /// Returns a HEADERS frame with `:status`, which is the static table's entry for 200 by default.
    static func head(_ stream: UInt8, _ status: [UInt8] = [0x88], ends: Bool = false) -> [UInt8] {
        frame(HTTP2Frames.headers, flags: HTTP2Frames.Flag.endHeaders | (ends ? 1 : 0), stream: stream, status)
    }

    static func data(_ stream: UInt8, _ text: String, ends: Bool = false) -> [UInt8] {
        frame(HTTP2Frames.data, flags: ends ? 1 : 0, stream: stream, Array(text.utf8))
    }

    /// Closes the channel, and detaches all loads from their exchanges, which would retain each other otherwise.
    func finish() {
        _ = try? channel.finish(acceptAlreadyClosed: true)
        for control in controls { control.enter(.elsewhere) }
    }
}

extension Exchange {
    /// The error of the exchange's load, or nil if the load has not failed.
    var failureKind: LoadError.Kind? {
        do throws(LoadError) {
            _ = try hasEvent()
            return nil
        } catch { return error.kind }
    }
}
