// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// The WebSocket of a load: its handshake, the app's commands before the handshake completes, and the connection.
///
/// Confined to the session's event loop.
final class WebSocketLoad: LoadKind {
    private var order: WebSocketOrder
    /// The handshake of the last composed message.
    private var handshake: WebSocketHandshake?
    private var connection: WebSocketConnection?
    private var patience: Scheduled<Void>?
    /// The versions that the next attempt may use.
    private var versions = HTTPVersions.all

    init(_ order: WebSocketOrder) { self.order = order }

    override var switchesProtocols: Bool { true }
    override var allowsAppRetries: Bool { false }

    /// Only the kind keeps the messages that the app has sent so far, until its connection takes them.
    override func begin(with order: inout TaskOrder) {
        var socket = self.order
        socket.queued = []
        order.delivery = .webSocket(socket)
    }

    /// Removes the app's header fields that would interfere with the handshake.
    override func removeForeignFields(from headers: inout HeaderBlock) {
        headers.remove("Sec-WebSocket-Accept")
        if !order.offersCompression { headers.remove("Sec-WebSocket-Extensions") }
        if isExtendedConnect { headers.remove("Sec-WebSocket-Key") }
    }

    /// Converts an HTTP URL to the WebSocket URL of the same server.
    ///
    /// A redirect can lead to either kind of URL.
    override func redirectedURL(_ url: URL) -> URL {
        guard let scheme = ["http": "ws", "https": "wss"][url.scheme?.lowercased() ?? ""],
            var parts = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true)
        else { return url }
        parts.scheme = scheme
        return parts.url ?? url
    }

    // MARK: The handshake

    /// Throws unless the URL is a WebSocket's; only a redirect may lead to a URL with an HTTP scheme.
    override func check(_ target: RequestTarget, of hop: Hop) throws(LoadError) {
        guard target.isWebSocket || hop.number > 0 else {
            throw LoadError(.unsupportedURL, "a WebSocket task needs a ws or wss URL", url: hop.request.url)
        }
    }

    /// Whether the last composed message is a CONNECT over HTTP/2.
    private var isExtendedConnect: Bool { handshake?.way == .extendedConnect }

    override func method(of request: LoadRequest) -> String { isExtendedConnect ? "CONNECT" : request.method }

    override var mayUseExtendedConnect: Bool { versions.mayShare }

    /// Makes the next attempt use HTTP/1.1.
    override func extendedConnectFailed() { versions.formIntersection(.http1) }

    /// Adds the fields of the upgrade request (RFC 6455, section 4.1), with a new key, or those of an extended CONNECT (RFC 8441,
    /// section 5).
    override func addFields(
        to fields: inout [(String, String)], for hop: Hop, _ body: OutgoingBody, by route: Route
    ) throws(LoadError) {
        let request = hop.request
        guard request.method == "GET" else {
            throw LoadError(.badURL, "the handshake of a WebSocket must be a GET, not a \(request.method)", url: request.url)
        }
        do {
            let field = request.headers.all("Sec-WebSocket-Protocol").joined(separator: ", ")
            let names =
                try order.protocols.isEmpty && !field.isEmpty
                ? WebSocketSubprotocols(fieldValue: field) : WebSocketSubprotocols(order.protocols)
            var random = SystemRandomNumberGenerator()
            let handshake = WebSocketHandshake(
                route.versions.mayShare ? .extendedConnect : .upgrade(key: WebSocketHandshake.makeKey(using: &random)),
                subprotocols: names, deflate: order.offersCompression ? MessageDeflateOffer() : nil)
            self.handshake = handshake
            // If the task has no protocols, the request's own `Sec-WebSocket-Protocol` field is sent unchanged.
            for (name, value) in handshake.requestFields where !order.protocols.isEmpty || name != "Sec-WebSocket-Protocol" {
                fields.append((name, value))
            }
        } catch {
            throw LoadError(.badURL, "the WebSocket handshake cannot be sent: \(error.message)", url: request.url)
        }
    }

    // MARK: The app's side

    override func take(_ command: TaskCommand, for load: Load) {
        guard case .webSocket(let command) = command else { return }
        if case .limit(let size) = command { order.maximumMessageSize = size }
        if case .close = command {
            // There is no connection to close yet. It is only made for messages that the app has sent before.
            guard connection != nil || order.queued.contains(where: { if case .send = $0 { true } else { false } }) else {
                return load.cancel(producingResumeData: false)
            }
            // Closing resumes a suspended task, because a suspended task cannot send the close frame.
            if load.control.isSuspended { load.control.resume(now: .now()) }
            limitClosing(of: load)
        }
        if let connection { return connection.take(command) }
        switch command {
        case .send, .ping, .close: order.queued.append(command)
        case .limit: break
        }
    }

    /// Limits the time until the app's close frame is sent: the server may not complete the handshake, or may not read.
    private func limitClosing(of load: Load) {
        let bound = NIOLoopBound((self, load), eventLoop: load.session.loop)
        patience = load.session.loop.scheduleTask(in: .nanoseconds(WebSocketMachine.closePatience)) {
            let (socket, load) = bound.value
            if let connection = socket.connection {
                connection.abandonUnlessClosing()
            } else {
                load.cancel(producingResumeData: false)
            }
        }
    }

    // MARK: The load's side

    /// Exchanges messages until the connection is over.
    override func deliver(_ answer: Answer, of load: Load) async throws(LoadError) -> TaskOutcome.Body? {
        load.take(answer.response)
        load.tell(.response(answer.response))
        guard let exchange = answer.transaction.exchange, let handshake else {
            answer.body.cancel()
            guard answer.transaction.source != .localCache else {
                throw LoadError(.badServerResponse, "the request is only-if-cached, and a cache has no WebSockets")
            }
            // A `URLProtocol` class of the app responded.
            throw LoadError(.unsupportedURL, "a URLProtocol class cannot load a WebSocket")
        }
        do {
            let connection = WebSocketConnection(exchange, try agreement(exchange, handshake), order, of: load)
            self.connection = connection
            defer {
                self.connection = nil
                patience?.cancel()
            }
            for command in order.queued { connection.take(command) }
            order.queued = []
            try await connection.run()
            return TaskOutcome.Body.none
        } catch {
            exchange.cancel()
            throw error
        }
    }

    private func agreement(_ exchange: Exchange, _ handshake: WebSocketHandshake) throws(LoadError) -> WebSocketAgreement {
        let head = exchange.receivedHead
        guard exchange.hasSwitched else {
            throw LoadError(
                .badServerResponse, "the server did not switch to WebSocket, but responded with the status \(head.status)")
        }
        guard head.majorVersion > 1 || head.minorVersion >= 1 else {
            throw LoadError(.badServerResponse, "the server switched protocols in an HTTP/1.0 response")
        }
        do {
            return try handshake.check(status: head.status, headers: head.headers)
        } catch {
            throw LoadError(.badServerResponse, "the WebSocket handshake failed: \(error.message)")
        }
    }
}
