// SPDX-License-Identifier: Apache-2.0

import BenchKit
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// NIO's WebSocket client, used through `NIOAsyncChannel`, or on the loop with a handler that processes messages without a
/// caller.
struct NIOWebSocketPeer: WebSocketPeer {
    private let isOnLoop: Bool
    var executor: (any TaskExecutor)? { nil }

    init(_ options: Options) { isOnLoop = options.onLoop }

    func open(_ url: String) async throws -> Socket {
        let exchange = try FloorExchange(url.replacing("ws://", with: "http://", maxReplacements: 1))
        let path = exchange.request.split(separator: " ")[1]
        let isOnLoop = isOnLoop
        let upgrader = NIOTypedWebSocketClientUpgrader<Socket>(maxFrameSize: 1 << 20) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                guard !isOnLoop else {
                    let handler = CountingHandler()
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return .handler(NIOLoopBound(handler, eventLoop: channel.eventLoop), channel)
                }
                return .async(try NIOAsyncChannel<WebSocketFrame, WebSocketFrame>(wrappingChannelSynchronously: channel))
            }
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: String(path),
            headers: ["Host": "\(exchange.host):\(exchange.port)", "Content-Length": "0"])
        let negotiated = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .connect(host: exchange.host, port: exchange.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let upgrade = NIOTypedHTTPClientUpgradeConfiguration(
                        upgradeRequestHead: head, upgraders: [upgrader],
                        notUpgradingCompletionHandler: { $0.eventLoop.makeFailedFuture(BenchFailure("not upgraded")) })
                    return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                        configuration: .init(upgradeConfiguration: upgrade))
                }
            }
        return try await negotiated.get()
    }

    enum Socket: BenchSocket {
        case async(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>)
        case handler(NIOLoopBound<CountingHandler>, any Channel)

        func echo(_ count: Int, size: Int, inFlight: Int) async throws {
            switch self {
            case .handler(let handler, let channel):
                try await channel.eventLoop.flatSubmit { handler.value.echo(count, size: size, inFlight: inFlight) }.get()
            case .async(let channel):
                let payload = ByteBuffer(repeating: 7, count: size)
                try await channel.executeThenClose { inbound, outbound in
                    for _ in 0..<min(inFlight, count) { try await outbound.write(masked(payload)) }
                    var left = count
                    for try await received in inbound where received.opcode == .binary {
                        guard received.data.readableBytes == size else { throw BenchFailure("not an echo") }
                        left -= 1
                        if left == 0 { return }
                        if left >= inFlight { try await outbound.write(masked(payload)) }
                    }
                    throw BenchFailure("the connection ended")
                }
            }
        }

        func receive(_ count: Int) async throws -> Int {
            switch self {
            case .handler(let handler, let channel):
                return try await channel.eventLoop.flatSubmit { handler.value.ask(for: count) }.get()
            case .async(let channel):
                return try await channel.executeThenClose { inbound, outbound in
                    try await outbound.write(masked(ByteBuffer()))
                    var (total, left) = (0, count)
                    for try await received in inbound where received.opcode == .binary {
                        total += received.data.readableBytes
                        left -= 1
                        if left == 0 { break }
                    }
                    return total
                }
            }
        }

        func idle() async throws {}
    }
}

private func masked(_ payload: ByteBuffer) -> WebSocketFrame {
    WebSocketFrame(fin: true, opcode: .binary, maskKey: .random(), data: payload)
}

/// Responds to each message with the next one, and flushes when all received messages were read.
final class CountingHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private var context: ChannelHandlerContext?
    private var payload = ByteBuffer()
    private var promise: EventLoopPromise<Int>?
    private var toSend = 0
    private var received = (messages: 0, bytes: 0)
    private var goal = Int.max

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func echo(_ count: Int, size: Int, inFlight: Int) -> EventLoopFuture<Void> {
        guard let context else { preconditionFailure("no channel") }
        payload = ByteBuffer(repeating: 7, count: size)
        let first = min(inFlight, count)
        toSend = count - first
        for _ in 0..<first { context.write(wrapOutboundOut(masked(payload)), promise: nil) }
        context.flush()
        return receive(count, context).map { _ in }
    }

    /// Sends a message, to which the server responds with `count` messages.
    func ask(for count: Int) -> EventLoopFuture<Int> {
        guard let context else { preconditionFailure("no channel") }
        context.writeAndFlush(wrapOutboundOut(masked(ByteBuffer())), promise: nil)
        return receive(count, context)
    }

    private func receive(_ count: Int, _ context: ChannelHandlerContext) -> EventLoopFuture<Int> {
        let promise = context.eventLoop.makePromise(of: Int.self)
        (self.promise, goal, received) = (promise, count, (0, 0))
        return promise.futureResult
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard frame.opcode == .binary else { return }
        received.messages += 1
        received.bytes += frame.data.readableBytes
        if toSend > 0 {
            toSend -= 1
            context.write(wrapOutboundOut(masked(payload)), promise: nil)
        }
        if received.messages == goal { promise?.succeed(received.bytes) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
}

@main
struct Main {
    static func main() async { await runWebSocketBenchmark { NIOWebSocketPeer($0) } }
}
