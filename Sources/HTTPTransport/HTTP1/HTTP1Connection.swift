// SPDX-License-Identifier: Apache-2.0

import HTTPWire
package import LoadingModel
package import NIOCore
import NIOSSL

/// Carries one exchange at a time over an HTTP/1.1 connection (RFC 9112): serializer, parser and exchange in one handler.
///
/// The pipeline passes no message parts, and header fields are not converted to strings: ``ResponseParser`` finds the head in the
/// received bytes, and the ``Exchange`` gets body bytes as slices of the read buffer.
///
/// Confined to the channel's event loop, which is the session's.
package final class HTTP1Connection: ChannelInboundHandler, RemovableChannelHandler, HTTPConnection,
    ExchangeCarrier
{
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package let facts: ConnectionFacts
    package let keptChain: KeptChain?
    @exclusivity(unchecked) package var pool: ConnectionPool?
    package let id: Int
    package let initialCapacity: Int? = nil

    let isSecure: Bool
    private(set) var context: ChannelHandlerContext?
    // Every read uses these properties, so exclusivity is unchecked: the parser and queues do not call back into this class.
    @exclusivity(unchecked) private var parser = ResponseParser()
    private(set) var exchange: Exchange?
    private var pump: RequestBodyPump?
    private(set) var requestIsComplete = true
    @exclusivity(unchecked) var shortcut = SocketShortcut()
    private(set) var exchangesServed = 0
    /// How long the server keeps an idle connection open according to its last response, in nanoseconds.
    private var keepAlive: Int64?
    private var isClosing = false
    private var transportError: (any Error)?
    @exclusivity(unchecked) var memory = BodyMemory()
    private var isReading = true
    /// Whether the body of the exchange bypasses this handler; the end of the channel then does not mean the end of the body.
    private(set) var isBypassed = false
    /// Whether the channel is inactive; NIO removes this handler somewhat later.
    private var isInactive = false
    /// Bytes that were read and will be parsed in later turns of the loop; until then, the socket is not read.
    @exclusivity(unchecked) private(set) var backlog = CircularBuffer<ByteBuffer>()
    private var isParsingScheduled = false
    /// The timer that closes the connection if its peer does not.
    private var lingering: Scheduled<Void>?

    /// The maximum number of parser events per turn of the loop, about a millisecond of work: a chunk can be only six bytes long.
    private static let eventsPerTurn = 1_024

    package init(id: Int, facts: ConnectionFacts, keptChain: KeptChain? = nil) {
        self.keptChain = keptChain
        self.id = id
        self.facts = facts
        isSecure = facts.isInTLS
    }

    // MARK: Sending

    package func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange {
        let now = NIODeadline.now()
        let exchange = Exchange(
            control: control, carrier: self, facts: facts, version: .http1, isReused: exchangesServed > 0, now: now)
        exchange.asksToSwitch = message.asksToSwitch
        guard let context, !isClosing, self.exchange == nil else { throw facts.closedBefore(by: transportError) }
        // All connections share one buffer: it becomes free once the socket has accepted the request, usually at once.
        var outgoing = pool?.takeScratch() ?? ByteBuffer()
        defer { pool?.keepScratch(outgoing) }
        // The head is copied only if a field is added: copying costs a third as much as writing.
        exchange.record.sentHead(
            isFramed(message) ? try write(message.head, to: &outgoing) : try write(framedHead(of: message), to: &outgoing))
        exchangesServed += 1
        self.exchange = exchange
        parser.begin(Self.kind(of: message))
        control.markProgress(now)
        exchange.updateReading()
        switch message.body {
        case .none:
            requestIsComplete = true
            exchange.record.sentAll(now)
            send(&outgoing, context)
        default:
            requestIsComplete = false
            let outlet = HTTP1BodyOutlet(message.body, context, of: self)
            let pump = RequestBodyPump(body: message.body, exchange: exchange, outlet: outlet)
            self.pump = pump
            context.write(wrapOutboundOut(outgoing), promise: nil)
            pump.start(waitingForContinue: message.expectsContinue)
        }
        return exchange
    }

    /// Sends a request without a body.
    private func send(_ head: inout ByteBuffer, _ context: ChannelHandlerContext) {
        if !isSecure, channelIsActive { shortcut.send(&head, context) }
        if head.readableBytes > 0 { shortcut.write(head, context) }
    }

    /// Notes that all of the request's body was sent.
    func requestBodyCompleted(_ exchange: Exchange) {
        guard self.exchange === exchange else { return }
        requestIsComplete = true
        exchange.record.sentAll(.now())
        pump?.stop()
        pump = nil
        finishIfComplete()
    }

    /// Ends the exchange, because the request's body could not be read.
    func requestBodyFailed(_ error: LoadError, _ exchange: Exchange) {
        guard self.exchange === exchange else { return }
        exchange.fail(error)
        end(exchange, reusable: false)
    }

    /// Ends an exchange whose connection cannot be used anymore; a complete response still counts.
    func lose(_ exchange: Exchange, _ error: LoadError) {
        if parser.isIdle, exchange.hasHead { end(exchange, reusable: false) } else { requestBodyFailed(error, exchange) }
    }

    package func abandon(_ exchange: Exchange) {
        guard self.exchange === exchange else { return }
        end(exchange, reusable: false)
    }

    package func linger(for exchange: Exchange, _ patience: TimeAmount) {
        guard self.exchange === exchange, let context else { return }
        tearDown(of: exchange)
        isClosing = true
        pool?.exchangeEnded(on: self, reusable: false, keepAlive: nil, now: .now())
        setReading(true)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        lingering = context.eventLoop.scheduleTask(in: patience) { bound.value.close() }
    }

    package func suspensionChanged(of exchange: Exchange) { pump?.writabilityChanged() }

    package func setReading(_ wanted: Bool, for exchange: Exchange) { setReading(wanted) }

    func setReading(_ wanted: Bool) {
        let reads = wanted && backlog.isEmpty
        guard reads != isReading, let context else { return }
        isReading = reads
        // All our channels support this option, and it is set synchronously on the loop.
        try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    package func beginBypass(of exchange: Exchange) -> (any Channel)? {
        guard let context, self.exchange === exchange, !isClosing, backlog.isEmpty else { return nil }
        setReading(false)
        memory.removeAll()
        isBypassed = true
        return context.channel
    }

    package func endBypass(of exchange: Exchange, moved: Int64) {
        isBypassed = false
        guard self.exchange === exchange else { return }
        parser.skip(moved)
        exchange.record.receivedBody(moved)
        exchange.control.markProgress(.now())
        do {
            _ = try parse(ByteBuffer(), for: exchange)
            if parser.isIdle { finishIfComplete() } else if isInactive { fail(exchange, with: try unfinished()) }
        } catch {
            fail(exchange, with: error)
        }
    }

    /// Returns the reason why an unfinished message cannot continue.
    private func unfinished() throws(ResponseParser.Failure) -> ResponseParser.Failure {
        _ = try parser.finish()
        return .closedInBody
    }

    package func close() {
        isClosing = true
        context?.close(promise: nil)
    }

    package var channelIsActive: Bool { !isClosing && (context?.channel.isActive ?? false) }

    // MARK: ChannelInboundHandler

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        pump?.stop()
        pump = nil
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        guard let exchange, !parser.isIdle else {
            // Unsolicited bytes must not be taken for the response to the next request.
            close()
            return
        }
        let now = NIODeadline.now()
        exchange.receivedData(now)
        if backlog.isEmpty { take(buffer, for: exchange) } else { backlog.append(buffer) }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        exchange?.wakeAfterRead(on: context.eventLoop)
        context.fireChannelReadComplete()
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        pump?.writabilityChanged()
        if let exchange, exchange.hasSwitched { exchange.control.wake() }
        context.fireChannelWritabilityChanged()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Without close_notify, only the framing can show whether the response was cut off (RFC 9112, section 9.8).
        if let error = error as? NIOSSLError, case .uncleanShutdown = error {
            transportError = error
            return
        }
        transportError = transportError ?? error
        context.close(promise: nil)
    }

    /// Whether the connection ended with an error; a close by the peer without `close_notify` does not count as an error.
    private var isBroken: Bool {
        guard let transportError else { return false }
        if let error = transportError as? NIOSSLError, case .uncleanShutdown = error { return false }
        return true
    }

    package func channelInactive(context: ChannelHandlerContext) {
        isClosing = true
        isInactive = true
        if let exchange, !isBypassed, backlog.isEmpty { inputEnded(exchange) }
        lingering?.cancel()
        pool?.connectionClosed(self)
        pool = nil
        context.fireChannelInactive()
    }

    // MARK: Receiving

    /// Parses received bytes, within the limit of one turn of the loop.
    private func take(_ buffer: ByteBuffer, for exchange: Exchange) {
        do {
            let consumed = try parse(buffer, for: exchange)
            let hasMore = consumed < buffer.readableBytes
            if hasMore, self.exchange === exchange, !parser.isIdle {
                var rest = buffer
                rest.moveReaderIndex(forwardBy: consumed)
                backlog.prepend(rest)
                setReading(false)
                return scheduleParsing(context?.eventLoop)
            }
            if self.exchange == nil || parser.isIdle, hasMore || !backlog.isEmpty { isClosing = true }
        } catch {
            fail(exchange, with: error)
            return
        }
        if parser.isIdle, self.exchange === exchange { finishIfComplete() }
    }

    private func scheduleParsing(_ loop: (any EventLoop)?) {
        guard let loop, !isParsingScheduled else { return }
        isParsingScheduled = true
        LoopDirectory.executor(of: loop).turns.runInLaterTurn { [self] in
            isParsingScheduled = false
            guard let exchange, let buffer = backlog.popFirst() else { return }
            take(buffer, for: exchange)
            guard self.exchange === exchange else { return }
            exchange.control.wake()
            if !backlog.isEmpty {
                scheduleParsing(loop)
            } else {
                exchange.updateReading()
                if isInactive { inputEnded(exchange) }
            }
        }
    }

    /// Handles the end of the channel's input.
    private func inputEnded(_ exchange: Exchange) {
        do {
            exchange.control.markProgress(.now())
            if let event = try parser.finish(isBroken: isBroken) { handle(event, of: ByteBuffer(), for: exchange) }
            end(exchange, reusable: false)
        } catch {
            fail(exchange, with: error)
        }
    }

    /// Parses received bytes, and returns how many of them were consumed.
    private func parse(_ buffer: ByteBuffer, for exchange: Exchange) throws(ResponseParser.Failure) -> Int {
        var offset = 0
        let failure = buffer.withUnsafeReadableBytes { bytes -> ResponseParser.Failure? in
            do throws(ResponseParser.Failure) {
                var eventCount = 0
                while self.exchange === exchange, eventCount < Self.eventsPerTurn, let event = try parser.next(bytes, &offset) {
                    handle(event, of: buffer, for: exchange)
                    eventCount += 1
                    if parser.isIdle { break }
                }
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
        return offset
    }

    private func handle(_ event: ResponseParser.Event, of buffer: ByteBuffer, for exchange: Exchange) {
        switch event {
        case .informational(let head):
            receivedInformational(head, for: exchange)
        case .head(let head, let framing):
            exchange.receivedHead(head, framing)
            keepAlive = head.keepAlive
            exchange.record.receivedHead(parser.headerBytesReceived)
            pump?.receivedFinalHead(status: head.status)
            if exchange.isContinued { dropUnsent(false, of: exchange) }
            if exchange.hasSwitched { pool?.wasTakenOver(self) }
        case .body(let range):
            guard let piece = buffer.getSlice(at: buffer.readerIndex + range.lowerBound, length: range.count) else { return }
            exchange.record.receivedBody(Int64(range.count))
            exchange.received(isSecure ? memory.copy(of: piece) : memory.compact(piece))
        case .end(let trailers):
            exchange.received(trailers)
            exchange.record.receivedAll(exchange.control.lastProgress)
        }
    }

    private func receivedInformational(_ head: ResponseHead, for exchange: Exchange) {
        guard head.status != 101 else {
            return fail(exchange, LoadError(.badServerResponse, "the server switched protocols without being asked (101)"))
        }
        guard exchange.receivedInformational(head) else {
            let limit = Exchange.maximumInformationalResponses
            let message = "the server sent more than \(limit) informational responses and no final one"
            return fail(exchange, LoadError(.badServerResponse, message))
        }
        if head.status == 100 { pump?.receivedContinue() }
    }

    /// Ends the exchange once the whole response has arrived.
    ///
    /// If the response is a success and the server keeps the connection open, the rest of the request is still sent, because the
    /// server may want it. Otherwise the rest is dropped, and the connection is closed (RFC 9112, sections 9.5 and 9.6).
    private func finishIfComplete() {
        guard let exchange, parser.isIdle else { return }
        if let pump, !pump.isStopped, parser.mayReuseConnection, !isClosing { return }
        let proxyCloses = facts.isForwarded && exchange.head?.saysProxyCloses == true
        end(exchange, reusable: requestIsComplete && parser.mayReuseConnection && !isClosing && !proxyCloses)
    }

    /// Ends the exchange, and returns the connection to the pool, or closes it.
    private func end(_ exchange: Exchange, reusable: Bool) {
        tearDown(of: exchange)
        let reusable = reusable && channelIsActive
        if reusable { setReading(true) } else { isClosing = true }
        pool?.exchangeEnded(
            on: self, reusable: reusable, keepAlive: reusable ? keepAlive : nil,
            now: exchange.record.responseEnd ?? .now()
        )
        if !reusable { closeChannel(after: exchange) }
    }

    func tearDown(of exchange: Exchange) {
        self.exchange = nil
        backlog.removeAll()
        pump?.stop()
        pump = nil
        memory.removeAll()
        exchange.end(isComplete: parser.isIdle && exchange.hasHead)
    }

    private func fail(_ exchange: Exchange, with failure: ResponseParser.Failure) {
        if !exchange.hasHead, let refusal = facts.refusedResponse(by: transportError) { return fail(exchange, refusal) }
        var message = "receiving the response from \(facts.peer): \(failure.message)"
        if let reason = transportError.flatMap(PrintableFailure.text) { message += " (\(reason))" }
        fail(exchange, LoadError(failure.kind, message, cause: transportError ?? failure))
    }

    private func fail(_ exchange: Exchange, _ error: LoadError) {
        exchange.fail(error)
        if self.exchange === exchange { end(exchange, reusable: false) }
    }
}
