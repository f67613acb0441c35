// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Performs scripts on one accepted connection of HTTP/1.1, on the connection's event loop.
final class ScriptedConnection: ChannelInboundHandler, ScriptCarrier {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let script: ServerScript
    private let journal: Watched<ServerJournal>
    private let number: Int
    private let greeting: [SocketEffect]
    private var reader = RequestReader()
    /// The bytes received since reading was stopped; nil while reading.
    private var held: [UInt8]?
    /// The beginning of a WebSocket frame; nil while the connection carries requests.
    private var frame: [UInt8]?
    private var requestCount = 0
    /// Whether the content of the current response is chunked.
    private var isChunked = false
    private var run: ScriptRun?
    private var context: ChannelHandlerContext?

    init(script: ServerScript, journal: Watched<ServerJournal>, number: Int) {
        self.script = script
        self.journal = journal
        self.number = number
        greeting = script.greeting(number)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        run = ScriptRun(script, journal, on: context.eventLoop, by: self)
        if context.channel.isActive { begin() }
    }

    func channelActive(context: ChannelHandlerContext) { begin() }

    private func begin() {
        guard !greeting.isEmpty, let run, run.effects.isEmpty, requestCount == 0 else { return }
        run.begin(with: greeting)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data).readableBytesView
        run?.bytesReceived += bytes.count
        journal.change { $0.connections[number].take(bytes) }
        // Bytes that arrive although reading was stopped, as at the end of the connection, are processed when reading starts
        // again.
        if held != nil { held?.append(contentsOf: bytes) } else { feed(bytes) }
        run?.advance()
    }

    func channelInactive(context: ChannelHandlerContext) {
        let partial = reader.current
        let order = run?.order ?? 0
        journal.change { journal in
            if var partial {
                partial.connection = journal.requests[order].connection
                partial.number = journal.requests[order].number
                partial.order = order
                journal.requests[order] = partial
            }
            journal.connections[number].isClosed = true
        }
        run = nil
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    // MARK: Requests

    private func feed(_ bytes: some Collection<UInt8>) {
        if let beginning = frame {
            var bytes = beginning + bytes
            let frames = ClientFrame.taken(from: &bytes)
            frame = bytes
            run?.frameCount += frames.count
            journal.change { $0.connections[number].frames += frames }
            return
        }
        for event in reader.feed(bytes) { handle(event) }
    }

    private func handle(_ event: RequestReader.Event) {
        switch event {
        case .head(var request):
            request.connection = number
            request.number = requestCount
            requestCount += 1
            run?.takeHead(request)
        case .body(let total): run?.takeBody(total: total)
        case .end(var request):
            request.connection = number
            request.number = requestCount - 1
            request.order = run?.order ?? 0
            run?.takeEnd(request)
        case .unreadable(let what):
            journal.change { [number] in $0.errors.append("connection \(number) received an unreadable \(what)") }
        }
    }

    // MARK: Effects

    func perform(_ effect: SocketEffect, of run: ScriptRun) {
        guard let context else { return }
        switch effect {
        case .writeSlowly(let bytes):
            guard let first = bytes.first else { return }
            if bytes.count > 1 { run.repeatNext(.writeSlowly(Array(bytes.dropFirst()))) }
            write([first], of: run)
        case .repeat(let bytes, let count):
            guard count > 0 else { return }
            if count > 1 { run.repeatNext(.repeat(bytes, count: count - 1)) }
            write(bytes, of: run)
        case .content(let bytes, let times):
            guard times > 0 else { return }
            if times > 1 { run.repeatNext(.content(bytes, times: times - 1)) }
            write(ScriptedReply.framed(bytes, isChunked: isChunked), of: run)
        case .end(let trailers):
            if isChunked { write(ScriptedReply.lastChunk(trailers), of: run) }
        case .fail: perform(.close, of: run)
        case .readFrames: frame = frame ?? []
        case .close, .closeAbruptly, .reset:
            run.stop()
            _ = context.perform(effect)
        case .stopReading:
            held = held ?? []
            _ = context.perform(effect)
        case .startReading:
            _ = context.perform(effect)
            if let bytes = held.take() { feed(bytes) }
        default:
            if context.perform(effect) { return }
            if case .head(_, let fields, _, _) = effect { isChunked = ScriptedReply.isChunked(fields) }
            if let bytes = effect.bytes { write(bytes, of: run) }
        }
    }

    private func write(_ bytes: [UInt8], of run: ScriptRun) {
        run.waiting = .carrier
        context?.write(bytes, of: number, journal) { run.go() }
    }
}
