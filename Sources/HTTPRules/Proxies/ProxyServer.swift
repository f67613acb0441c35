//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A proxy, and how it is spoken to.
package struct ProxyServer: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// Is sent whole `http` URLs, and makes tunnels for all else (RFC 9110, sections 7.3.2 and 9.3.6).
        case http
        /// The same, spoken to over TLS.
        case https
        /// SOCKS 4, with names as SOCKS 4a has them.
        case socks4
        /// RFC 1928.
        case socks5
    }

    package var kind: Kind
    /// A name, or an address without brackets.
    package var host: String
    package var port: Int
    /// A SOCKS proxy is told the server's address, which is looked up here, and not its name.
    package var looksUpHere = false
    /// An HTTP proxy makes tunnels for `http` URLs, too.
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

    /// The same proxy, asked for tunnels alone.
    package var tunnelling: ProxyServer {
        var proxy = self
        proxy.tunnelsAlways = true
        return proxy
    }

    /// Whether both are one proxy, spoken to in the same way: what was said to one may be said to the other.
    package func isSame(as other: ProxyServer) -> Bool {
        kind == other.kind && port == other.port && host.lowercased() == other.host.lowercased()
    }

    package var isSOCKS: Bool { kind == .socks4 || kind == .socks5 }

    /// Whether requests are sent to it whole, in place of through a tunnel.
    package func isSentWhole(isSecure: Bool) -> Bool { !isSecure && !isSOCKS && !tunnelsAlways }

    /// Host and port, without the user.
    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// One of the ways to a server.
package enum ProxyWay: Sendable, Hashable {
    case direct
    case proxy(ProxyServer)

    package var server: ProxyServer? { if case .proxy(let server) = self { server } else { nil } }
}
