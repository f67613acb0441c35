// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore
import NIOSSL
import TransportMachines

/// Carries many exchanges at a time over an HTTP/2 connection (RFC 9113): frames, streams and windows in one handler.
///
/// Streams have no channels of their own: frames are parsed from the read buffer, and passed to their ``HTTP2Stream``. All frames
/// that are written in one turn of the loop are sent together. The connection's own window is large, and refilled as soon as data
/// arrives: a slow task is limited by its stream's window, and does not block other streams.
///
/// Confined to the channel's event loop, which is the session's.
package final class HTTP2Connection: ChannelInboundHandler, HTTPConnection {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The initial receive window of a stream, in bytes; the window grows if the load reads fast enough.
    static let streamWindow = 1_048_576
    /// The connection's receive window, large enough for every stream's initial window, so that only the streams' own windows limit
    /// the server.
    private static let connectionWindow = PeerSettings.largestCapacity * streamWindow
    static let frameSize = HTTP2Settings.frameSizes.lowerBound

    package let facts: ConnectionFacts
    @exclusivity(unchecked) package var pool: ConnectionPool?
    package let id: Int
    package let initialCapacity: Int?

    let loop: any EventLoop
    private(set) lazy var executor = LoopDirectory.executor(of: loop)
    /// The server's chain, which may also be valid for other hosts.
    package let keptChain: KeptChain?
    private let scheme: StaticString
    var context: ChannelHandlerContext?
    // Each part changes only its own state. Exclusivity is unchecked for the parts that every read or request uses, because they do
    // not call back into this class.
    @exclusivity(unchecked) var reader = HTTP2FrameReader()
    @exclusivity(unchecked) private var encoder = HTTP2RequestEncoder()
    @exclusivity(unchecked) var streams: [UInt32: HTTP2Stream] = [:]
    @exclusivity(unchecked) var numbers = StreamNumbers()
    @exclusivity(unchecked) var sendWindow = SendWindow()
    @exclusivity(unchecked) var receiveWindow = ReceiveWindow(connectionWindow)
    @exclusivity(unchecked) var loan = WindowLoan()
    @exclusivity(unchecked) var flood: FrameFlood
    @exclusivity(unchecked) private(set) var peer = PeerSettings()
    @exclusivity(unchecked) var status: HTTP2ConnectionStatus
    @exclusivity(unchecked) var liveness: LivenessMachine
    var questionTimer: Scheduled<Void>?
    @exclusivity(unchecked) var outgoing = OutgoingFrames()
    /// Streams that are queued for their turn to send.
    @exclusivity(unchecked) var sendQueue = StreamQueue<HTTP2Connection>()
    /// Streams that received something in this read.
    @exclusivity(unchecked) var touched: [HTTP2Stream] = []
    @exclusivity(unchecked) var buffers = RecycledBuffers(size: 131_072, limit: 24)
    var bulk: BulkReading?

    package init(
        id: Int, facts: ConnectionFacts, keptChain: KeptChain? = nil, loop: any EventLoop, initialCapacity: Int = 1
    ) {
        self.keptChain = keptChain
        self.id = id
        self.facts = facts
        self.loop = loop
        self.initialCapacity = max(1, initialCapacity)
        let now = loop.now.nanoseconds
        flood = FrameFlood(now: now)
        liveness = LivenessMachine(now: now)
        status = HTTP2ConnectionStatus(facts)
        scheme = facts.isInTLS ? "https" : "http"
    }

    // MARK: The pool's side

    package var channelIsActive: Bool { !status.isClosing && (context?.channel.isActive ?? false) }
    package var isIdle: Bool { streams.isEmpty }
    var isOpen: Bool { !status.isClosing && context != nil }
    package var servesOtherHosts: Bool { isOpen && facts.isVerified && !facts.sentClientCertificate }
    package var hasAnswered: Bool { status.answers.hasAnswered }
    // This reads only the stored number, because reading all of `numbers` would copy its tables.
    private var takesRequests: Bool { channelIsActive && status.goAway == nil && numbers.next <= StreamNumbers.last }

    /// Whether the connection takes no more requests, or its input has ended; readable bytes alone say nothing, because they may be
    /// any frame.
    package var isGone: Bool {
        guard let context, takesRequests else { return true }
        return SocketState(of: context).contains(.hasEnded)
    }

    /// "Endpoints MUST NOT exceed the limit set by their peer" (RFC 9113, section 5.1.2).
    package var allowsExchange: Bool { peer.capacity.map { streams.count < $0 } ?? true }
    package var evidenceBeforeRequest: RetryEvidence { status.evidence }
    package var allowsExtendedConnect: Bool { takesRequests && peer.allowsExtendedConnect }

    /// Returns the head for HTTP/2, in which no field frames the message.
    package func framedHead(of message: OutgoingMessage) -> RequestHead {
        var head = message.head
        head.majorVersion = 2
        return head
    }

    package func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange {
        let now = loop.now
        guard takesRequests else { throw status.closedBefore }
        let stream = HTTP2Stream(
            numbers.next, of: self, isHead: message.head.method == "HEAD", sending: SendWindow(peer.window), now: now)
        let exchange = Exchange(
            control: control, carrier: stream, facts: facts, version: .http2, isReused: stream.id > 1, now: now)
        exchange.asksToSwitch = message.asksToSwitch
        let hasBody = message.body.length != nil || message.asksToSwitch
        try checkSize(of: message)
        do {
            exchange.record.sentHead(try writeHead(message, stream: stream.id, endsStream: !hasBody))
        } catch {
            throw LoadError(.badURL, "the request cannot be sent: \(error.message)", cause: error)
        }
        numbers.open()
        stream.carry(exchange)
        endBulk()
        streams[stream.id] = stream
        // If this is the only stream, its window may be large at once; otherwise the response's head decides.
        if streams.count == 1, message.head.method == "GET" { stream.expectBulk() }
        control.markProgress(now)
        if message.asksToSwitch {
            stream.beginSwitching()
            exchange.record.sentAll(now)
        } else if hasBody {
            stream.send(message.body, expectsContinue: message.expectsContinue)
        } else {
            stream.sent(0, ends: true)
            exchange.record.sentAll(now)
        }
        perform(liveness.handle(.requestBegan, now: now.nanoseconds))
        scheduleFlush()
        if numbers.next > StreamNumbers.last { pool?.drains(self) }
        return exchange
    }

    /// Throws if a request's fields exceed the server's limit, because the server would refuse the request, or end the connection
    /// with its other streams.
    private func checkSize(of message: OutgoingMessage) throws(LoadError) {
        guard let limit = peer.listSize else { return }
        // This upper bound of the size holds even if cookies are split, and spares nearly all requests the exact computation.
        let head = message.head
        let text = head.headers.bytes.count + head.target.utf8.count + head.method.utf8.count
        guard 16 * text + 32 * head.headers.lines.count + 512 > limit else { return }
        let size = HTTP2RequestEncoder.listSize(
            of: head, scheme: scheme, priority: HTTP2Priority.field(message.priority), protocolName: message.protocolName)
        guard size > limit else { return }
        throw LoadError(
            .dataLengthExceedsMaximum,
            """
            sending the request to \(facts.peer): its header fields have \(size) bytes, but the server accepts only \(limit) \
            (SETTINGS_MAX_HEADER_LIST_SIZE): send fewer or shorter fields, including cookies
            """)
    }

    private func writeHead(_ message: OutgoingMessage, stream: UInt32, endsStream: Bool) throws(InvalidRequest) -> Int {
        let block = HTTP2RequestEncoder.maximumLength(of: message.head)
        let length = HTTP2Frames.fieldBlockLength(block, maximumFrameSize: peer.frameSize)
        let priority = HTTP2Priority.field(message.priority)
        let (scheme, frameSize, protocolName) = (scheme, peer.frameSize, message.protocolName)
        do {
            return try outgoing.write(length) { buffer in
                let count = try encoder.encode(
                    message.head, scheme: scheme, priority: priority, protocolName: protocolName,
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[HTTP2Frames.headerLength...]))
                return HTTP2Frames.writeFieldBlockHeaders(
                    block: count, maximumFrameSize: frameSize, stream: stream, endsStream: endsStream, into: buffer)
            }
        } catch {
            throw error as? InvalidRequest ?? .bufferTooSmall
        }
    }

    package func close() {
        guard !status.isClosing else { return }
        if context?.channel.isActive == true { writeGoAway(.noError, "") }
        shut()
    }

    package func giveUp() {
        if streams.isEmpty { close() } else { pool?.drains(self) }
    }

    /// Closes the channel after flushing what was written.
    func shut() {
        status.close()
        flush()
        context?.close(promise: nil)
    }

    package func networkIsLost(_ error: LoadError) {
        leavePool()
        failAll(error)
        context?.close(promise: nil)
    }

    /// Removes the connection from the pool before its exchanges end, so that the pool does not give their places to other loads.
    func leavePool() {
        status.close()
        pool?.connectionClosed(self)
        pool = nil
    }

    // MARK: ChannelInboundHandler

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        liveness = LivenessMachine(now: loop.now.nanoseconds)
        var settings = HTTP2Settings()
        settings.enablePush = false
        settings.initialWindowSize = Self.streamWindow
        settings.maxHeaderListSize = HTTP2FrameReader.Limits().headerListBytes
        outgoing.write(HTTP2Frames.preface)
        outgoing.write(HTTP2Frames.settingsLength(settings)) { HTTP2Frames.writeSettings(settings, into: $0) }
        let change = UInt32(Self.connectionWindow - FlowControl.initialWindow)
        send(HTTP2Frames.windowUpdateLength) { HTTP2Frames.writeWindowUpdate(stream: 0, increment: change, into: $0) }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        notifyLiveness(.ended)
        for promise in outgoing.takePromises() { promise.fail(ChannelError.ioOnClosedChannel) }
        // A channel that ended before the handler was added does not report its end again.
        leavePool()
        failAll(status.ended)
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let now = loop.now
        outgoing.readingBegan()
        perform(liveness.read(now: now.nanoseconds))
        receive(unwrapInboundIn(data), now: now)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        for stream in touched { stream.wake(on: context.eventLoop) }
        touched.removeAll(keepingCapacity: true)
        if outgoing.readingEnded() { flush() }
        context.fireChannelReadComplete()
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            flood.repliesWereRead()
            sendMore()
        }
        context.fireChannelWritabilityChanged()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The frames mark the end of a response, so a missing close_notify cannot hide that a response was cut off.
        status.take(error)
        if let error = error as? NIOSSLError, case .uncleanShutdown = error { return }
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        touched = []
        if status.endsUnannounced { countIfFruitless(true, asksForCalm: false) }
        leavePool()
        failAll(status.ended)
        context.fireChannelInactive()
    }

    // MARK: Settings of the server

    func take(_ settings: HTTP2Settings) throws(HTTP2Failure) {
        if let size = settings.smallestHeaderTableSize { encoder.setTableLimit(size) }
        if let size = settings.headerTableSize { encoder.setTableLimit(size) }
        // "A sender MUST NOT send a SETTINGS_ENABLE_CONNECT_PROTOCOL parameter with the value of 0 after previously sending a value
        // of 1."
        if settings.enableConnectProtocol == false, peer.allowsExtendedConnect {
            throw HTTP2Failure(code: .protocolError, message: "SETTINGS_ENABLE_CONNECT_PROTOCOL changes from 1 to 0")
        }
        let (change, capacity) = peer.take(settings)
        if let change {
            guard streams.values.allSatisfy({ $0.widen(by: change) }) else {
                throw HTTP2Failure(code: .flowControlError, message: "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large")
            }
            if change.total > 0 { for stream in streamsInOrder { stream.sendMore() } }
        }
        if let capacity, !liveness.isBarred { pool?.leaseLimitChanged(capacity, of: self) }
    }

    // MARK: The end of streams

    var streamsInOrder: [HTTP2Stream] { streams.values.sorted { $0.id < $1.id } }

    func abandon(_ stream: HTTP2Stream, isLate: Bool) {
        reset(stream, .cancel)
        if isLate, isOpen { notifyLiveness(.requestTimedOut(began: stream.began.nanoseconds)) }
        end(stream)
    }

    func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        numbers.reset(stream.id)
        guard isOpen else { return }
        send(HTTP2Frames.resetLength) { HTTP2Frames.writeReset(stream: stream.id, code: code, into: $0) }
    }

    /// Ends a stream; another stream can then take its place.
    func end(_ stream: HTTP2Stream, _ error: LoadError? = nil, evidence: RetryEvidence = .none, isComplete: Bool = false) {
        guard streams.removeValue(forKey: stream.id) != nil else { return }
        loan.giveBack(stream.borrowed)
        sendQueue.remove(stream)
        let exchange = stream.end()
        exchange?.end(isComplete: isComplete, error, evidence: evidence)
        pool?.exchangeEnded(on: self, reusable: true, keepAlive: nil, now: exchange?.record.responseEnd ?? .now())
        guard streams.isEmpty else { return }
        buffers.removeAll()
        endBulk()
    }

    /// Ends a stream that receives nothing more; if its whole response has arrived, the exchange is complete.
    func giveUp(_ stream: HTTP2Stream, _ error: LoadError, evidence: RetryEvidence) {
        if stream.hasWholeResponse { end(stream, isComplete: true) } else { end(stream, error, evidence: evidence) }
    }

    func failAll(_ error: LoadError, evidence: RetryEvidence = .none) {
        for stream in streamsInOrder { giveUp(stream, error, evidence: evidence) }
    }
}
