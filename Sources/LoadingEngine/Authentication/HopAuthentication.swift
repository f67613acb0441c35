// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel

/// The authentication of a hop's message.
struct HopAuthentication {
    /// The proxy to which the request's own `Proxy-Authorization` may be sent.
    private enum Addressee {
        /// The hop's first proxy.
        case first
        /// The proxy of the previous hop; nil if that hop was sent without one.
        case proxy(of: RouteDetails?)
        /// No proxy: the load switched to another proxy, or to a direct connection. The field is never sent again, not even
        /// to the first proxy.
        case none
    }

    private var addressee = Addressee.first
    /// The load's authentication with the server and with a proxy.
    ///
    /// Set when the server or proxy has sent a challenge, or is expected to send one.
    var server: Authenticator?
    var proxy: Authenticator?
    /// The holder of the connection on which the server may negotiate TLS again.
    var renegotiating: ConnectionHolder?
    /// The hop's route; nil for the plain route to its server.
    var route: Route?

    /// Whether the load authenticates with a server or proxy.
    var isUsed: Bool { server != nil || proxy != nil }

    /// Whether the load answers a challenge of the server, including one that an earlier load received.
    ///
    /// In that case, no other `Authorization` field is sent.
    var isAnswered: Bool { server?.proof != nil }

    /// Whether ``prepare(_:in:)`` has to wait for Negotiate's first token.
    var mustWait: Bool { server?.mustBeginNegotiate ?? false || proxy?.mustBeginNegotiate ?? false }

    /// Whether the load switched from its first proxy to another, or to a direct connection.
    var leftFirstProxy: Bool { if case .none = addressee { true } else { false } }

    /// Whether the request's own `Proxy-Authorization` is sent: only to the proxy for which it was set, and only until that
    /// proxy refuses it.
    var maySendOwnField: Bool { !leftFirstProxy && proxy?.proof == nil }

    /// Forgets the proxy's credentials, which must not be sent on the hop's new route.
    mutating func leftProxy() {
        proxy = nil
        addressee = .none
    }

    /// Directs the hop to a proxy, or directly to its server (nil), and drops the credentials for other proxies.
    mutating func turn(to server: ProxyServer?) {
        if case .proxy(let earlier) = addressee {
            let isSame = server.flatMap { earlier?.proxy?.isSame(as: $0) } ?? false
            if !isSame { addressee = .none }
        }
        let place = server.flatMap { $0.isSOCKS ? nil : AuthenticationScopes.Peer(of: $0, kind: "http") }
        if let proxy, place != proxy.place { self.proxy = nil }
    }

    /// Uses a `Proxy-Authorization` that the app added to the hop and that the previous hop did not have.
    mutating func useNewProxyField() {
        proxy = nil
        addressee = .first
    }

    /// The state that remains valid for the hop after a redirect.
    var afterRedirect: HopAuthentication {
        var part = HopAuthentication()
        part.proxy = proxy
        // A hop without a route was never sent.
        part.addressee = leftFirstProxy ? .none : route.map { .proxy(of: $0.details) } ?? addressee
        return part
    }
}

extension AuthenticationScopes.Peer {
    init(of proxy: ProxyServer, kind: String) {
        self.init(proxy: Origin(scheme: kind, host: proxy.host, port: proxy.port), isSecure: proxy.kind == .https)
    }
}
