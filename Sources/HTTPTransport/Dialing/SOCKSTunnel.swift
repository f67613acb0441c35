// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel
import NIOCore
import TransportMachines

/// Opens a tunnel to a server through a SOCKS proxy, by performing the actions of a ``SOCKSHandshake``.
final class SOCKSTunnel: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let proxy: ProxyServer
    private let authority: String
    private var machine: SOCKSHandshake
    private var completion: ((Result<ByteBuffer, LoadError>) -> Void)?

    /// Asks the proxy to connect to a server, by the server's address if given, and otherwise by its name.
    ///
    /// The completion handler is called once; the channel is then not reading, or is closed. On success its argument is the data
    /// that the server has already sent, if the server speaks first.
    static func open(
        _ channel: any Channel, _ server: ServerName, by proxy: ProxyServer, to address: String?, serverMaySpeakFirst: Bool,
        completion: @escaping (Result<ByteBuffer, LoadError>) -> Void
    ) {
        let handler = SOCKSTunnel(
            server, by: proxy, to: address, serverMaySpeakFirst: serverMaySpeakFirst, completion: completion)
        do {
            try channel.pipeline.syncOperations.addHandler(handler)
            let context = try channel.pipeline.syncOperations.context(handler: handler)
            handler.perform(handler.machine.handle(.started), context)
        } catch {
            channel.close(promise: nil)
            handler.finish(.failure(handler.failure("the connection failed", cause: error)))
        }
    }

    private init(
        _ server: ServerName, by proxy: ProxyServer, to address: String?, serverMaySpeakFirst: Bool,
        completion: @escaping (Result<ByteBuffer, LoadError>) -> Void
    ) {
        self.proxy = proxy
        self.completion = completion
        authority = server.host.contains(":") ? "[\(server.host)]:\(server.port)" : "\(server.host):\(server.port)"
        machine = SOCKSHandshake(
            proxy.kind == .socks4 ? .four : .five,
            to: AddressNetwork.address(address ?? server.host).map { .address($0) } ?? .name(server.host),
            port: UInt16(truncatingIfNeeded: server.port), user: proxy.user, password: proxy.password,
            serverMaySpeakFirst: serverMaySpeakFirst
        )
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        perform(machine.handle(.received(Array(unwrapInboundIn(data).readableBytesView))), context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        perform(machine.handle(.closed), context)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
        finish(.failure(failure("the connection failed", cause: error)))
    }

    func handlerRemoved(context: ChannelHandlerContext) { finish(.failure(failure("the connection was closed"))) }

    private func perform(_ actions: [SOCKSHandshake.Action], _ context: ChannelHandlerContext) {
        for action in actions {
            switch action {
            case .send(let bytes): context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
            case .opened: opened(context)
            case .fail(let reason):
                context.close(promise: nil)
                finish(.failure(failure(reason)))
            }
        }
    }

    private func opened(_ context: ChannelHandlerContext) {
        do {
            try context.channel.syncOptions?.setOption(.autoRead, value: false)
        } catch {
            context.close(promise: nil)
            return finish(.failure(failure("the connection failed", cause: error)))
        }
        let completion = completion
        self.completion = nil
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        completion?(.success(ByteBuffer(bytes: machine.earlyBytes)))
    }

    private func finish(_ result: Result<ByteBuffer, LoadError>) {
        let completion = completion
        self.completion = nil
        completion?(result)
    }

    private func failure(_ reason: SOCKSHandshake.Failure) -> LoadError {
        switch reason {
        case .unsupportedRequest(let text): failure(text, isProxyError: false)
        case .refused(let text): failure("it answered: \(text)", cause: reason, isProxyError: false)
        case .authenticationFailed(let text): failure(text, .userAuthenticationRequired, cause: reason, isProxyError: false)
        case .malformed(let text): failure(text, cause: reason)
        case .closed: failure("it closed the connection", cause: reason)
        }
    }

    private func failure(
        _ reason: String, _ kind: LoadError.Kind = .cannotConnectToHost, cause: (any Error)? = nil, isProxyError: Bool = true
    ) -> LoadError {
        var error = LoadError(
            kind, "connecting to \(authority) through the SOCKS proxy \(proxy): \(reason)", cause: cause)
        error.isProxyError = isProxyError
        return error
    }
}
