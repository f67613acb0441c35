// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore

/// Opens a tunnel to a server through a proxy (CONNECT, RFC 9110, section 9.3.6), and answers the proxy's authentication
/// challenges.
final class ProxyTunnel: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Outcome {
        /// The channel leads to the server and is not reading.
        ///
        /// The buffer contains the bytes that the server has already sent, if the server speaks first.
        case opened(ByteBuffer)
        /// The proxy wants the authorization on another connection.
        case needsNewConnection
    }

    /// The maximum size of a refusal's body, which is read so that the connection can be reused.
    private static let maximumRefusal = 65_536

    private let attempt: TunnelAttempt
    private let serverMaySpeakFirst: Bool
    private var early = ByteBuffer()
    private let advice: HandshakeAdvice
    /// Called with true when the tunnel starts waiting for a reply of the proxy, and with false when the reply has arrived.
    private let awaits: (Bool) -> Void
    private var completion: ((Result<Outcome, LoadError>) -> Void)?
    private var context: ChannelHandlerContext?
    private var parser = ResponseParser()
    private var refusal: ResponseHead?
    private var acceptance: ResponseHead?
    private var refusalBytes = 0
    /// The number of requests on this connection.
    private var requests = 0
    /// Whether anything was received since the last request.
    private var hasReceived = false
    private var sent: String?
    /// Whether an adviser is being asked; losing the connection meanwhile does not matter.
    private var isAskingAdviser = false

    static func attempt(
        _ server: ServerName, through proxy: ProxyServer, with credential: TunnelCredential?
    ) -> TunnelAttempt {
        let host = server.host.contains(":") && server.host.first != "[" ? "[\(server.host)]" : server.host
        return TunnelAttempt(proxy: proxy, authority: "\(host):\(server.port)", credential: credential)
    }

    static func open(
        _ channel: any Channel, _ attempt: TunnelAttempt, advice: HandshakeAdvice, serverMaySpeakFirst: Bool,
        awaits: @escaping (Bool) -> Void, completion: @escaping (Result<Outcome, LoadError>) -> Void
    ) {
        let tunnel = ProxyTunnel(
            attempt, advice: advice, serverMaySpeakFirst: serverMaySpeakFirst, awaits: awaits, completion: completion)
        do {
            try channel.pipeline.syncOperations.addHandler(tunnel)
            let unsentAuthorization = attempt.unsentAuthorization
            attempt.unsentAuthorization = nil
            tunnel.ask(unsentAuthorization ?? attempt.credential?.value ?? advice.adviser?.authorization(for: attempt))
        } catch {
            tunnel.finish(.failure(tunnel.failure("the connection failed", cause: error)))
        }
    }

    private init(
        _ attempt: TunnelAttempt, advice: HandshakeAdvice, serverMaySpeakFirst: Bool, awaits: @escaping (Bool) -> Void,
        completion: @escaping (Result<Outcome, LoadError>) -> Void
    ) {
        self.serverMaySpeakFirst = serverMaySpeakFirst
        self.awaits = awaits
        self.attempt = attempt
        self.advice = advice
        self.completion = completion
    }

    private var authority: String { attempt.authority }
    private var proxy: ProxyServer { attempt.proxy }

    private func ask(_ authorization: String?) {
        guard let context else { return }
        var headers = HeaderBlock([(name: "Host", value: authority)])
        if let authorization {
            headers.append("Proxy-Authorization", authorization)
            advice.willAuthorize(authorization)
        }
        let head = RequestHead(method: "CONNECT", target: authority, headers: headers)
        var buffer = context.channel.allocator.buffer(capacity: RequestSerializer.encodedLength(of: head))
        do {
            try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: RequestSerializer.encodedLength(of: head)) {
                try RequestSerializer.encode(head, into: $0)
            }
        } catch {
            return finish(.failure(failure("the CONNECT request cannot be written: \(error)", cause: error, isRefusal: true)))
        }
        refusal = nil
        refusalBytes = 0
        requests += 1
        hasReceived = false
        sent = authorization
        parser.begin(.connect)
        awaits(true)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    // MARK: ChannelInboundHandler

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        if !isAskingAdviser { finish(.failure(failure("the connection was closed"))) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        hasReceived = true
        // Once the tunnel is open, everything received comes from the server.
        if isAskingAdviser, acceptance != nil, serverMaySpeakFirst {
            _ = early.writeBuffer(&buffer)
            return
        }
        var rest = 0
        let broken = buffer.withUnsafeReadableBytes { bytes -> ResponseParser.Failure? in
            var offset = 0
            do throws(ResponseParser.Failure) {
                while completion != nil, let event = try parser.next(bytes, &offset) {
                    handle(event)
                    if parser.isIdle { break }
                }
                rest = bytes.count - offset
                return nil
            } catch {
                return error
            }
        }
        if let broken { return finish(.failure(failure(broken.message, cause: broken))) }
        guard completion != nil, parser.isIdle else { return }
        // Unless the server may speak first, bytes that arrive before anything was sent through the tunnel are an error (compare
        // CVE-2021-22947).
        if serverMaySpeakFirst, refusal == nil {
            buffer.moveReaderIndex(forwardBy: buffer.readableBytes - rest)
            early = buffer
            rest = 0
        }
        guard rest == 0 else { return finish(.failure(failure("it sent unexpected bytes"))) }
        if let refusal { answer(refusal) } else { opened() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if isAskingAdviser { return context.close(promise: nil) }
        if closedBeforeReading { return redial(sent) }
        finish(.failure(failure("the connection failed", cause: error)))
    }

    func channelInactive(context: ChannelHandlerContext) {
        guard !isAskingAdviser else { return }
        if let refusal, completion != nil, let event = try? parser.finish(), case .end = event { return answer(refusal) }
        if closedBeforeReading { return redial(sent) }
        finish(.failure(failure("it closed the connection")))
        context.fireChannelInactive()
    }

    /// Whether the proxy closed the connection after its 407 response unannounced, before it answered the next request.
    private var closedBeforeReading: Bool { requests > 1 && !hasReceived }

    private func handle(_ event: ResponseParser.Event) {
        switch event {
        case .informational, .end: break
        case .head(let head, _):
            guard head.status != 407 else {
                refusal = head
                return
            }
            guard 200...299 ~= head.status else {
                return finish(.failure(failure("it answered \(head.status) \(head.reason)", isRefusal: true)))
            }
            acceptance = head
        case .body(let range):
            refusalBytes += range.count
            if refusalBytes > Self.maximumRefusal { finish(.failure(failure("the body of its refusal is too long"))) }
        }
    }

    // MARK: Outcomes

    private func answer(_ head: ResponseHead) {
        let mayReuse = parser.mayReuseConnection && !head.headers.hasToken("close", in: .proxyConnection)
        isAskingAdviser = true
        awaits(false)
        advice.ask(
            { [attempt] adviser, reply in adviser.answer(head, for: attempt) { _ = reply($0) } },
            otherwise: { _ in Result<String?, LoadError>.success(nil) },
            reply: { [self] answer in
                isAskingAdviser = false
                switch answer {
                case .failure(let error): finish(.failure(error))
                case .success(nil):
                    let reason = "the proxy \(proxy) requires authentication for a tunnel to \(authority) (407)"
                    finish(.failure(LoadError(.userAuthenticationRequired, reason)))
                case .success(let authorization?):
                    if mayReuse, context?.channel.isActive == true { ask(authorization) } else { redial(authorization) }
                }
            }
        )
    }

    private func redial(_ authorization: String?) {
        attempt.unsentAuthorization = authorization
        finish(.success(.needsNewConnection))
    }

    private func opened() {
        guard let context, let acceptance, completion != nil else { return }
        do {
            try context.channel.syncOptions?.setOption(.autoRead, value: false)
        } catch {
            return finish(.failure(failure("the connection failed", cause: error)))
        }
        isAskingAdviser = true
        awaits(false)
        advice.ask(
            { [attempt] adviser, reply in adviser.opened(attempt, by: acceptance) { _ = reply($0) } }, isForDelegate: false,
            otherwise: { _ -> LoadError?? in .some(nil) },
            reply: { [self] refusal in
                isAskingAdviser = false
                if let refusal { return finish(.failure(refusal)) }
                guard let context = self.context, let completion else {
                    return finish(.failure(failure("it closed the connection")))
                }
                self.completion = nil
                context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
                completion(.success(.opened(early)))
            }
        )
    }

    private func finish(_ outcome: Result<Outcome, LoadError>) {
        guard let completion else { return }
        self.completion = nil
        context?.close(promise: nil)
        completion(outcome)
    }

    /// Creates the error of a tunnel that could not be opened.
    ///
    /// After a refusal the proxy is not at fault: the proxy works, and refuses for a reason.
    private func failure(_ reason: String, cause: (any Error)? = nil, isRefusal: Bool = false) -> LoadError {
        var error = LoadError(
            .cannotConnectToHost, "opening a tunnel to \(authority) through the proxy \(proxy): \(reason)", cause: cause
        )
        error.isProxyError = !isRefusal
        return error
    }
}
