//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore
import NIOSSL

/// A connection that no HTTP is spoken over: a stream task's for good, from the moment at which it stands.
///
/// It reads ahead a little, so that the peer's end is noticed though the app reads nothing, and secures itself when it is told to. What
/// changed is looked at here when ``changed`` is called.
///
/// Confined to the channel's event loop, which is the session's.
package final class ByteStreamConnection: ChannelInboundHandler, HTTPConnection {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// Bytes that are read though nothing asks for them.
    private static let readAhead = 65_536

    package let id: Int
    package private(set) var facts: ConnectionFacts
    package var pool: ConnectionPool?
    package let initialCapacity: Int? = nil
    /// Told when more was read, or the peer ended its side, or the connection is lost, or takes more, or there may be a better route.
    package var changed: (() -> Void)?
    package private(set) var hasEnded = false
    package private(set) var failure: LoadError?
    /// A network came up since this was looked at last.
    package var mayHaveBetterRoute = false
    /// What was read is not kept any more.
    package private(set) var discardsInput = false
    private var received = ByteBuffer()
    private var context: ChannelHandlerContext?
    /// With a proxy, or with the server: TLS that is begun is within that.
    private let isInTLS: Bool
    private var isReading = true
    /// The app suspended its task.
    private var isHeld = false
    /// Bytes that the app asked for.
    private var wanted = 0
    private var outputIsClosed = false
    private var isClosing = false
    /// TLS's handshake reads by itself.
    package private(set) var isSecuring = false
    private var transportError: (any Error)?
    private var lingering: Scheduled<Void>?

    /// `received` was read already.
    init(id: Int, facts: ConnectionFacts, received: ByteBuffer = ByteBuffer(), failure: LoadError? = nil) {
        self.id = id
        self.failure = failure
        self.facts = facts
        self.received = received
        isInTLS = facts.isInTLS
        // Without a channel there is nothing to come.
        hasEnded = failure == nil
    }

    // MARK: Reading

    package var readableBytes: Int { received.readableBytes }

    /// Takes as many of the bytes that were read as there are, and `count` at most.
    package func take(_ count: Int) -> ByteBuffer {
        guard count < received.readableBytes else {
            defer { received = ByteBuffer() }
            return received
        }
        let taken = received.readSlice(length: count).map { ByteBuffer($0.readableBytesView) } ?? ByteBuffer()
        // What is left is moved as seldom as it is halved.
        if received.readerIndex > received.readableBytes { received.discardReadBytes() }
        return taken
    }

    /// Reads on until so many bytes lie here, and a little ahead.
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

    /// Whether a write is worth while: on a connection that is lost it finds that out.
    package var isWritable: Bool { !channelIsActive || context?.channel.isWritable == true }

    /// Writes bytes, and answers on the loop, perhaps at once, whether the system has all of them.
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

    /// Ends the writing side: FIN, and `close_notify` before it over TLS.
    package func closeOutput(_ done: @escaping () -> Void) {
        guard let context, channelIsActive, !outputIsClosed else { return done() }
        outputIsClosed = true
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in done() }
        context.close(mode: .output, promise: promise)
    }

    // MARK: TLS

    /// Secures the connection; nothing may be read and not taken.
    ///
    /// - Parameters:
    ///   - server: Whose certificate is wanted.
    ///   - adviser: Asked about the certificate, and for the client's.
    ///   - completion: Called on the loop, once.
    package func secure(
        to server: ServerName, by adviser: any HandshakeAdviser, completion: @escaping (LoadError?) -> Void
    ) {
        guard let context, let dialer = pool?.dialer, channelIsActive, !hasEnded, received.readableBytes == 0 else {
            return completion(failure ?? LoadError(.connectionLost, "the connection to \(facts.peer) is closed"))
        }
        isSecuring = true
        // The handshake reads as soon as its handler is there.
        isReading = true
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        let start = dialer.now()
        dialer.tls.secure(
            context.channel, to: server, demands: dialer.demands(server.host), isInner: isInTLS,
            advice: HandshakeAdvice { [weak adviser] in adviser }
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
        throw LoadError(.unknown, "a stream task's connection carries no HTTP")
    }

    package func framedHead(of message: OutgoingMessage) -> RequestHead { message.head }

    func findBetterRoute() {
        mayHaveBetterRoute = true
        changed?()
    }

    /// The stream has it from here on.
    package func takeOver(_ changed: @escaping () -> Void) { self.changed = changed }

    package func close() {
        isClosing = true
        changed = nil
        context?.close(promise: nil)
    }

    /// Leaves it to the peer to end the connection, as what it has not acknowledged would be lost with a reset.
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
            // No handshake can come of it.
            if isSecuring { context.close(promise: nil) } else { inputEnded() }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// The peer ended its side in order: what is lost, as TLS without `close_notify` is, has no such end, though it is told of one.
    private func inputEnded() {
        guard !hasEnded, failure == nil else { return }
        hasEnded = true
        if changed == nil, lingering != nil { close() }
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
        // The peer's end after its own closes the channel, and so does the end of a Unix socket's peer, which closes both sides at once; a
        // handshake says itself why it failed.
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

extension ConnectionFacts {
    /// Of the same connection, now that TLS stands.
    fileprivate func secured(_ agreed: TLSSession.Agreement, from start: Double, to end: Double) -> ConnectionFacts {
        ConnectionFacts(
            localAddress: localAddress, localPort: localPort, remoteAddress: remoteAddress, remotePort: remotePort,
            tlsVersion: agreed.version, tlsCipherSuite: agreed.cipherSuite, domainLookupStart: domainLookupStart,
            domainLookupEnd: domainLookupEnd, connectStart: connectStart, secureConnectionStart: start,
            secureConnectionEnd: end, connectEnd: connectEnd, wasAskedForCertificate: agreed.wasAskedForCertificate,
            hasShownCertificate: agreed.hasShownCertificate, isVerified: agreed.isVerified,
            serverCertificate: agreed.serverCertificate, isToProxy: isToProxy, isMultipath: isMultipath,
            isForwarded: isForwarded, interface: interface, askedNameServers: askedNameServers, isInTLS: true,
            applicationProtocol: agreed.applicationProtocol, trust: agreed.trust)
    }
}
