// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import HTTPRules

/// A proxy for certain hosts or for all, for use in ``URLSessionConfiguration/proxyConfigurations``.
///
/// All loads from matching hosts go through a tunnel, including loads of `http` URLs.
///
/// On Apple's platforms this type is in the Network framework. Relays and Oblivious HTTP are not supported: loads that would use
/// them fail.
public struct ProxyConfiguration: Sendable, CustomDebugStringConvertible {
    private enum Kind: Sendable {
        case proxy(ProxyServer.Kind, NWEndpoint)
        /// The name of the unsupported kind.
        case unsupported(String)
    }

    private let kind: Kind
    private var login: (user: String, password: String)?

    /// Whether the next matching proxy in the list, or a direct connection, is used if this proxy cannot be reached; default false.
    ///
    /// A proxy counts as unreachable if it refuses connections, has no address or fails the TLS handshake. A proxy also counts as
    /// unreachable if, before the tunnel is established, it closes the connection, sends an invalid reply or is silent for ten
    /// seconds. There is no failover if a proxy refuses to open a tunnel. For five minutes after a failure, the other proxies are
    /// tried first.
    public var allowFailover = false

    /// Domains whose hosts use the proxy; default empty, which stands for all hosts that no other setting excludes.
    ///
    /// A domain matches itself and its subdomains: `example.com` matches `www.example.com`.
    public var matchDomains: [String] = []

    /// Domains whose hosts do not use the proxy, whatever `matchDomains` contains; default empty.
    public var excludedDomains: [String] = []

    /// Creates an HTTP proxy that opens tunnels with CONNECT.
    ///
    /// - Parameters:
    ///   - httpCONNECTProxy: The endpoint of the proxy.
    ///   - tlsOptions: Options for TLS to the proxy; nil for a cleartext connection.
    public init(httpCONNECTProxy: NWEndpoint, tlsOptions: NWProtocolTLS.Options? = nil) {
        kind = .proxy(tlsOptions == nil ? .http : .https, httpCONNECTProxy)
    }

    /// Creates a SOCKS 5 proxy, which resolves the host names.
    ///
    /// - Parameter socksv5Proxy: The endpoint of the proxy.
    public init(socksv5Proxy: NWEndpoint) {
        kind = .proxy(.socks5, socksv5Proxy)
    }

    /// Creates a chain of relays (MASQUE), which are not supported on Linux.
    ///
    /// A load that would use them fails with `URLError.cannotConnectToHost` before anything is sent.
    ///
    /// - Parameter relayHops: The relays in order.
    public init(relayHops: [RelayHop]) {
        kind = .unsupported("a relay")
    }

    /// Creates an Oblivious HTTP configuration (RFC 9458), which is not supported on Linux.
    ///
    /// A load that would use it fails with `URLError.cannotConnectToHost` before anything is sent.
    ///
    /// - Parameters:
    ///   - obliviousHTTPRelay: The relay.
    ///   - relayResourcePath: The path of the relay's resource.
    ///   - gatewayKeyConfig: The gateway's key configuration.
    ///   - matchDomains: The domains to match; empty for all.
    public init(obliviousHTTPRelay: RelayHop, relayResourcePath: String, gatewayKeyConfig: Data, matchDomains: [String]) {
        kind = .unsupported("Oblivious HTTP")
        self.matchDomains = matchDomains
    }

    /// Sets the credential that answers the proxy's challenges.
    ///
    /// - Parameters:
    ///   - username: The user name.
    ///   - password: The password.
    public mutating func applyCredential(username: String, password: String) { login = (username, password) }

    /// A description of the proxy and its domains, without the password.
    public var debugDescription: String {
        let name =
            switch kind {
            case .proxy(let kind, let endpoint):
                "\(kind == .socks5 ? "SOCKSv5" : kind == .https ? "HTTP CONNECT over TLS" : "HTTP CONNECT") proxy "
                    + endpoint.debugDescription
            case .unsupported(let name): "\(name), not supported"
            }
        let domains = matchDomains.isEmpty ? "" : ", for \(matchDomains.joined(separator: ", "))"
        let excluded = excludedDomains.isEmpty ? "" : ", not for \(excludedDomains.joined(separator: ", "))"
        return "\(name)\(domains)\(excluded)\(allowFailover ? ", allows failover" : "")"
    }

    var rule: ProxyRules.Listed {
        ProxyRules.Listed(
            choice, domains: matchDomains, excludedDomains: excludedDomains, allowsFailover: allowFailover
        )
    }

    private var choice: ProxyRules.Choice {
        guard case .proxy(let kind, let endpoint) = kind else {
            return .unusable("proxyConfigurations: \(debugDescription): use init(httpCONNECTProxy:tlsOptions:)")
        }
        let (host, port) = endpoint.place
        let bare = ProxyParser.bare(host.text).lowercased()
        if let fault = ProxyParser.fault(inHost: bare) { return .unusable("proxyConfigurations: the host of a proxy \(fault)") }
        guard port.rawValue > 0 else { return .unusable("proxyConfigurations: the port of \(bare) is 0") }
        var server = ProxyServer(
            kind, host: bare, port: Int(port.rawValue), user: login?.user, password: login?.password
        )
        server.tunnelsAlways = true
        return .proxy(server)
    }
}

/// The endpoint of a proxy.
///
/// On Apple's platforms this type is in the Network framework, with more cases.
public enum NWEndpoint: Sendable, Hashable, CustomDebugStringConvertible {
    /// A host and a port.
    case hostPort(host: Host, port: Port)

    /// A host name or an IP address.
    public struct Host: Sendable, Hashable, ExpressibleByStringLiteral, CustomDebugStringConvertible {
        let text: String

        /// Creates a host from a name or an IP address; brackets around an IPv6 address are optional.
        ///
        /// - Parameter string: The name or address.
        public init(_ string: String) { text = string }

        /// Creates a host from a string literal.
        ///
        /// - Parameter value: The name or address.
        public init(stringLiteral value: String) { text = value }

        /// The name or address.
        public var debugDescription: String { text }
    }

    /// A port number.
    public struct Port: Sendable, Hashable, RawRepresentable, ExpressibleByIntegerLiteral, CustomDebugStringConvertible {
        /// The number.
        public let rawValue: UInt16

        /// Creates a port from a number.
        ///
        /// - Parameter rawValue: The number.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// Creates a port from an integer literal.
        ///
        /// - Parameter value: The number.
        public init(integerLiteral value: UInt16) { rawValue = value }

        /// Creates a port from a string, or nil if the string is not a number from 0 to 65535.
        ///
        /// - Parameter string: Decimal digits.
        public init?(_ string: String) {
            guard let number = UInt16(string) else { return nil }
            rawValue = number
        }

        /// The number.
        public var debugDescription: String { "\(rawValue)" }
    }

    /// Host and port, separated by a colon.
    public var debugDescription: String {
        let (host, port) = place
        return host.text.contains(":") && !host.text.hasPrefix("[")
            ? "[\(host.text)]:\(port.rawValue)" : "\(host.text):\(port.rawValue)"
    }

    var place: (host: Host, port: Port) {
        switch self {
        case .hostPort(let host, let port): (host, port)
        }
    }
}

/// TLS for connections to a proxy.
///
/// On Apple's platforms this type is in the Network framework.
public enum NWProtocolTLS {
    /// Options for TLS.
    ///
    /// There is nothing to set: the session's configuration determines the TLS versions and the trust roots.
    public final class Options: Sendable {
        /// Creates the options.
        public init() {}
    }
}
