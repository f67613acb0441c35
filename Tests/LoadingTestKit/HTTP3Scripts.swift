// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Runs the ``HTTP3Step``s of a server, each script in a task of its own.
final class HTTP3Scripts: Sendable {
    /// How many bytes of a stream may be under way.
    private static let window = 262_144

    private let journal: Watched<HTTP3Journal>
    private let greeting: HTTP3ScriptedServer.Greeting
    private let reply: HTTP3ScriptedServer.Reply
    private let tasks = Watched<[Task<Void, Never>]>([])

    init(
        journal: Watched<HTTP3Journal>, greeting: @escaping HTTP3ScriptedServer.Greeting,
        reply: @escaping HTTP3ScriptedServer.Reply
    ) {
        self.journal = journal
        self.greeting = greeting
        self.reply = reply
    }

    func greet(_ connection: Int, on channel: any Channel) {
        run(greeting(connection), on: channel, connection: connection, stream: nil)
    }

    func answer(_ request: HTTP3Request, on channel: any Channel) {
        do {
            run(try reply(request), on: channel, connection: request.connection, stream: request.stream)
        } catch {
            journal.change { $0.errors.append("\(error)") }
        }
    }

    func run(_ steps: [HTTP3Step], on channel: any Channel, connection: Int, stream: Int?) {
        let script = HTTP3Script(journal: journal, channel: channel, connection: connection, stream: stream, window: Self.window)
        let task = Task { await script.run(steps) }
        channel.closeFuture.whenComplete { _ in task.cancel() }
        tasks.change { $0.append(task) }
    }

    func stop() {
        for task in tasks.read({ $0 }) { task.cancel() }
    }
}

/// A script of a connection or of a request.
private struct HTTP3Script: Sendable {
    let journal: Watched<HTTP3Journal>
    let channel: any Channel
    let connection: Int
    let stream: Int?
    let window: Int

    /// Performs steps until the connection or the server is closed.
    func run(_ steps: [HTTP3Step]) async {
        try? await perform(steps)
    }

    private func perform(_ steps: [HTTP3Step]) async throws {
        for step in steps {
            try Task.checkCancellation()
            try await perform(step)
        }
    }

    private func perform(_ step: HTTP3Step) async throws {
        switch step {
        case .write(let bytes, let target, let times, let ends):
            for turn in 1...max(times, 1) {
                try await write(bytes, on: target.number(for: stream), ends: ends && turn == times)
            }
        case .reset(let code, let target): try await end(.reset, target, HTTP2Step.bytes(of: code) + [1])
        case .resetNow(let code, let target): try await end(.reset, target, HTTP2Step.bytes(of: code) + [0])
        case .stopSending(let code, let target): try await end(.stopSending, target, HTTP2Step.bytes(of: code))
        case .packet(let bytes, let times):
            try await send(RelayedFrame.bytes(of: .packet, HTTP2Step.bytes(of: UInt32(clamping: times)) + bytes))
        case .forge(let forgery): try await send(HTTP3Act(do: .forge, datagram: forgery).bytes)
        case .close(let code, let frame, let now): try await send(HTTP3Closing(code: code, frame: frame, now: now).bytes)
        case .mute(let isOn): try await send(HTTP3Act(do: .mute, on: isOn).bytes)
        case .deaf(let isOn): try await send(HTTP3Act(do: .deaf, on: isOn).bytes)
        case .forget: try await send(HTTP3Act(do: .forget).bytes)
        case .updateKey: try await send(HTTP3Act(do: .updateKey).bytes)
        case .repeating(let times, let steps):
            var turn = 0
            while turn < times {
                try await perform(steps)
                turn += 1
            }
        default: try await wait(step)
        }
    }

    private func wait(_ step: HTTP3Step) async throws {
        let id = HTTP3Journal.StreamID(connection: connection, stream: stream ?? 0)
        @Sendable func request(_ journal: HTTP3Journal) -> HTTP3Request? {
            journal.requests.last { $0.connection == connection && $0.stream == id.stream }
        }
        switch step {
        case .awaitRequestEnd:
            try await journal.value { request($0)?.isComplete == true || $0.resets[id] != nil ? () : nil }
        case .awaitBody(let count):
            try await journal.value { journal -> Void? in
                guard let one = request(journal) else { return nil }
                return one.bodyLength >= count || one.isComplete || journal.resets[id] != nil ? () : nil
            }
        case .awaitRequests(let count):
            try await journal.value { journal in
                journal.requests.filter { $0.connection == connection }.count >= count ? () : nil
            }
        case .awaitDelivery(let count, let target):
            let id = HTTP3Journal.StreamID(connection: connection, stream: target.number(for: stream))
            try await journal.value { $0.delivered[id, default: 0] >= count ? () : nil }
        case .gate(let name):
            journal.change { $0.reached[name, default: 0] += 1 }
            try await journal.value { $0.openGates.contains(name) ? () : nil }
        case .reach(let name): journal.change { $0.reached[name, default: 0] += 1 }
        case .pause(let milliseconds): try await Task.sleep(for: .milliseconds(milliseconds))
        case .stall: try await journal.value { _ -> Void? in nil }
        default: preconditionFailure("\(step) does not wait")
        }
    }

    /// Writes when the client has acknowledged enough of what was written before.
    private func write(_ bytes: [UInt8], on stream: Int, ends: Bool) async throws {
        let id = HTTP3Journal.StreamID(connection: connection, stream: stream)
        let sent = journal.change { journal in
            journal.sent[id, default: 0] += bytes.count
            return journal.sent[id, default: 0]
        }
        if sent > window {
            try await journal.value { [window] in sent - $0.delivered[id, default: 0] <= window + bytes.count ? () : nil }
        }
        try await send(RelayedFrame.bytes(of: ends ? .finish : .write, stream: stream, bytes))
    }

    private func end(_ command: RelayedFrame.Command, _ target: HTTP3Step.Target, _ content: [UInt8]) async throws {
        try await send(RelayedFrame.bytes(of: command, stream: target.number(for: stream), content))
    }

    private func send(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(channel.allocator.buffer(bytes: bytes)) }
}

/// The test's end of a connection of an ``HTTP3ScriptedServer``.
final class HTTP3RelayHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let number: Int
    private let opening: HTTP3Opening
    private let journal: Watched<HTTP3Journal>
    private let scripts: HTTP3Scripts
    private var reader = RelayedFrameReader()

    init(number: Int, opening: HTTP3Opening, journal: Watched<HTTP3Journal>, scripts: HTTP3Scripts) {
        self.number = number
        self.opening = opening
        self.journal = journal
        self.scripts = scripts
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(NIOAny(context.channel.allocator.buffer(bytes: opening.bytes)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        for frame in reader.feed(unwrapInboundIn(data).readableBytesView) {
            let request = journal.change { [number] in $0.take(frame, on: number) }
            if frame.event == .secured { scripts.greet(number, on: context.channel) }
            if let request { scripts.answer(request, on: context.channel) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        journal.change { [number] in $0.connections[number].isClosed = true }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
