// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOPosix

/// Responds to every request two seconds after reading it, on as many connections as the system allows.
@main
struct SlowServer {
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
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(SlowAnswer()) }
            }
            .bind(host: "127.0.0.1", port: 0).wait()
        print(channel.localAddress?.port ?? 0)
        fflush(nil)
        try channel.closeFuture.wait()
    }
}

private final class SlowAnswer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let answer = ByteBuffer(string: "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok")
    private var matched = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        for byte in unwrapInboundIn(data).readableBytesView {
            switch (matched, byte) {
            case (0, 13), (2, 13): matched += 1
            case (1, 10): matched = 2
            case (3, 10):
                matched = 0
                let bound = context.loopBound
                context.eventLoop.scheduleTask(in: .seconds(2)) {
                    let context = bound.value
                    context.writeAndFlush(self.wrapOutboundOut(SlowAnswer.answer), promise: nil)
                }
            default: matched = byte == 13 ? 1 : 0
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
