// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// Echoes the messages to `/echo`, and responds to the first message to `/stream/SIZE/COUNT` with COUNT messages.
///
/// NIO does the handshake. Afterwards the server works on bytes, without NIO's frames, so that its cost does not hide the clients'.
@main
struct WebSocketServer {
    static func main() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let channel = try ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 16_384)
            .serverChannelOption(.maxMessagesPerRead, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                let upgrader = NIOWebSocketServerUpgrader(
                    automaticErrorHandling: false,
                    shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
                    upgradePipelineHandler: { channel, head in
                        channel.eventLoop.makeCompletedFuture {
                            // This handler is before NIO's decoder, and consumes all bytes.
                            let handler: any ChannelHandler = head.uri.hasPrefix("/stream") ? Stream(head.uri) : Echo()
                            try channel.pipeline.syncOperations.addHandler(handler, position: .first)
                        }
                    })
                return channel.pipeline.configureHTTPServerPipeline(withServerUpgrade: ([upgrader], { _ in }))
            }
            .bind(host: "127.0.0.1", port: 0).wait()
        print(channel.localAddress?.port ?? 0)
        fflush(nil)
        try channel.closeFuture.wait()
    }
}

private final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var rest = ByteBuffer()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if rest.readableBytes > 0 {
            rest.writeBuffer(&bytes)
            bytes = rest
            rest = ByteBuffer()
        }
        var answer = context.channel.allocator.buffer(capacity: bytes.readableBytes)
        var isClosing = false
        while let opcode = turn(&bytes, into: &answer) { isClosing = isClosing || opcode == 8 }
        if bytes.readableBytes > 0 { rest = bytes }
        guard answer.readableBytes > 0 else { return }
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        if isClosing { context.close(promise: nil) }
    }

    /// Echoes the next frame without its mask, and returns its opcode, or nil if the frame is incomplete.
    private func turn(_ bytes: inout ByteBuffer, into answer: inout ByteBuffer) -> UInt8? {
        let start = bytes.readerIndex
        guard let first: UInt8 = bytes.getInteger(at: start), let second: UInt8 = bytes.getInteger(at: start + 1) else {
            return nil
        }
        var length = Int(second & 0x7F)
        var head = 2
        if length == 126 {
            guard let long: UInt16 = bytes.getInteger(at: start + 2) else { return nil }
            (length, head) = (Int(long), 4)
        } else if length == 127 {
            guard let long: UInt64 = bytes.getInteger(at: start + 2) else { return nil }
            (length, head) = (Int(clamping: long), 10)
        }
        guard bytes.readableBytes >= head + 4 + length, let key: UInt32 = bytes.getInteger(at: start + head, endianness: .host)
        else {
            return nil
        }
        // Respond to a ping with a pong.
        answer.writeInteger(first & 0xF == 9 ? first ^ 3 : first)
        answer.writeInteger(second & 0x7F)
        answer.writeImmutableBuffer(bytes.getSlice(at: start + 2, length: head - 2) ?? ByteBuffer())
        let payload = answer.writerIndex
        answer.writeImmutableBuffer(bytes.getSlice(at: start + head + 4, length: length) ?? ByteBuffer())
        let before = payload - answer.readerIndex
        answer.withUnsafeMutableReadableBytes { all in
            let payload = UnsafeMutableRawBufferPointer(rebasing: all[before...])
            let word = UInt64(key) << 32 | UInt64(key)
            var at = 0
            while at + 8 <= length {
                payload.storeBytes(
                    of: payload.loadUnaligned(fromByteOffset: at, as: UInt64.self) ^ word, toByteOffset: at, as: UInt64.self)
                at += 8
            }
            while at < length {
                payload[at] ^= UInt8(truncatingIfNeeded: key >> UInt32(8 * (at & 3)))
                at += 1
            }
        }
        bytes.moveReaderIndex(forwardBy: head + 4 + length)
        return first & 0xF
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

private final class Stream: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let frame: ByteBuffer
    private var left: Int
    private var wasAsked = false

    init(_ path: String) {
        let numbers = path.split(separator: "/").compactMap { Int($0) }
        let size = numbers.first ?? 65_536
        left = numbers.dropFirst().first ?? 1
        var frame = ByteBuffer()
        frame.writeInteger(UInt8(0x82))
        frame.writeInteger(UInt8(127))
        frame.writeInteger(UInt64(size))
        frame.writeRepeatingByte(7, count: size)
        self.frame = frame
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { send(context) }

    private func send(_ context: ChannelHandlerContext) {
        while wasAsked, left > 0, context.channel.isWritable {
            left -= 1
            context.write(wrapOutboundOut(frame), promise: nil)
        }
        context.flush()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard let first: UInt8 = bytes.readInteger() else { return }
        // Each read has one frame of the client: an empty message, or a close frame.
        if first & 0xF == 8 { return context.close(promise: nil) }
        wasAsked = true
        send(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
