// SPDX-License-Identifier: Apache-2.0

import BenchKit
import NIOCore
import NIOPosix
import Synchronization

/// A lower limit, not a client; it sends a request of fixed bytes, counts the response's bytes, and resumes an async caller.
///
/// No client that uses NIO and has an async API can be faster.
struct NIOPeer: Peer {
    private let idle = Idle()

    func get(_ url: String) async throws -> Int {
        let connection = if let idle = idle.take() { idle } else { try await FloorConnection.open(url) }
        let count = await connection.exchange()
        idle.put(connection)
        return count
    }

    func download(_ url: String, to path: String) async throws -> Int { throw Unsupported() }
    func iterate(_ url: String) async throws -> Int { throw Unsupported() }
    func delegate(_ url: String) async throws -> Int { throw Unsupported() }
    func upload(_ path: String, to url: String) async throws { throw Unsupported() }
}

private final class Idle: Sendable {
    private let connections = Mutex<[FloorConnection]>([])
    func take() -> FloorConnection? { connections.withLock { $0.popLast() } }
    func put(_ connection: FloorConnection) { connections.withLock { $0.append(connection) } }
}

/// A connection.
///
/// All connections share one loop, like those of a session.
private final class FloorConnection: Sendable {
    private static let loop = MultiThreadedEventLoopGroup.singleton.next()
    private let handler: NIOLoopBound<CountingHandler>

    private init(_ handler: NIOLoopBound<CountingHandler>) { self.handler = handler }

    static func open(_ url: String) async throws -> FloorConnection {
        let exchange = try FloorExchange(url)
        let loop = loop
        return try await ClientBootstrap(group: loop)
            .connect(host: exchange.host, port: exchange.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = CountingHandler(exchange)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return FloorConnection(NIOLoopBound(handler, eventLoop: loop))
                }
            }
    }

    func exchange() async -> Int {
        await withUnsafeContinuation { continuation in
            Self.loop.execute { self.handler.value.begin(continuation) }
        }
    }
}

private final class CountingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let request: ByteBuffer
    private var exchange: FloorExchange
    private var context: ChannelHandlerContext?
    private var waiter: UnsafeContinuation<Int, Never>?
    private var received = 0

    init(_ exchange: FloorExchange) {
        self.exchange = exchange
        request = ByteBuffer(string: exchange.request)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func begin(_ continuation: UnsafeContinuation<Int, Never>) {
        waiter = continuation
        received = 0
        context?.writeAndFlush(wrapOutboundOut(request), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        received += buffer.readableBytes
        if exchange.whole == Int.max { exchange.measure(buffer.readableBytesView) }
        guard received >= exchange.whole, let waiter else { return }
        self.waiter = nil
        waiter.resume(returning: exchange.body)
    }
}

@main
struct Main {
    static func main() async { await runBenchmark { _ in NIOPeer() } }
}
