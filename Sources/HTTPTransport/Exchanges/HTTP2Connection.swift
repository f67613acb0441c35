//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
package import FoundationEssentials
package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore
import NIOSSL
import TransportMachines

/// Carries many exchanges at a time over an HTTP/2 connection (RFC 9113): frames, streams and windows in one handler.
///
/// There is no channel for each stream: frames are found in what was read, and given to the ``HTTP2Stream`` that they name. What is
/// written in one turn of the loop goes to the socket at once. The connection's own window is large, and renewed as soon as something
/// comes: what waits for a slow task is bounded by its stream's window, and keeps no other stream waiting.
///
/// Confined to the channel's event loop, which is the session's.
package final class HTTP2Connection: ChannelInboundHandler, HTTPConnection {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// What a stream may hold in memory until its task shows that it takes more.
    package static let streamWindow = 1_048_576
    /// What all streams together may have beyond ``streamWindow``.
    private static let lendableWindow = 67_108_864
    /// One of all the streams that there may be: their own windows are the limit.
    private static let connectionWindow = largestCapacity * streamWindow
    static let frameSize = 16_384
    /// Where the server has no limit.
    static let largestCapacity = 256
    /// What may wait to be handed to the socket before content waits.
    static let highWaterMark = 262_144
    static let lastStream: UInt32 = 0x7FFF_FFFF

    package let facts: ConnectionFacts
    package var pool: ConnectionPool?
    package let id: Int
    package let initialCapacity: Int?

    let loop: any EventLoop
    /// What the server showed, for other hosts that it may serve.
    let serverChain: [Data]
    private let scheme: StaticString
    var context: ChannelHandlerContext?
    // Unchecked, as every read and request goes through them: they call nothing that could come back here.
    @exclusivity(unchecked) var reader = HTTP2FrameReader()
    @exclusivity(unchecked) private var encoder = HTTP2RequestEncoder()
    @exclusivity(unchecked) var streams: [UInt32: HTTP2Stream] = [:]
    @exclusivity(unchecked) var sendWindow = SendWindow()
    @exclusivity(unchecked) var receiveWindow = ReceiveWindow(connectionWindow)
    @exclusivity(unchecked) var allowance: FrameAllowance
    var resets = ResetStreams()
    var nextStream: UInt32 = 1
    /// What the server said in SETTINGS.
    private(set) var peerWindow = FlowControl.initialWindow
    private(set) var peerFrameSize = HTTP2Connection.frameSize
    /// Of a request's fields; nil where the server has no limit, or has not said it yet.
    private var peerListSize: Int?
    var capacity: Int?
    var lendable = HTTP2Connection.lendableWindow

    /// The server has answered a request.
    var hasWorked = false
    var goAway: (lastStream: UInt32, code: HTTP2ErrorCode, debug: String)?
    private(set) var isClosing = false
    var transportError: (any Error)?
    /// What the server did that ended the connection.
    var violation: HTTP2Failure?
    /// It takes no requests until the server has given a sign of life.
    var isBarred = false
    /// When something was read last.
    var lastRead: NIODeadline
    var began: NIODeadline
    /// How long the server's answer to SETTINGS took.
    var measuredRoundTrip: TimeAmount?
    /// The end of its patience, while the server is asked for that.
    var probe: Scheduled<Void>?
    var probeCount: UInt64 = 0

    // What waits to be handed to the socket.
    @exclusivity(unchecked) var outgoing = ByteBuffer()
    var outgoingIsSent = false
    var flushIsDue = false
    var isReading = false
    var flushPromises: [EventLoopPromise<Void>] = []
    /// When the socket took content last.
    var lastSent = NIODeadline.uptimeNanoseconds(0)
    /// Content that went out and that no WINDOW_UPDATE has answered: once of its stream, and once of the connection.
    var unansweredContent = 0
    /// Answers to PING and SETTINGS that were written while the server read nothing.
    var unreadAnswers = 0
    /// Streams that wait for their turn to send.
    var sendLine = CircularBuffer<HTTP2Stream>()
    /// Streams of which something came in this read.
    @exclusivity(unchecked) var touched: [HTTP2Stream] = []
    @exclusivity(unchecked) var buffers = RecycledBuffers()

    /// What is wrong with what came for a stream, and what its load is told.
    struct Objection {
        var code: HTTP2ErrorCode
        var message: String
        var kind: LoadError.Kind

        /// A malformed message (section 8.1.1) is a response that cannot be parsed, as it is in HTTP/1.1.
        init(_ code: HTTP2ErrorCode, _ message: String, kind: LoadError.Kind? = nil) {
            self.code = code
            self.message = message
            self.kind = kind ?? (code == .protocolError ? .cannotParseResponse : .badServerResponse)
        }
    }

    package init(
        id: Int, facts: ConnectionFacts, serverChain: [Data] = [], loop: any EventLoop, initialCapacity: Int = 1
    ) {
        self.serverChain = serverChain
        self.id = id
        self.facts = facts
        self.loop = loop
        self.initialCapacity = max(1, initialCapacity)
        lastRead = loop.now
        began = lastRead
        allowance = FrameAllowance(now: Int64(lastRead.uptimeNanoseconds))
        scheme = facts.isInTLS ? "https" : "http"
    }

    // MARK: The pool's side

    package var channelIsActive: Bool { !isClosing && (context?.channel.isActive ?? false) }
    package var isIdle: Bool { streams.isEmpty }
    var isOpen: Bool { !isClosing && context != nil }

    /// What can be read may be anything; the end alone says that nothing more is answered.
    package var isGone: Bool {
        guard let context, channelIsActive, goAway == nil, nextStream <= Self.lastStream else { return true }
        let found = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            cls_look($0)
        }
        guard let found = found.flatMap({ $0 }), found >= 0 else { return false }
        return found & 2 != 0
    }

    package var evidenceBeforeRequest: RetryEvidence {
        let isCalmedDown = goAway?.code == .enhanceYourCalm
        return .notProcessed(.init(endsConnection: true, connectionWorks: hasWorked, asksForCalm: isCalmedDown))
    }

    /// HTTP/2 has no fields that frame a message; those that HTTP/1.1 has never leave.
    package func framedHead(of message: OutgoingMessage) -> RequestHead {
        var head = message.head
        head.majorVersion = 2
        return head
    }

    package func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange {
        let now = loop.now
        guard channelIsActive, goAway == nil, nextStream <= Self.lastStream else { throw closedBefore }
        let isFirst = nextStream == 1
        let stream = HTTP2Stream(
            nextStream, of: self, isHead: message.head.method == "HEAD", sendWindow: peerWindow, now: now)
        let exchange = Exchange(control: control, carrier: stream, facts: facts, version: .http2, isReused: !isFirst, now: now)
        var hasBody = true
        if case .none = message.body { hasBody = false }
        try checkSize(of: message)
        do {
            exchange.record.requestHeaderBytes = try writeHead(message, stream: nextStream, endsStream: !hasBody)
        } catch {
            throw LoadError(.badURL, "the request cannot be sent: \(error.message)", cause: error)
        }
        nextStream += 2
        stream.carry(exchange)
        streams[stream.id] = stream
        // There is enough for one; where others are open already, the response's head decides.
        if streams.count == 1, message.head.method == "GET" { stream.expectBulk() }
        control.markProgress(now)
        if hasBody {
            stream.send(message.body, expectsContinue: message.expectsContinue)
        } else {
            stream.hasSentEnd = true
            exchange.record.requestEnd = now
        }
        doubtAfterSilence(now)
        scheduleFlush()
        if nextStream > Self.lastStream { pool?.drains(self) }
        return exchange
    }

    /// A request that is larger than the server takes would come to nothing there, or end the connection with its neighbours.
    private func checkSize(of message: OutgoingMessage) throws(LoadError) {
        guard let limit = peerListSize else { return }
        // However it is counted, crumbs of cookies included, it comes to no more than that: nearly all are far below the limit.
        let head = message.head
        let text = head.headers.bytes.count + head.target.utf8.count + head.method.utf8.count
        guard 16 * text + 32 * head.headers.lines.count + 512 > limit else { return }
        let size = HTTP2RequestEncoder.listSize(
            of: head, scheme: scheme, priority: HTTP2Priority.field(message.priority))
        if size > limit { throw tooLarge(size, limit: limit) }
    }

    private func writeHead(_ message: OutgoingMessage, stream: UInt32, endsStream: Bool) throws(InvalidRequest) -> Int {
        let block = HTTP2RequestEncoder.maximumLength(of: message.head)
        let length = HTTP2Frames.fieldBlockLength(block, maximumFrameSize: peerFrameSize)
        let priority = HTTP2Priority.field(message.priority)
        let (scheme, frameSize) = (scheme, peerFrameSize)
        prepareOutgoing()
        do {
            return try outgoing.writeWithUnsafeMutableBytes(minimumWritableBytes: length) { buffer in
                let count = try encoder.encode(
                    message.head, scheme: scheme, priority: priority,
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[HTTP2Frames.headerLength...]))
                return HTTP2Frames.writeFieldBlockHeaders(
                    block: count, maximumFrameSize: frameSize, stream: stream, endsStream: endsStream, into: buffer)
            }
        } catch {
            throw error as? InvalidRequest ?? .bufferTooSmall
        }
    }

    package func close() {
        guard !isClosing else { return }
        if context?.channel.isActive == true { writeGoAway(.noError, "") }
        shut()
    }

    package func giveUp() {
        if streams.isEmpty { close() } else { pool?.drains(self) }
    }

    /// Closes the channel once what was written is on its way.
    func shut() {
        isClosing = true
        flush()
        context?.close(promise: nil)
    }

    package func networkIsLost(_ error: LoadError) {
        leavePool()
        failAll(error)
        context?.close(promise: nil)
    }

    /// No exchange may begin here any more: the pool forgets the connection before its exchanges end, so that none gets their places.
    func leavePool() {
        isClosing = true
        pool?.connectionClosed(self)
        pool = nil
    }

    // MARK: ChannelInboundHandler

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        began = loop.now
        var settings = HTTP2Settings()
        settings.enablePush = false
        settings.initialWindowSize = Self.streamWindow
        settings.maxHeaderListSize = HTTP2FrameReader.Limits().headerListBytes
        outgoing.writeStaticString(HTTP2Frames.preface)
        write(HTTP2Frames.settingsLength(settings)) { HTTP2Frames.writeSettings(settings, into: $0) }
        let change = UInt32(Self.connectionWindow - FlowControl.initialWindow)
        write(HTTP2Frames.windowUpdateLength) { HTTP2Frames.writeWindowUpdate(stream: 0, increment: change, into: $0) }
        scheduleFlush()
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        endProbe()
        for promise in flushPromises { promise.fail(ChannelError.ioOnClosedChannel) }
        flushPromises = []
        // A channel that had ended when this came into it does not say so again.
        leavePool()
        failAll(ended)
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        lastRead = loop.now
        isReading = true
        if probe != nil || isBarred { heard() }
        receive(unwrapInboundIn(data), now: lastRead)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        for stream in touched { stream.wake(on: context.eventLoop) }
        touched.removeAll(keepingCapacity: true)
        if flushIsDue { flush() }
        context.fireChannelReadComplete()
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            unreadAnswers = 0
            sendMore()
        }
        context.fireChannelWritabilityChanged()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The end of a response is known from its frames, so that a missing close_notify cuts nothing off.
        transportError = transportError ?? error
        if let error = error as? NIOSSLError, case .uncleanShutdown = error { return }
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        touched = []
        leavePool()
        failAll(ended)
        context.fireChannelInactive()
    }

    // MARK: What the server allows

    func take(_ settings: HTTP2Settings, now: NIODeadline) throws(HTTP2Failure) {
        if let size = settings.smallestHeaderTableSize { encoder.setTableLimit(size) }
        if let size = settings.headerTableSize { encoder.setTableLimit(size) }
        if let size = settings.maxFrameSize { peerFrameSize = size }
        if let size = settings.maxHeaderListSize { peerListSize = size }
        if let size = settings.initialWindowSize {
            let (change, largest) = (size - peerWindow, (settings.largestInitialWindowSize ?? size) - peerWindow)
            peerWindow = size
            for stream in streams.values {
                var window = stream.sendWindow
                guard window.widen(by: largest), stream.sendWindow.widen(by: change) else {
                    throw HTTP2Failure(code: .flowControlError, message: "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large")
                }
            }
            if change > 0 { for stream in streams.values.sorted(by: { $0.id < $1.id }) { stream.sendMore() } }
        }
        guard settings.maxConcurrentStreams != nil || capacity == nil else { return }
        let allowed = min(settings.maxConcurrentStreams ?? Self.largestCapacity, Self.largestCapacity)
        guard allowed != capacity else { return }
        capacity = allowed
        if !isBarred { pool?.capacityChanged(allowed, of: self) }
    }

    // MARK: The end of streams

    func abandon(_ stream: HTTP2Stream, isLate: Bool) {
        reset(stream, .cancel)
        if isLate { wasLate(stream) }
        end(stream)
    }

    func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        resets.insert(stream.id)
        guard isOpen else { return }
        write(HTTP2Frames.resetLength) { HTTP2Frames.writeReset(stream: stream.id, code: code, into: $0) }
        scheduleFlush()
    }

    /// The stream is over, one way or the other; its place is another's.
    func end(_ stream: HTTP2Stream, _ error: LoadError? = nil, evidence: RetryEvidence = .none, isComplete: Bool = false) {
        guard streams.removeValue(forKey: stream.id) != nil else { return }
        takeBack(stream.borrowed)
        if stream.isInLine { sendLine.removeAll { $0 === stream } }
        let exchange = stream.end()
        if let exchange {
            exchange.evidence = evidence
            if isComplete { exchange.complete() }
            if let error { exchange.fail(error) }
            exchange.control.wake()
        }
        pool?.exchangeEnded(on: self, reusable: true, keepAlive: nil, now: exchange?.record.responseEnd ?? .now())
        if streams.isEmpty { buffers.removeAll() }
    }

    /// The connection is of no use to the stream any more; what has its whole answer is complete all the same.
    func giveUp(_ stream: HTTP2Stream, _ error: LoadError, evidence: RetryEvidence) {
        if stream.hasAnswer { end(stream, isComplete: true) } else { end(stream, error, evidence: evidence) }
    }

    func failAll(_ error: LoadError, evidence: RetryEvidence = .none) {
        for stream in streams.values.sorted(by: { $0.id < $1.id }) { giveUp(stream, error, evidence: evidence) }
    }
}
