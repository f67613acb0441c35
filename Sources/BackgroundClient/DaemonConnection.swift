//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import NIOCore
import NIOPosix
import Synchronization

/// A connection to the daemon: messages out, in the order in which they were said, and messages in.
///
/// All of a process's go over one loop of their own, so that a daemon that says a lot holds up no load of this process.
final class DaemonConnection: Sendable {
    /// What a connection tells of; on the loop.
    struct Handler: Sendable {
        var received: @Sendable (DaemonMessage) -> Void
        /// Once, and nothing after it.
        var closed: @Sendable () -> Void
    }

    /// Bytes that may wait to be sent, beyond which the daemon is taken for dead.
    private static let waitingLimit = 64 << 20
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private struct Outgoing {
        var bytes: [UInt8] = []
        var isScheduled = false
        var isOver = false
    }

    private let channel: any Channel
    private let outgoing = Mutex(Outgoing())

    private init(_ channel: any Channel) { self.channel = channel }

    static var loop: any EventLoop { group.next() }

    /// Connects; the handler hears nothing before the future has succeeded.
    static func open(_ place: DaemonPlace, _ handler: Handler) -> EventLoopFuture<DaemonConnection> {
        ClientBootstrap(group: loop)
            .channelOption(.maxMessagesPerRead, value: 4)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 256 << 10))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(MessageReader(handler))
                }
            }
            .connect(unixDomainSocketPath: place.socket)
            .map { DaemonConnection($0) }
    }

    /// Says something; what cannot be encoded is the caller's to find out before.
    func send(_ payload: [UInt8]) {
        let frame = FrameReader.frame(payload)
        let (mustSchedule, isTooMuch) = outgoing.withLock { outgoing in
            guard !outgoing.isOver else { return (false, false) }
            outgoing.bytes += frame
            if outgoing.bytes.count > Self.waitingLimit {
                outgoing.isOver = true
                return (false, true)
            }
            defer { outgoing.isScheduled = true }
            return (!outgoing.isScheduled, false)
        }
        if isTooMuch { return channel.close(promise: nil) }
        if mustSchedule { channel.eventLoop.execute { self.flush() } }
    }

    private func flush() {
        let bytes = outgoing.withLock { outgoing in
            outgoing.isScheduled = false
            defer { outgoing.bytes = [] }
            return outgoing.bytes
        }
        guard !bytes.isEmpty else { return }
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    /// Closes it once what was said is on its way.
    func close() {
        channel.eventLoop.execute {
            self.flush()
            self.channel.close(promise: nil)
        }
    }
}

/// Cuts what the daemon says into messages.
private final class MessageReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let handler: DaemonConnection.Handler
    private var reader = FrameReader()
    private var isClosed = false

    init(_ handler: DaemonConnection.Handler) { self.handler = handler }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isClosed else { return }
        let buffer = unwrapInboundIn(data)
        do {
            reader.append(buffer.readableBytesView)
            while let payload = try reader.next() { handler.received(try MessageCoding.decodeDaemonMessage(payload)) }
        } catch {
            // Another version's, or not the daemon: the connection cannot be gone on with.
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelInactive(context: ChannelHandlerContext) {
        guard !isClosed else { return }
        isClosed = true
        handler.closed()
    }
}
