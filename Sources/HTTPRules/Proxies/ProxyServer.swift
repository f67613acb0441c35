// SPDX-License-Identifier: Apache-2.0

/// A proxy server and its protocol.
package struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// Receives `http` requests with absolute URLs, and opens tunnels for all others (RFC 9110, sections 7.3.2 and 9.3.6).
        case http
        /// Like ``http``, over TLS.
        case https
        /// SOCKS 4, with host names as in SOCKS 4a.
        case socks4
        /// RFC 1928.
        case socks5
    }

    package var kind: Kind
    /// A name, or an address without brackets.
    package var host: String
    package var port: Int
    /// Whether the host name is resolved locally and a SOCKS proxy receives the address.
    package var looksUpHere = false
    /// Whether an HTTP proxy opens tunnels for `http` URLs as well.
    package var tunnelsAlways = false
    package var user: String?
    package var password: String?

    package init(_ kind: Kind, host: String, port: Int, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// The same proxy, used for tunnels only.
    package var tunnelling: ProxyServer {
        var proxy = self
        proxy.tunnelsAlways = true
        return proxy
    }

    /// Whether both values stand for the same proxy with the same protocol, so that credentials for one may be sent to the other.
    package func isSame(as other: ProxyServer) -> Bool {
        kind == other.kind && port == other.port && host.lowercased() == other.host.lowercased()
    }

    package var isSOCKS: Bool { kind == .socks4 || kind == .socks5 }

    /// Whether requests are sent to the proxy itself instead of through a tunnel.
    package func forwardsRequests(isSecure: Bool) -> Bool { !isSecure && !isSOCKS && !tunnelsAlways }

    /// The host and port, without the user.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// A connection option: direct or through a proxy.
package enum ProxyWay: Sendable, Hashable {
    case direct
    case proxy(ProxyServer)

    package var server: ProxyServer? { if case .proxy(let server) = self { server } else { nil } }
}
