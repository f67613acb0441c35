// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import NIOCore
import NIOPosix
import NIOSSL

@testable import HTTPTransport

/// A loopback listener that counts its connections and handles them as the test specifies.
struct LoopbackListener: Sendable {
    let channel: any Channel

    var port: Int { channel.localAddress?.port ?? 0 }

    init(
        host: String = "127.0.0.1", onConnection: @escaping @Sendable (any Channel) throws -> Void = { _ in }
    ) async throws {
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { child in child.eventLoop.makeCompletedFuture { try onConnection(child) } }
            .bind(host: host, port: 0)
            .get()
    }

    func close() async throws { try await channel.close() }

    /// Returns a port that has no listener, because the port was just released.
    static func closedPort() async throws -> Int {
        let listener = try await LoopbackListener()
        let port = listener.port
        try await listener.close()
        return port
    }
}

/// Sends a greeting as soon as the connection is active.
final class Greeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let greeting: String

    init(_ greeting: String) { self.greeting = greeting }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
        context.fireChannelActive()
    }
}

/// Collects received bytes, and reports them when at least the expected number has arrived.
final class Listener: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var text = ""
    private let heard: (String) -> Void
    private let expected: Int

    init(expecting count: Int, heard: @escaping (String) -> Void) {
        expected = count
        self.heard = heard
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        text += String(buffer: unwrapInboundIn(data))
        if text.utf8.count >= expected { heard(text) }
    }
}

/// Answers lookups with the results that the test specifies.
struct ScriptedResolver: HTTPTransport.Resolver {
    var v4: Result<[SocketAddress], LoadError>
    var v6: Result<[SocketAddress], LoadError>

    func lookUp(
        _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily, on loop: any EventLoop,
        holdChanged: @escaping @Sendable (Bool) -> Void, reply: @escaping @Sendable (Result<[SocketAddress], LoadError>) -> Void
    ) -> @Sendable () -> Void {
        let result = family == .inet6 ? v6 : v4
        loop.execute { reply(result) }
        return {}
    }

    func forget() {}
}

extension Dialer {
    /// Starts to open a channel; call it on the loop.
    ///
    /// `adviser` returns the load to ask about the connection; it is called for each question.
    func dial(
        _ route: Route, room: ConnectionBudget.Share? = nil, adviser: @escaping () -> (any HandshakeAdviser)? = { nil },
        completion: @escaping (Result<DialledChannel, LoadError>) -> Void
    ) -> Dial {
        let dial = Dial(
            route, versions(of: route), by: self, room: room, advice: HandshakeAdvice(adviser), completion: completion)
        dial.start()
        return dial
    }
}

/// Dials, closes the connection, and returns its facts.
func dial(
    _ host: String, port: Int, isSecure: Bool = false, policy: TLSPolicy = TLSPolicy(),
    resolver: any HTTPTransport.Resolver = SystemResolver()
) async -> Result<ConnectionFacts, LoadError> {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    return await withCheckedContinuation { continuation in
        loop.execute {
            let clock = TickingClock()
            let dialer = Dialer(loop: loop, tls: TLSSession(policy: policy), resolver: resolver, now: clock.tick)
            _ = dialer.dial(Route(isSecure: isSecure, host: host, port: port)) { result in
                continuation.resume(
                    returning: result.map { dialled in
                        dialled.channel.close(promise: nil)
                        return dialled.facts
                    }
                )
            }
        }
    }
}

/// Dials, adds a handler in the completion, and returns the first bytes that the handler receives as text, at least `count` of
/// them.
func receivedText(
    from host: String, port: Int, count: Int, isSecure: Bool, policy: TLSPolicy = TLSPolicy()
) async -> String {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    return await withCheckedContinuation { continuation in
        loop.execute {
            let clock = TickingClock()
            let dialer = Dialer(loop: loop, tls: TLSSession(policy: policy), resolver: SystemResolver(), now: clock.tick)
            _ = dialer.dial(Route(isSecure: isSecure, host: host, port: port)) { result in
                do {
                    let channel = try result.get().channel
                    let listener = Listener(expecting: count) { text in
                        channel.close(promise: nil)
                        continuation.resume(returning: text)
                    }
                    try channel.pipeline.syncOperations.addHandler(listener)
                } catch {
                    continuation.resume(returning: "\(error)")
                }
            }
        }
    }
}

/// Advances by one second with each call.
final class TickingClock {
    private var seconds = 0.0

    func tick() -> Double {
        seconds += 1
        return seconds
    }
}
