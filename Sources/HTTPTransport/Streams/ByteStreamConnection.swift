// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore
import NIOSSL

/// A connection without HTTP, which belongs to a stream task from the moment it is established.
///
/// The connection reads ahead a little, so that the end of the stream is noticed even if the app reads nothing, and starts TLS on
/// request. The owner checks the connection's state when ``changed`` is called.
///
/// Confined to the channel's event loop, which is the session's.
package final class ByteStreamConnection: ChannelInboundHandler, HTTPConnection {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The number of bytes that are read without demand.
    private static let readAhead = 65_536

    package let id: Int
    package var keptChain: KeptChain? { nil }
    package private(set) var facts: ConnectionFacts
    package var pool: ConnectionPool?
    package let initialCapacity: Int? = nil
    /// Called when bytes were read, the peer closed its side, the connection was lost or became writable again, or a better route
    /// may be available.
    package var changed: (() -> Void)?
    package private(set) var hasEnded = false
    package private(set) var failure: LoadError?
    /// Whether a new network address has appeared since the owner last set this property to false.
    package var mayHaveBetterRoute = false
    /// Whether received bytes are dropped.
    package private(set) var discardsInput = false
    private var received = ByteBuffer()
    private var context: ChannelHandlerContext?
    /// Whether the connection already uses TLS, with a proxy or the server; another TLS session is nested inside that one.
    private let isInTLS: Bool
    private var isReading = true
    /// Whether the app suspended the task.
    private var isHeld = false
    /// The number of bytes that the app requested.
    private var wanted = 0
    private var outputIsClosed = false
    private var isClosing = false
    /// Whether a TLS handshake is in progress; the handshake does its own reading.
    package private(set) var isSecuring = false
    private var transportError: (any Error)?
    private var lingering: Scheduled<Void>?
    /// What the last owner of an idle connection has left for the next one.
    private var kept: Any?

    /// Takes over a connection; `received` holds the bytes that were already read.
    init(id: Int, facts: ConnectionFacts, received: ByteBuffer = ByteBuffer(), failure: LoadError? = nil) {
        self.id = id
        self.failure = failure
        self.facts = facts
        self.received = received
        isInTLS = facts.isInTLS
        // Without a channel no bytes can arrive.
        hasEnded = failure == nil
    }

    // MARK: Reading

    package var readableBytes: Int { received.readableBytes }

    /// Takes at most `count` of the received bytes.
    package func take(_ count: Int) -> ByteBuffer {
        guard count < received.readableBytes else {
            defer { received = ByteBuffer() }
            return received
        }
        let taken = received.readSlice(length: count).map { ByteBuffer($0.readableBytesView) } ?? ByteBuffer()
        // The remaining bytes are moved only once they take up less than half of the buffer.
        if received.readerIndex > received.readableBytes { received.discardReadBytes() }
        return taken
    }

    /// Reads until `wanted` bytes, and at least ``readAhead`` bytes, are buffered; reads nothing while the task is suspended.
    package func read(upTo wanted: Int, isHeld: Bool) {
        self.wanted = wanted
        self.isHeld = isHeld
        updateReading()
    }

    package func discardInput() {
        discardsInput = true
        received = ByteBuffer()
        updateReading()
    }

    private func updateReading() {
        guard let context, !isSecuring else { return }
        let reads = discardsInput || !isHeld && received.readableBytes < max(Self.readAhead, wanted)
        guard reads != isReading else { return }
        isReading = reads
        try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    // MARK: Writing

    /// Whether to write now; also true for a lost connection, so that the write fails.
    package var isWritable: Bool { !channelIsActive || context?.channel.isWritable == true }

    /// Writes bytes, and reports on the loop, possibly before this method returns, whether the system accepted all bytes.
    package func write(_ bytes: ByteBuffer, written: @escaping (Bool) -> Void) {
        guard let context, channelIsActive, !outputIsClosed else {
            written(false)
            return lose()
        }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { [self] result in
            let isTaken = (try? result.get()) != nil
            written(isTaken)
            if !isTaken { lose() }
        }
        context.writeAndFlush(wrapOutboundOut(bytes), promise: promise)
    }

    /// Closes the writing side: FIN, preceded by `close_notify` over TLS.
    package func closeOutput(_ done: @escaping () -> Void) {
        guard let context, channelIsActive, !outputIsClosed else { return done() }
        outputIsClosed = true
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in done() }
        context.close(mode: .output, promise: promise)
    }

    // MARK: TLS

    /// Starts TLS; all received bytes must have been taken.
    ///
    /// - Parameters:
    ///   - server: The name that the certificate must be valid for.
    ///   - adviser: Asked to judge the server's certificate, and for the client's certificate.
    ///   - completion: Called on the loop, once.
    package func secure(
        to server: ServerName, by adviser: any HandshakeAdviser, completion: @escaping (LoadError?) -> Void
    ) {
        guard let context, let dialer = pool?.dialer, channelIsActive, !hasEnded, received.readableBytes == 0 else {
            return completion(failure ?? LoadError(.connectionLost, "the connection to \(facts.peer) is closed"))
        }
        isSecuring = true
        // The handshake reads as soon as its handler is added.
        isReading = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        let start = dialer.now()
        dialer.tls.secure(
            context.channel, to: server, demands: dialer.demands(server.host), isInner: isInTLS,
            advice: HandshakeAdvice { [weak adviser] in adviser },
            reach: facts.isToProxy ? nil : context.channel.remoteAddress.map(AddressKind.init)
        ) { [self] result in
            isSecuring = false
            switch result {
            case .success(let agreed):
                facts = facts.secured(agreed, from: start, to: dialer.now())
                updateReading()
                completion(nil)
            case .failure(let error):
                failure = failure ?? error
                completion(error)
            }
        }
    }

    // MARK: The pool

    package var channelIsActive: Bool { !isClosing && (context?.channel.isActive ?? false) }
    package var isIdle: Bool { changed == nil }
    package var isGone: Bool { !channelIsActive || hasEnded }
    package var allowsExtendedConnect: Bool { false }
    package var evidenceBeforeRequest: RetryEvidence { .none }

    package func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange {
        throw LoadError(.unknown, "the connection of a stream task cannot carry HTTP")
    }

    package func framedHead(of message: OutgoingMessage) -> RequestHead { message.head }

    package func findBetterRoute() {
        mayHaveBetterRoute = true
        changed?()
    }

    /// Makes the stream, or a later load, the owner of the connection.
    ///
    /// - Returns: What the last owner has left.
    @discardableResult
    package func takeOver(_ changed: @escaping () -> Void) -> Any? {
        self.changed = changed
        return kept.take()
    }

    /// Gives the connection to the pool, which closes it after a while; a later owner gets what is kept.
    ///
    /// A connection whose peer sends or ends anything meanwhile is closed.
    package func leave(keeping kept: Any, for time: TimeAmount) {
        changed = nil
        self.kept = kept
        read(upTo: 0, isHeld: false)
        pool?.giveBack(self, keepAlive: time.nanoseconds)
    }

    package func close() {
        isClosing = true
        changed = nil
        context?.close(promise: nil)
    }

    /// Waits up to `patience` for the peer to close the connection, because a reset would drop bytes that the peer has not
    /// acknowledged.
    package func linger(_ patience: TimeAmount) {
        guard let context, channelIsActive, !hasEnded else { return close() }
        changed = nil
        discardInput()
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        lingering = context.eventLoop.scheduleTask(in: patience) { bound.value.close() }
    }

    package func giveUp() { close() }

    package func networkIsLost(_ error: LoadError) {
        failure = failure ?? error
        isClosing = true
        context?.close(promise: nil)
        changed?()
    }

    // MARK: ChannelInboundHandler

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        hasEnded = !context.channel.isActive
        let options = context.channel.syncOptions
        try? options?.setOption(.allowRemoteHalfClosure, value: true)
        try? options?.setOption(
            .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1_024, initial: 2_048, maximum: Self.readAhead))
    }

    package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard kept == nil else { return close() }
        guard !discardsInput else { return }
        var buffer = unwrapInboundIn(data)
        if received.readableBytes == 0 { received = buffer } else { received.writeBuffer(&buffer) }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        updateReading()
        changed?()
        context.fireChannelReadComplete()
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        changed?()
        context.fireChannelWritabilityChanged()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed {
            // The handshake cannot be completed anymore.
            if isSecuring { context.close(promise: nil) } else { inputEnded() }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Handles the proper end of the peer's side.
    ///
    /// The loss of a connection, such as TLS closed without `close_notify`, triggers the same event, but is not a proper end.
    private func inputEnded() {
        guard !hasEnded, failure == nil else { return }
        hasEnded = true
        if changed == nil, lingering != nil || kept != nil { close() }
        changed?()
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        transportError = transportError ?? error
        guard !isSecuring else { return context.fireErrorCaught(error) }
        lose()
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        isClosing = true
        lingering?.cancel()
        // If this side is closed already, the peer's close also closes the channel. The peer of a Unix socket closes both sides at
        // once, which closes the channel, too. A handshake reports its failure itself.
        if outputIsClosed || hasEnded && facts.remotePort == nil, transportError == nil {
            inputEnded()
        } else if !isSecuring {
            lose()
        }
        pool?.connectionClosed(self)
        pool = nil
        context.fireChannelInactive()
    }

    private func lose() {
        let reason = transportError.flatMap(PrintableFailure.text).map { ": " + $0 } ?? ""
        failure =
            failure ?? LoadError(.connectionLost, "the connection to \(facts.peer) was lost\(reason)", cause: transportError)
        changed?()
    }
}

extension VersionCarrier {
    /// The carrier of no version.
    static var byteStream: VersionCarrier {
        VersionCarrier(
            [],
            begin: { dialled, seed in
                let connection = ByteStreamConnection(id: seed.id, facts: dialled.facts, received: dialled.early)
                return try seed.plant(connection, on: dialled.channel)
            })
    }
}

extension ConnectionFacts {
    /// Returns the facts of the same connection, now with TLS.
    fileprivate func secured(_ agreed: TLSSession.Agreement, from start: Double, to end: Double) -> ConnectionFacts {
        ConnectionFacts(
            localAddress: localAddress, localPort: localPort, remoteAddress: remoteAddress, remotePort: remotePort,
            tlsVersion: agreed.version, tlsCipherSuite: agreed.cipherSuite, domainLookupStart: domainLookupStart,
            domainLookupEnd: domainLookupEnd, connectStart: connectStart, secureConnectionStart: start,
            secureConnectionEnd: end, connectEnd: connectEnd, wasAskedForCertificate: agreed.wasAskedForCertificate,
            sentClientCertificate: agreed.sentClientCertificate, isVerified: agreed.isVerified,
            serverCertificate: agreed.serverCertificate, isToProxy: isToProxy, isMultipath: isMultipath,
            isForwarded: isForwarded, interface: interface, usedNameServers: usedNameServers, isInTLS: true,
            applicationProtocol: agreed.applicationProtocol, trust: agreed.trust)
    }
}
