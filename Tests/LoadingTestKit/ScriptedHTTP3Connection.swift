// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Performs scripts on one accepted connection of HTTP/3, one for each stream, on the event loop of the connection's relay.
///
/// The relay (``HTTP3Python``) speaks QUIC, reads the requests, and checks them against RFC 9114.
final class ScriptedHTTP3Connection: ChannelInboundHandler, ScriptedStreamCarrier {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let window = 262_144

    let name = "HTTP/3"
    private let script: ServerScript
    private let journal: Watched<ServerJournal>
    private let number: Int
    private let opening: HTTP3Opening
    private let window: Int
    private var reader = RelayedFrameReader()
    private var streams: [Int: ScriptedStream] = [:]
    private var requestCount = 0
    private var context: ChannelHandlerContext?

    init(script: ServerScript, journal: Watched<ServerJournal>, number: Int, opening: HTTP3Opening, window: Int?) {
        self.script = script
        self.journal = journal
        self.number = number
        self.opening = opening
        self.window = window ?? Self.window
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin(context) }
    }

    func channelActive(context: ChannelHandlerContext) { begin(context) }

    private func begin(_ context: ChannelHandlerContext) {
        var opening = opening
        opening.manual = false
        opening.tells = false
        context.writeAndFlush(NIOAny(context.channel.allocator.buffer(bytes: opening.bytes)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        for frame in reader.feed(unwrapInboundIn(data).readableBytesView) { take(frame) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        journal.change { [number] in $0.connections[number].isClosed = true }
        for stream in streams.values { stream.end(isReset: false) }
        streams = [:]
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Requests

    private func take(_ frame: RelayedFrame) {
        let stream = streams[frame.stream]
        switch frame.event {
        case .head:
            journal.change { [number] in $0.connections[number].take(frame.content) }
            begin(frame.fields, on: frame.stream)
        case .content:
            journal.change { [number] in $0.connections[number].take(frame.content) }
            stream?.takeBody(frame.content)
        case .end: stream?.takeEnd(trailers: frame.fields)
        case .reset, .stopped:
            stream?.end(isReset: true)
            streams[frame.stream] = nil
        case .credit:
            stream?.window += Int(frame.number)
            stream?.resume()
        case .problem:
            let problem = String(decoding: frame.content, as: UTF8.self)
            journal.change { [number] in $0.errors.append("connection \(number): \(problem)") }
        case .secured, .confirmed, .uni, .closed: break
        }
    }

    private func begin(_ fields: [(name: String, value: String)], on id: Int) {
        guard let context else { return }
        let stream = ScriptedStream(id, of: self, window: window, journal: journal)
        streams[id] = stream
        stream.begin(
            RecordedRequest(fields: fields, version: name, connection: number, number: requestCount),
            ScriptRun(script, journal, on: context.eventLoop, by: stream))
        requestCount += 1
    }

    // MARK: Sending

    /// The relay takes what the stream's window allows.
    func takeWindow(_ count: Int) -> Int { count }

    func send(_ bytes: [UInt8], then done: @escaping () -> Void = {}) { context?.write(bytes, of: number, journal, then: done) }

    func perform(_ effect: SocketEffect) -> Bool {
        switch effect {
        case .closeAbruptly:
            send(HTTP3Closing(code: HTTP3Code.internalError.rawValue).bytes)
            context?.close(promise: nil)
        case .shutdownOutput: context?.close(promise: nil)
        case .reset:
            send(HTTP3Act(do: .forge, datagram: .reset(isValid: true)).bytes + HTTP3Act(do: .forget).bytes)
            context?.close(promise: nil)
        case .stopReading: send(HTTP3Act(do: .deaf, on: true).bytes)
        case .startReading: send(HTTP3Act(do: .deaf, on: false).bytes)
        default: return context?.perform(effect) ?? true
        }
        return true
    }

    func content(_ bytes: [UInt8], of stream: Int, ends: Bool) -> [UInt8] {
        RelayedFrame.bytes(of: ends ? .finish : .write, stream: stream, HTTP3Bytes.frame(.data, bytes))
    }

    func fields(_ fields: SocketEffect.Fields, of stream: Int, ends: Bool) -> [UInt8] {
        RelayedFrame.bytes(of: ends ? .finish : .write, stream: stream, HTTP3Bytes.headers(fields))
    }

    func end(of stream: Int) -> [UInt8] { RelayedFrame.bytes(of: .finish, stream: stream) }

    func failure(of stream: Int) -> [UInt8] {
        let code = HTTP2Step.bytes(of: HTTP3Code.internalError.rawValue)
        return RelayedFrame.bytes(of: .reset, stream: stream, code + [1])
    }

    /// A field that refers to an entry beyond the static table (RFC 9204, section 4.5.2).
    func nonsense(of stream: Int) -> [UInt8] {
        let section = [0, 0] + HPACKBytes.integer(127, prefix: 6, first: 0xC0)
        return RelayedFrame.bytes(of: .write, stream: stream, HTTP3Bytes.frame(.headers, section))
    }
}

/// Error codes (RFC 9114, section 8.1; RFC 9204, section 6).
package enum HTTP3Code: UInt64, Sendable {
    case noError = 0x100
    case generalProtocolError, internalError, streamCreationError, closedCriticalStream, frameUnexpected, frameError
    case excessiveLoad, idError, settingsError, missingSettings, requestRejected, requestCancelled, requestIncomplete
    case messageError, connectError, versionFallback
    case decompressionFailed = 0x200
    case encoderStreamError, decoderStreamError
}
