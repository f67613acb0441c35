// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// An established WebSocket, between its exchange and its client.
///
/// Converts bytes to messages and messages to bytes.
///
/// ``WebSocketMachine`` decides how to react to the control frames of both sides. The app's messages, pings and close frame are
/// sent in order, as fast as the peer accepts them. While the app does not receive, the peer's bytes are not read.
///
/// Confined to the session's event loop.
final class WebSocketConnection {
    /// The number of bytes of a message that are written at a time.
    private static let pieceSize = 131_072
    /// The maximum number of frame events processed per turn of the loop, about a millisecond's work.
    ///
    /// One read can contain very many events, because an empty frame takes two bytes.
    private static let eventsPerTurn = 4_096

    /// The load.
    ///
    /// The load releases this connection when the load is over.
    private let load: Load
    private let exchange: Exchange
    private let subprotocol: String?
    private let pingInterval: TimeAmount?
    private var incoming: IncomingMessages
    // Unchecked because every message uses these; their methods do not call back into the connection.
    @exclusivity(unchecked) private var machine = WebSocketMachine()
    @exclusivity(unchecked) private var outgoing: OutgoingMessages
    /// The app's commands that are not written yet.
    @exclusivity(unchecked) private var commands = CircularBuffer<WebSocketCommand>()
    private var isFlushScheduled = false
    private var writesInFlight = 0
    /// Bytes that were read, but are processed only after the app has received earlier messages.
    private var unread = ByteBuffer()
    private var closeTimer: Scheduled<Void>?
    private var pingTimer: RepeatedTask?
    /// The error with which the load ends.
    private var failure: LoadError?

    init(_ exchange: Exchange, _ agreement: WebSocketAgreement, _ order: WebSocketOrder, of load: Load) {
        self.exchange = exchange
        self.load = load
        pingInterval = order.pingInterval.map { .nanoseconds(Int64(min(max($0, 0.001), 1e9) * 1e9)) }
        incoming = IncomingMessages(maximumSize: order.maximumMessageSize, deflate: agreement.deflate)
        outgoing = OutgoingMessages(deflate: agreement.deflate)
        subprotocol = agreement.subprotocol
    }

    // MARK: The load

    /// Exchanges messages until the connection is over.
    ///
    /// The request timeout does not apply here, because it limits only the handshake.
    func run() async throws(LoadError) {
        load.control.hold(now: .now())
        defer {
            load.control.endHold(now: .now())
            closeTimer?.cancel()
            pingTimer?.cancel()
        }
        load.transaction?.sentBodyLength = -1
        load.tell(.webSocket(.opened(subprotocol: subprotocol)))
        startPings()
        do {
            try await exchangeMessages()
        } catch {
            leave()
            throw error
        }
        if let failure { throw failure }
    }

    private func exchangeMessages() async throws(LoadError) {
        while machine.state != .closed {
            try load.control.check()
            sendMore()
            if unread.readableBytes > 0, machine.isReceiving, !load.control.isSuspended {
                guard takesMore else {
                    machine.noteHoldingBack()
                    try await load.waitForCredit { self.takesMore || self.maySend }
                    continue
                }
                // Let other work on the loop run.
                if parse() { await load.session.executor.turns.next() }
            } else if exchange.hasNext {
                guard let piece = try await nextPiece() else { return perform(machine.handle(.transportEnded)) }
                unread = piece
                machine.noteTraffic()
                let count = Int64(piece.readableBytes)
                load.transaction?.bodyBytesAfterDecoding += count
                load.received(count, total: load.body.received + count, expected: -1)
            } else {
                await load.control.wait()
            }
        }
    }

    /// Returns the peer's next bytes, or nil when the connection has ended; throws if the load must end.
    private func nextPiece() async throws(LoadError) -> ByteBuffer? {
        do {
            return try await exchange.next()
        } catch {
            try load.control.check()
            if machine.isReceiving { failure = error }
            return nil
        }
    }

    /// Ends the load before the closing handshake: sends a close frame without a code, and does not wait for the peer.
    private func leave() {
        perform(machine.handle(.appCloses(WebSocketClose())))
        flush()
        perform(machine.handle(.abandoned))
    }

    // MARK: The app

    func take(_ command: WebSocketCommand) {
        if case .limit(let size) = command {
            incoming.maximumSize = size
            return
        }
        commands.append(command)
        sendMore()
    }

    /// Drops the connection if the app's close frame is still queued.
    func abandonUnlessClosing() {
        if machine.maySendMessages { perform(machine.handle(.abandoned)) }
    }

    private var maySend: Bool {
        (outgoing.isInMessage || !commands.isEmpty)
            && outgoing.count < Self.pieceSize && !load.control.isSuspended && exchange.isWritable
    }

    /// Writes as much as the peer accepts now.
    private func sendMore() {
        while maySend {
            if !outgoing.isInMessage, let command = commands.popFirst() { begin(command) }
            outgoing.encode(upTo: Self.pieceSize)
        }
        scheduleFlush()
    }

    private func begin(_ command: WebSocketCommand) {
        switch command {
        case .send(let message):
            // Messages after the close frame are not sent. Their callers are notified at the end.
            guard machine.maySendMessages else { return }
            outgoing.begin(message)
        case .ping: perform(machine.handle(.appPings))
        case .close(let code, let reason):
            let close = WebSocketClose(code: code, reason: String(decoding: reason, as: UTF8.self))
            perform(machine.handle(.appCloses(close)))
        case .limit: break
        }
    }

    private func startPings() {
        guard let interval = pingInterval else { return }
        let loop = load.session.loop
        let bound = NIOLoopBound(self, eventLoop: loop)
        pingTimer = loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in bound.value.pingIsDue() }
    }

    private func pingIsDue() {
        perform(machine.handle(.pingIsDue(appReceives: load.hasCredit, isSuspended: load.control.isSuspended)))
    }

    // MARK: The peer

    /// Whether to process the peer's bytes: while the app receives, while closing, or once the exchange is over.
    private var takesMore: Bool { !machine.maySendMessages || load.hasCredit || exchange.isOver }

    /// Processes the peer's bytes; returns whether there may be more of them than one turn of the loop can take.
    private func parse() -> Bool {
        defer { scheduleFlush() }
        do {
            return try incoming.take(&unread, limit: Self.eventsPerTurn, isWanted: { self.takesMore }) { event in
                switch event {
                case .message(let message):
                    // After closing, the app might stop receiving messages. Messages without credit are then dropped, so that the
                    // peer's close frame is reached.
                    if machine.maySendMessages || load.hasCredit { load.tell(message, cost: message.cost) }
                case .ping(let payload): perform(machine.handle(.received(.ping(payload))))
                case .pong(let payload): perform(machine.handle(.received(.pong(payload))))
                case .close(let close): perform(machine.handle(.received(.close(close))))
                }
                return machine.isReceiving
            }
        } catch {
            unread.clear()
            perform(machine.handle(.failed(error)))
            // The close frame is sent before a server that has ended its side is dropped.
            flush()
            return false
        }
    }

    private func perform(_ actions: [WebSocketMachine.Action]) {
        for action in actions { perform(action) }
        endIfWritten()
    }

    private func perform(_ action: WebSocketMachine.Action) {
        switch action {
        case .sendClose(let close): control(.close, close.body)
        case .sendPong(let payload): control(.pong, payload)
        case .sendPing(let payload): control(.ping, payload)
        case .answerPings(let count): load.tell(.webSocket(.ponged(count)))
        case .startCloseTimer:
            let bound = NIOLoopBound(self, eventLoop: load.session.loop)
            closeTimer = load.session.loop.scheduleTask(in: .nanoseconds(WebSocketMachine.closePatience)) {
                bound.value.perform(bound.value.machine.handle(.closeTimeout))
            }
        case .stopCloseTimer: closeTimer?.cancel()
        case .closed(let code, let reason):
            load.tell(.webSocket(.closed(code: code, reason: reason.map { Data($0.utf8) })))
        case .broken(let fault): failure = failure ?? Self.error(of: fault)
        case .leaveTransport:
            exchange.linger(.nanoseconds(WebSocketMachine.closePatience))
            load.control.wake()
        case .dropTransport:
            exchange.cancel()
            load.control.wake()
        }
    }

    private static func error(of fault: WebSocketMachine.Fault) -> LoadError {
        switch fault {
        case .failure(let failure):
            LoadError(
                failure.code == 1009 ? .dataLengthExceedsMaximum : .badServerResponse, "the WebSocket failed: \(failure.message)")
        case .silence: LoadError(.timedOut, "the server did not answer a ping within the interval")
        case .loss: LoadError(.connectionLost, "the server ended the connection without closing the WebSocket")
        }
    }

    private func endIfWritten() {
        guard machine.endsWhenWritten, outgoing.count == 0, writesInFlight == 0, !outgoing.isInMessage else { return }
        perform(machine.handle(.allWritten))
    }

    // MARK: Writing

    private func scheduleFlush() {
        guard !isFlushScheduled, outgoing.count > 0 else { return }
        isFlushScheduled = true
        load.session.executor.callLater { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    private func control(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        outgoing.control(opcode, payload)
        scheduleFlush()
    }

    /// Passes the output to the exchange.
    private func flush() {
        guard outgoing.count > 0 else { return }
        var (bytes, completion) = outgoing.take()
        writesInFlight += 1
        exchange.write(bytes) { [self, completion] isSent in wrote(completion, isSent) }
        if writesInFlight == 0 { outgoing.reuse(&bytes) }
    }

    private func wrote(_ completion: OutgoingMessages.Completion, _ isSent: Bool) {
        writesInFlight -= 1
        if isSent {
            if load.wants(.sentBytes) { load.tellSent(completion.bytes, total: exchange.sentBodyBytes) }
            if completion.messages > 0 || outgoing.isInMessage { machine.noteTraffic() }
            if completion.messages > 0 { load.tell(.webSocket(.sent(completion.messages))) }
            if completion.hasPong { perform(machine.handle(.pongWritten)) }
            if maySend { load.control.wake() }
        }
        endIfWritten()
    }
}
