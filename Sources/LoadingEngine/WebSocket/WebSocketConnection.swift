//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
    /// The maximum capacity in bytes that an empty ``output`` keeps.
    private static let keptCapacity = 4096

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
    /// Bytes to be written at the end of this turn of the loop.
    @exclusivity(unchecked) private var output = ByteBuffer()
    private var eventsLeft = 0
    private var isFlushScheduled = false
    private var writesInFlight = 0
    /// The events that are complete once ``output`` is written.
    private var outputCompletion = Completion()
    /// Bytes that were read, but are processed only after the app has received earlier messages.
    private var unread = ByteBuffer()
    /// The owners of pings whose pong has not arrived yet, in order.
    private var pings = CircularBuffer<PingOwner>()
    private var closeTimer: Scheduled<Void>?
    private var pingTimer: RepeatedTask?
    /// Whether reading from the peer was paused after the last ping was due, because the app was not receiving.
    private var wasHeldBack = false
    /// Whether data have arrived or a part of a message has been sent since the last ping was due.
    private var wasActive = false
    /// Whether both sides have sent a close frame.
    private var isClean = false
    private var isDropped = false
    /// Whether the connection ends once everything is written.
    private var endsWhenWritten = false
    private var isOver = false
    private var failure: LoadError?
    /// The reason why the connection was lost, if it did not close properly.
    private var lost: LoadError?

    private enum PingOwner { case app, ourselves }

    /// The events to report once a piece of output is written.
    private struct Completion {
        /// The number of the app's messages.
        var messages = 0
        var hasPong = false
        var bytes: Int64 = 0
    }

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
        if isClean, !isDropped { exchange.linger(.nanoseconds(WebSocketMachine.closePatience)) } else { exchange.cancel() }
        if let failure { throw failure }
    }

    private func exchangeMessages() async throws(LoadError) {
        while !isOver {
            try load.control.check()
            sendMore()
            if unread.readableBytes > 0, machine.isReceiving, !load.control.isSuspended {
                guard takesMore else {
                    wasHeldBack = true
                    try await load.waitForCredit { self.isOver || self.takesMore || self.maySend }
                    continue
                }
                parse()
                // Let other work on the loop run.
                if eventsLeft == 0 { await load.session.executor.turns.next() }
            } else if exchange.hasNext {
                guard let piece = try await nextPiece() else {
                    perform(machine.handle(.transportEnded))
                    return
                }
                unread = piece
                count(piece.readableBytes)
            } else {
                await load.control.wait()
            }
        }
    }

    private func count(_ bytes: Int) {
        wasActive = true
        load.transaction?.bodyBytesAfterDecoding += Int64(bytes)
        load.received(Int64(bytes), total: load.body.received + Int64(bytes), expected: -1)
    }

    /// Returns the peer's next bytes, or nil when the connection has ended; throws if the load must end.
    private func nextPiece() async throws(LoadError) -> ByteBuffer? {
        do {
            return try await exchange.next()
        } catch {
            try load.control.check()
            lost = error
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
        switch command {
        case .limit(let size):
            incoming.maximumSize = size
            return
        case .send, .ping, .close: break
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
            && output.readableBytes < Self.pieceSize && !load.control.isSuspended && exchange.isWritable
    }

    /// Writes as much as the peer accepts now.
    private func sendMore() {
        while maySend {
            if !outgoing.isInMessage, let command = commands.popFirst() { begin(command) }
            if outgoing.isInMessage, outgoing.write(upTo: Self.pieceSize, to: &output) { outputCompletion.messages += 1 }
        }
        scheduleFlush()
    }

    private func begin(_ command: WebSocketCommand) {
        switch command {
        case .send(let message):
            // Messages after the close frame are not sent. Their callers are notified at the end.
            guard machine.maySendMessages else { return }
            outgoing.begin(message, into: &output)
        case .ping: ping(.app)
        case .close(let code, let reason):
            let close = WebSocketClose(code: code, reason: String(decoding: reason, as: UTF8.self))
            perform(machine.handle(.appCloses(close)))
        case .limit: break
        }
    }

    private func ping(_ owner: PingOwner) {
        guard machine.maySendMessages else { return }
        pings.append(owner)
        perform(machine.handle(.appPings))
    }

    private func startPings() {
        guard let interval = pingInterval else { return }
        let bound = NIOLoopBound(self, eventLoop: load.session.loop)
        pingTimer = load.session.loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in bound.value.pingIsDue()
        }
    }

    private func pingIsDue() {
        guard machine.maySendMessages else { return }
        // A missing pong is a failure only if neither the app nor a message could have delayed it. The pong may be behind data
        // that the app does not receive, or the ping may be queued behind a message that is still being sent.
        let isJudged = !wasHeldBack && !wasActive && load.hasCredit && !load.control.isSuspended
        wasHeldBack = !load.hasCredit || load.control.isSuspended
        wasActive = false
        guard pings.contains(.ourselves) else {
            if !load.control.isSuspended { ping(.ourselves) }
            return scheduleFlush()
        }
        guard isJudged else { return }
        failure = LoadError(.timedOut, "the server did not answer a ping within the interval")
        perform(machine.handle(.abandoned))
    }

    // MARK: The peer

    /// Whether to process the peer's bytes: while the app receives, while closing, or once the exchange is over.
    private var takesMore: Bool { !machine.maySendMessages || load.hasCredit || exchange.isOver }

    private func wantsEvent() -> Bool {
        guard eventsLeft > 0, takesMore else { return false }
        eventsLeft -= 1
        return true
    }

    private func parse() {
        do {
            eventsLeft = Self.eventsPerTurn
            try incoming.take(&unread, isWanted: { self.wantsEvent() }) { event in
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
            failure = LoadError(
                error.code == 1009 ? .dataLengthExceedsMaximum : .badServerResponse, "the WebSocket failed: \(error.message)")
            perform(machine.handle(.failed(error)))
        }
        scheduleFlush()
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
        case .answerPings(let count):
            let answered = pings.prefix(Int(clamping: count))
            let ofApp = answered.count { $0 == .app }
            pings.removeFirst(answered.count)
            if ofApp > 0 { load.tell(.webSocket(.ponged(ofApp))) }
        case .startCloseTimer:
            let bound = NIOLoopBound(self, eventLoop: load.session.loop)
            closeTimer = load.session.loop.scheduleTask(in: .nanoseconds(WebSocketMachine.closePatience)) {
                bound.value.perform(bound.value.machine.handle(.closeTimeout))
            }
        case .stopCloseTimer: closeTimer?.cancel()
        case .ended(let code, let reason, isClean: true):
            isClean = true
            endsWhenWritten = true
            load.tell(.webSocket(.closed(code: code, reason: reason.map { Data($0.utf8) })))
        case .ended(_, _, isClean: false):
            failure =
                failure ?? lost ?? LoadError(.connectionLost, "the server ended the connection without closing the WebSocket")
        case .closeTransport:
            endsWhenWritten = true
            flush()
            endIfWritten()
        case .dropTransport:
            isDropped = true
            end()
        }
    }

    private func end() {
        isOver = true
        load.control.wake()
    }

    private func endIfWritten() {
        if endsWhenWritten, output.readableBytes == 0, writesInFlight == 0, !outgoing.isInMessage { end() }
    }

    // MARK: Writing

    private func scheduleFlush() {
        guard !isFlushScheduled, output.readableBytes > 0 else { return }
        isFlushScheduled = true
        load.session.executor.callLater { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    private func control(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        outgoing.control(opcode, payload, into: &output)
        if opcode == .pong { outputCompletion.hasPong = true }
        scheduleFlush()
    }

    /// Passes the output to the exchange.
    private func flush() {
        guard output.readableBytes > 0 else { return }
        var bytes = output
        var ended = outputCompletion
        ended.bytes = Int64(bytes.readableBytes)
        output = ByteBuffer()
        outputCompletion = Completion()
        writesInFlight += 1
        exchange.write(bytes) { [self, ended] isSent in wrote(ended, isSent) }
        if writesInFlight == 0, output.readableBytes == 0, bytes.storageCapacity <= Self.keptCapacity {
            bytes.clear()
            output = bytes
        }
    }

    private func wrote(_ ended: Completion, _ isSent: Bool) {
        writesInFlight -= 1
        if isSent {
            if load.wants(.sentBytes) { load.tellSent(ended.bytes, total: exchange.sentBodyBytes) }
            if ended.messages > 0 || outgoing.isInMessage { wasActive = true }
            if ended.messages > 0 { load.tell(.webSocket(.sent(ended.messages))) }
            if ended.hasPong { perform(machine.handle(.pongWritten)) }
            if maySend { load.control.wake() }
        }
        endIfWritten()
    }
}
