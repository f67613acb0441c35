//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
import Glibc
#endif

/// Runs a script on one accepted connection, on the connection's event loop.
final class ScriptedConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Waiting {
        case nothing, write, bytes(Int), body(Int), frames(Int), requestEnd, gate, forever
    }

    private let script: ServerScript
    private let journal: Watched<ServerJournal>
    private let number: Int
    private let greeting: [SocketEffect]
    private var reader = RequestReader()
    /// The bytes received since reading was stopped; nil while reading.
    private var held: [UInt8]?
    /// The beginning of a WebSocket frame; nil while the connection carries requests.
    private var frame: [UInt8]?
    private var frameCount = 0
    private var effects: [SocketEffect] = []
    private var waiting = Waiting.nothing
    private var requestCount = 0
    /// The position of the current request in the journal.
    private var order = 0
    /// Whether the current request was answered when its head arrived.
    private var isAnswered = false
    private var bodyLength = 0
    private var bytesReceived = 0
    private var isEnded = true
    private var isClosed = false
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
        if context.channel.isActive { begin() }
    }

    func channelActive(context: ChannelHandlerContext) { begin() }

    private func begin() {
        guard !greeting.isEmpty, effects.isEmpty, requestCount == 0 else { return }
        effects = greeting
        advance()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data).readableBytesView
        bytesReceived += bytes.count
        journal.change { journal in
            journal.connections[number].bytesReceived += bytes.count
            let room = ServerJournal.maximumReceivedBytes - journal.connections[number].received.count
            if room > 0 { journal.connections[number].received.append(contentsOf: bytes.prefix(room)) }
        }
        // Bytes that arrive although reading was stopped, as at the end of the connection, are processed when reading starts
        // again.
        if held != nil { held?.append(contentsOf: bytes) } else { feed(bytes) }
        advance()
    }

    func channelInactive(context: ChannelHandlerContext) {
        isClosed = true
        let partial = reader.current
        let order = order
        journal.change { journal in
            if var partial {
                partial.connection = journal.requests[order].connection
                partial.number = journal.requests[order].number
                partial.order = order
                journal.requests[order] = partial
            }
            journal.connections[number].isClosed = true
        }
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    // MARK: Requests

    private func handle(_ event: RequestReader.Event) {
        switch event {
        case .head(var request):
            request.connection = number
            request.number = requestCount
            requestCount += 1
            bodyLength = 0
            isEnded = false
            order = journal.change { [request] journal in
                var request = request
                request.order = journal.requests.count
                journal.requests.append(request)
                return request.order
            }
            request.order = order
            if let early = answer({ try script.early(request) }) {
                isAnswered = true
                effects += early.effects
            } else {
                isAnswered = false
                if request.header("Expect")?.lowercased() == "100-continue" {
                    effects.append(.write("HTTP/1.1 100 Continue\r\n\r\n"))
                }
            }
        case .body(let total):
            bodyLength = total
        case .end(var request):
            isEnded = true
            bodyLength = request.bodyLength
            request.connection = number
            request.number = requestCount - 1
            request.order = order
            let complete = request
            if !isAnswered, let reply = answer({ try script.reply(complete) }) { effects += reply.effects }
            journal.change { $0.requests[complete.order] = complete }
        case .unreadable(let what):
            journal.change { [number] in $0.errors.append("connection \(number) received an unreadable \(what)") }
        }
    }

    private func answer(_ make: () throws -> ScriptedReply?) -> ScriptedReply? {
        do {
            return try make()
        } catch {
            journal.change { [number] in $0.errors.append("the script failed on connection \(number): \(error)") }
            return [.close]
        }
    }

    // MARK: Effects

    private func advance() {
        while !isClosed, let context {
            switch waiting {
            case .nothing: break
            case .write, .gate, .forever: return
            case .bytes(let count):
                guard bytesReceived >= count else { return }
                waiting = .nothing
            case .body(let count):
                guard bodyLength >= count || isEnded else { return }
                waiting = .nothing
            case .frames(let count):
                guard frameCount >= count else { return }
                waiting = .nothing
            case .requestEnd:
                guard isEnded else { return }
                waiting = .nothing
            }
            guard !effects.isEmpty else { return }
            perform(effects.removeFirst(), context: context)
        }
    }

    private func perform(_ effect: SocketEffect, context: ChannelHandlerContext) {
        switch effect {
        case .write(let bytes): write(bytes, context: context)
        case .writeSlowly(let bytes):
            guard let first = bytes.first else { return }
            if bytes.count > 1 { effects.insert(.writeSlowly(Array(bytes.dropFirst())), at: 0) }
            write([first], context: context)
        case .repeat(let bytes, let count):
            guard count > 0 else { return }
            if count > 1 { effects.insert(.repeat(bytes, count: count - 1), at: 0) }
            write(bytes, context: context)
        case .awaitBytes(let count): waiting = .bytes(count)
        case .awaitBody(let count): waiting = .body(count)
        case .awaitRequestEnd: waiting = .requestEnd
        case .gate(let name): wait(at: name, context: context)
        case .reach(let name): journal.change { $0.reached[name, default: 0] += 1 }
        case .pause(let milliseconds):
            waiting = .gate
            context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) { self.go() }
        case .stall: waiting = .forever
        case .close: end { context.close(promise: nil) }
        case .closeAbruptly: end { Self.closeTransport(context) }
        case .shutdownOutput: context.close(mode: .output, promise: nil)
        case .reset:
            let linger = linger(l_onoff: 1, l_linger: 0)
            _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(linger)
            end { Self.closeTransport(context) }
        case .stopReading:
            held = held ?? []
            _ = context.channel.setOption(.autoRead, value: false)
        case .startReading:
            _ = context.channel.setOption(.autoRead, value: true)
            if let bytes = held.take() { feed(bytes) }
        case .readFrames: frame = frame ?? []
        case .awaitFrames(let count): waiting = .frames(count)
        }
    }

    private func feed(_ bytes: some Collection<UInt8>) {
        if let beginning = frame {
            var bytes = beginning + bytes
            let frames = ClientFrame.taken(from: &bytes)
            frame = bytes
            frameCount += frames.count
            journal.change { $0.connections[number].frames += frames }
            return
        }
        for event in reader.feed(bytes) { handle(event) }
    }

    private func end(_ close: () -> Void) {
        waiting = .forever
        effects = []
        close()
    }

    /// Closes the socket without close_notify.
    private static func closeTransport(_ context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        if let secure = try? pipeline.context(handlerType: NIOSSLServerHandler.self) {
            secure.close(promise: nil)
        } else {
            context.close(promise: nil)
        }
    }

    private func write(_ bytes: [UInt8], context: ChannelHandlerContext) {
        waiting = .write
        let loop = context.eventLoop.assumeIsolated()
        var buffer = context.channel.allocator.buffer(capacity: bytes.count)
        buffer.writeBytes(bytes)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenSuccess { [journal, number] in
            journal.change { $0.connections[number].bytesWritten += bytes.count }
            loop.execute { self.go() }
        }
        context.writeAndFlush(wrapOutboundOut(buffer), promise: written)
    }

    private func wait(at gate: String, context: ChannelHandlerContext) {
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let mayPass = journal.change { journal in
            journal.reached[gate, default: 0] += 1
            if journal.openGates.contains(gate) { return true }
            journal.blocked[gate, default: []].append { loop.execute { bound.value.go() } }
            return false
        }
        waiting = mayPass ? .nothing : .gate
    }

    /// Continues after a write or a gate.
    private func go() {
        if case .forever = waiting { return }
        waiting = .nothing
        advance()
    }
}
