// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Performs scripts on one accepted connection of HTTP/2, one for each stream, on the connection's event loop.
///
/// It follows RFC 9113 as far as scripts about HTTP need it, and returns flow control credit at once. What a client may send is
/// checked by ``HTTP2ScriptedServer``.
final class ScriptedHTTP2Connection: ChannelInboundHandler, ScriptedStreamCarrier {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let frameSize = 16_384
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    let name = "HTTP/2"
    private let script: ServerScript
    private let journal: Watched<ServerJournal>
    private let number: Int
    private var buffer: [UInt8] = []
    private var isGreeted = false
    private var decoder = HPACKReader()
    /// The field block that is being received: its stream, whether it ends the request, and its bytes.
    private var block: (stream: UInt32, ends: Bool, bytes: [UInt8])?
    private var streams: [UInt32: ScriptedStream] = [:]
    private var requestCount = 0
    private var initialWindow = 65_535
    private var window = 65_535
    private var context: ChannelHandlerContext?

    init(script: ServerScript, journal: Watched<ServerJournal>, number: Int) {
        self.script = script
        self.journal = journal
        self.number = number
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data).readableBytesView
        journal.change { $0.connections[number].take(bytes) }
        buffer += bytes
        if !isGreeted {
            guard buffer.count >= Self.preface.count else { return }
            guard buffer.starts(with: Self.preface) else { return fail("does not begin with HTTP/2's preface") }
            buffer.removeFirst(Self.preface.count)
            isGreeted = true
            send(HTTP2Step.bytes(of: .settings))
        }
        var position = 0
        while buffer.count - position >= 9 {
            let head = buffer[position..<position + 9].map { Int($0) }
            let end = position + 9 + (head[0] << 16 | head[1] << 8 | head[2])
            guard buffer.count >= end else { break }
            let stream = UInt32(head[5] & 0x7F) << 24 | UInt32(head[6]) << 16 | UInt32(head[7]) << 8 | UInt32(head[8])
            take(
                HTTP2Frame.Kind(rawValue: UInt8(head[3])), HTTP2Frame.Flags(rawValue: UInt8(head[4])), stream,
                Array(buffer[position + 9..<end]))
            position = end
        }
        buffer.removeFirst(min(position, buffer.count))
    }

    func channelInactive(context: ChannelHandlerContext) {
        journal.change { [number] in $0.connections[number].isClosed = true }
        for stream in streams.values { stream.end(isReset: false) }
        streams = [:]
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func fail(_ problem: String) {
        journal.change { [number] in $0.errors.append("connection \(number) \(problem)") }
        context?.close(promise: nil)
    }

    // MARK: Frames

    private func take(_ kind: HTTP2Frame.Kind?, _ flags: HTTP2Frame.Flags, _ number: UInt32, _ payload: [UInt8]) {
        let stream = streams[number]
        switch kind {
        case .headers:
            let content = unpadded(flags, payload).dropFirst(flags.contains(.priority) ? 5 : 0)
            takeBlock(Array(content), flags, number, ends: flags.contains(.endStream))
        case .continuation: takeBlock(payload, flags, number, ends: false)
        case .data:
            guard !payload.isEmpty else { break }
            let credit = HTTP2Step.bytes(of: UInt32(payload.count))
            send(HTTP2Step.bytes(of: .windowUpdate, credit))
            if stream != nil, !flags.contains(.endStream) {
                send(HTTP2Step.bytes(of: .windowUpdate, stream: Int(number), credit))
            }
            stream?.takeBody(unpadded(flags, payload))
        case .settings where !flags.contains(.ack):
            for at in stride(from: 0, to: payload.count - 5, by: 6) where payload[at + 1] == 4 {
                let value = Int(Self.integer(payload[(at + 2)...]))
                for stream in streams.values { stream.window += value - initialWindow }
                initialWindow = value
            }
            send(HTTP2Step.bytes(of: .settings, flags: .ack))
            resume()
        case .ping where !flags.contains(.ack): send(HTTP2Step.bytes(of: .ping, flags: .ack, payload))
        case .windowUpdate:
            if number == 0 {
                window += Int(Self.integer(payload[...]))
            } else {
                stream?.window += Int(Self.integer(payload[...]))
            }
            resume()
        case .resetStream:
            stream?.end(isReset: true)
            streams[number] = nil
        default: break
        }
        if kind == .data, flags.contains(.endStream) { stream?.takeEnd() }
    }

    private func takeBlock(_ bytes: [UInt8], _ flags: HTTP2Frame.Flags, _ number: UInt32, ends: Bool) {
        var whole = block ?? (number, ends, [])
        whole.bytes += bytes
        block = whole
        guard flags.contains(.endHeaders), let context else { return }
        block = nil
        guard let fields = decoder.decode(whole.bytes) else { return fail("received an unreadable field block") }
        if let stream = streams[number] { return stream.takeEnd(trailers: fields) }
        let stream = ScriptedStream(Int(number), of: self, window: initialWindow, journal: journal)
        streams[number] = stream
        stream.begin(
            RecordedRequest(fields: fields, version: name, connection: self.number, number: requestCount),
            ScriptRun(script, journal, on: context.eventLoop, by: stream))
        requestCount += 1
        if whole.ends { stream.takeEnd() }
    }

    private func unpadded(_ flags: HTTP2Frame.Flags, _ payload: [UInt8]) -> ArraySlice<UInt8> {
        guard flags.contains(.padded), let padding = payload.first else { return payload[...] }
        return payload.dropFirst().dropLast(Int(padding))
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }

    // MARK: Sending

    func takeWindow(_ count: Int) -> Int {
        let granted = max(0, min(count, window))
        window -= granted
        return granted
    }

    func send(_ bytes: [UInt8], then done: @escaping () -> Void = {}) { context?.write(bytes, of: number, journal, then: done) }

    func perform(_ effect: SocketEffect) -> Bool { context?.perform(effect) ?? true }

    func content(_ bytes: [UInt8], of stream: Int, ends: Bool) -> [UInt8] {
        HTTP2Step.bytes(of: .data, flags: ends ? .endStream : [], stream: stream, bytes)
    }

    func fields(_ fields: SocketEffect.Fields, of stream: Int, ends: Bool) -> [UInt8] {
        func string(_ text: String) -> [UInt8] { HPACKBytes.integer(text.utf8.count, prefix: 7, first: 0) + text.utf8 }
        var block: [UInt8] = []
        for (name, value) in fields { block += [0] + string(name) + string(value) }
        var frames: [UInt8] = []
        for start in stride(from: 0, to: max(block.count, 1), by: Self.frameSize) {
            let end = min(start + Self.frameSize, block.count)
            var flags: HTTP2Frame.Flags = end == block.count ? .endHeaders : []
            if start == 0, ends { flags.insert(.endStream) }
            frames += HTTP2Step.bytes(
                of: start == 0 ? .headers : .continuation, flags: flags, stream: stream, Array(block[start..<end]))
        }
        return frames
    }

    func end(of stream: Int) -> [UInt8] { HTTP2Step.bytes(of: .data, flags: .endStream, stream: stream) }

    func failure(of stream: Int) -> [UInt8] {
        HTTP2Step.bytes(of: .resetStream, stream: stream, HTTP2Step.bytes(of: HTTP2Frame.ErrorCode.internalError.rawValue))
    }

    /// An indexed field with the index 0 (RFC 7541, section 6.1).
    func nonsense(of stream: Int) -> [UInt8] { HTTP2Step.bytes(of: .headers, flags: .endHeaders, stream: stream, [0x80]) }

    private func resume() {
        for stream in streams.values { stream.resume() }
    }
}
