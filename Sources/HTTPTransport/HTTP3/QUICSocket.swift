// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import CQUIC
import LibC
import LoadingModel
import NIOCore
import NIOPosix

/// Memory into which a session's QUIC connections write what they send next.
///
/// Confined to the session's loop.
final class DatagramScratch {
    /// What fits into one segmented send: less than 64 KiB, in at most 64 packets of at least 1,200 bytes (RFC 9000, section 14).
    static let size = 61_440

    let bytes: UnsafeMutablePointer<UInt8>

    init() { bytes = .allocate(capacity: Self.size) }
    deinit { bytes.deallocate() }
}

/// The socket of a QUIC connection, a datagram channel that is connected to the server.
///
/// Packets of equal size are sent with one system call (UDP_SEGMENT, udp(7)), and as single datagrams where the system refuses that.
/// They go directly to the socket: a datagram that cannot be sent is lost, as on the way, and must not end the connection, as it would
/// in the channel.
///
/// Confined to the channel's event loop.
final class QUICSocket: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    private let connection: QUICConnection
    private let isV6: Bool
    /// The marks of the session's service, which share an octet with ECN (RFC 2474, RFC 3168).
    private let codePoint: CInt
    private var context: ChannelHandlerContext?
    private var descriptor: CInt?
    /// Some network cards fail with EIO although the option can be set.
    private var usesSegments = true
    /// Packets that the socket has not accepted yet; no later ones may overtake them.
    private var blocked: (bytes: ByteBuffer, packets: cquic_packets)?
    /// How long to wait before such packets are tried again.
    private static let pause = TimeAmount.milliseconds(1)
    /// The number of bytes received since an instant, which is moved every ``span``.
    private var received = 0
    private var countedSince = NIODeadline.uptimeNanoseconds(0)
    private static let span = TimeAmount.milliseconds(10)
    /// Whether the socket is read with much memory at once.
    private var readsVectors = false
    /// How many bytes within ``span`` show that much is coming.
    private static let bulk = 65_536
    private static let vectorLength = 8

    /// Memory for so many datagrams, each of which may be many that the kernel has joined.
    static func readMemory(_ count: Int) -> FixedSizeRecvByteBufferAllocator {
        FixedSizeRecvByteBufferAllocator(capacity: count * 65_536)
    }

    private func readVectors(_ readsVectors: Bool) {
        guard self.readsVectors != readsVectors, let options = context?.channel.syncOptions else { return }
        self.readsVectors = readsVectors
        let count = readsVectors ? Self.vectorLength : 1
        try? options.setOption(.recvAllocator, value: Self.readMemory(count))
        try? options.setOption(.datagramVectorReadMessageCount, value: readsVectors ? count : 0)
    }

    init(of connection: QUICConnection, isV6: Bool, codePoint: CInt) {
        self.connection = connection
        self.isV6 = isV6
        self.codePoint = codePoint
    }

    var channel: (any Channel)? { context?.channel }
    var isBlocked: Bool { blocked != nil }

    /// Releases most of the memory that the channel keeps for the next read.
    ///
    /// Not at once, because the channel may be using it.
    func shrink() { if readsVectors { connection.executor.callLater { [self] in readVectors(false) } } }

    // MARK: Sending

    func send(_ bytes: UnsafeRawBufferPointer, _ packets: cquic_packets) {
        guard let context, context.channel.isActive, let descriptor else { return }
        let packetSize = packets.packet_size
        var offset = 0
        while offset < bytes.count {
            let size = usesSegments ? bytes.count - offset : min(packetSize, bytes.count - offset)
            let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + size])
            let segment = size > packetSize ? packetSize : 0
            let mark = codePoint << 2 | CInt(packets.ecn)
            let sent = cls_send_datagrams(descriptor, part.baseAddress, part.count, Int32(clamping: segment), isV6 ? 1 : 0, mark)
            switch CInt(clamping: -sent) {
            case EIO, EINVAL, EOPNOTSUPP, ENOPROTOOPT:
                if segment > 0 {
                    usesSegments = false
                } else {
                    offset += size
                }
            case EAGAIN:
                return wait(UnsafeRawBufferPointer(rebasing: bytes[offset...]), packets)
            default: offset += size
            }
        }
    }

    /// Keeps packets until the socket may accept them again.
    ///
    /// The channel could say when that is, but only for a write of its own, whose failure would close it.
    private func wait(_ bytes: UnsafeRawBufferPointer, _ packets: cquic_packets) {
        blocked = (ByteBuffer(bytes: bytes), packets)
        let bound = NIOLoopBound(self, eventLoop: connection.loop)
        connection.loop.scheduleTask(in: Self.pause) { bound.value.retry() }
    }

    private func retry() {
        guard let (bytes, packets) = blocked.take() else { return }
        bytes.withUnsafeReadableBytes { send($0, packets) }
        if !isBlocked { connection.scheduleFlush() }
    }

    // MARK: ChannelInboundHandler

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        descriptor = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        connection.closed(self)
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        let ecn: UInt8 =
            switch envelope.metadata?.ecnState {
            case .transportCapableFlag0: 2
            case .transportCapableFlag1: 1
            case .congestionExperienced: 3
            default: 0
            }
        let segment = envelope.metadata?.segmentSize ?? 0
        received += envelope.data.readableBytes
        envelope.data.withUnsafeReadableBytes {
            connection.receive($0, segmentSize: segment > 0 ? segment : $0.count, ecn: ecn)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if received >= Self.bulk { readVectors(true) }
        let now = NIODeadline.now()
        if now - countedSince > Self.span { (received, countedSince) = (0, now) }
        connection.received()
        context.fireChannelReadComplete()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { connection.wasRefused(error) }

    func channelInactive(context: ChannelHandlerContext) {
        connection.closed(self)
        context.fireChannelInactive()
    }
}

/// What a QUIC socket is opened with.
struct QUICSocketOrder {
    let address: SocketAddress
    /// The interface to which the socket is bound, if the route that the system chooses is prohibited.
    let interface: String?
    let preparation: SocketPreparation?
    /// Gives the socket's reservation back when the socket is closed.
    let room: ConnectionBudget.Share?
    let loop: any EventLoop

    /// Opens a connected socket, for which a reservation was taken; `done` is called on the loop.
    func open(for connection: QUICConnection, _ done: @escaping (Result<QUICSocket, any Error>) -> Void) {
        let socket = QUICSocket(of: connection, isV6: address.protocol == .inet6, codePoint: preparation?.codePoint ?? 0)
        let made = NIOLoopBoundBox<(any Channel)?>(nil, eventLoop: loop)
        let bound = NIOLoopBound((socket: socket, order: self), eventLoop: loop)
        let bootstrap = DatagramBootstrap(group: loop).channelInitializer { channel in
            let (socket, order) = bound.value
            made.value = channel
            order.opened(channel)
            order.setOptions(channel)
            do {
                try channel.pipeline.syncOperations.addHandler(socket)
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
            return SocketPreparation.prepare(order.preparation, channel, for: order.address, by: order.interface)
        }
        let address = address
        let connected =
            preparation?.localSource.map { source in
                bootstrap.bind(to: source).flatMap { channel in channel.connect(to: address).map { channel } }
            } ?? bootstrap.connect(to: address)
        connected.assumeIsolated().whenComplete { result in
            switch result {
            case .success: done(.success(socket))
            case .failure(let error):
                // The bootstrap leaves a channel open that could not be prepared.
                if let channel = made.value { channel.close(promise: nil) } else { room?.giveBack() }
                done(.failure(error))
            }
        }
    }

    /// Sets what makes the socket better; each option is dispensable.
    private func setOptions(_ channel: any Channel) {
        guard let options = channel.syncOptions else { return }
        // A datagram that is too large is dropped, and not sent in fragments (RFC 9000, section 14): IP_PMTUDISC_PROBE.
        let (level, name): (NIOBSDSocket.OptionLevel, CInt) = address.protocol == .inet6 ? (.ipv6, 23) : (.ip, 10)
        try? options.setOption(ChannelOptions.Types.SocketOption(level: level, name: .init(rawValue: name)), value: 3)
        try? options.setOption(.socketOption(.so_rcvbuf), value: 1_048_576)
        try? options.setOption(.explicitCongestionNotification, value: true)
        try? options.setOption(.recvAllocator, value: QUICSocket.readMemory(1))
        // What is left is reported again.
        try? options.setOption(.maxMessagesPerRead, value: 1)
        // Without its size, joined datagrams could not be told apart.
        guard (try? options.setOption(.datagramReceiveSegmentSize, value: true)) != nil else { return }
        try? options.setOption(.datagramReceiveOffload, value: true)
    }

    private func opened(_ channel: any Channel) {
        guard let room else { return }
        room.socket(isOpen: true)
        channel.closeFuture.assumeIsolated().whenComplete { _ in
            room.socket(isOpen: false)
            room.giveBack()
        }
    }
}
