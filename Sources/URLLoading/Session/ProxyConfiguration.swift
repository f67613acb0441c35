//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import HTTPRules

/// A proxy for some hosts or for all, as ``URLSessionConfiguration/proxyConfigurations`` lists them.
///
/// All that a session loads from those hosts goes through a tunnel, `http` URLs, too.
///
/// Apple has it in the framework Network. Relays and Oblivious HTTP are not supported: loads that would go through one fail.
public struct ProxyConfiguration: Sendable, CustomDebugStringConvertible {
    private enum Kind: Sendable {
        case proxy(ProxyServer.Kind, NWEndpoint)
        /// What it is called.
        case unsupported(String)
    }

    private let kind: Kind
    private var login: (user: String, password: String)?

    /// Whether the next proxy of the list that is for the host, or no proxy at all, may take the place of this one where it cannot be
    /// reached; default false.
    ///
    /// A proxy that cannot be reached refuses connections, has no address, fails TLS, or is silent for ten seconds, closes or says rubbish
    /// before it made a tunnel.
    /// One that refuses to make a tunnel has its reasons, and nothing goes around it. For five minutes after a failure the others are
    /// tried first.
    public var allowFailover = false

    /// Domains whose hosts go through the proxy; default empty: all that no other setting excludes.
    ///
    /// A domain stands for itself and what is in it: `example.com` for `www.example.com`.
    public var matchDomains: [String] = []

    /// Domains whose hosts do not go through the proxy, whatever `matchDomains` says; default empty.
    public var excludedDomains: [String] = []

    /// A proxy that makes tunnels by the method CONNECT of HTTP.
    ///
    /// - Parameters:
    ///   - httpCONNECTProxy: Where the proxy is.
    ///   - tlsOptions: Has the proxy be spoken to over TLS; nil for in clear.
    public init(httpCONNECTProxy: NWEndpoint, tlsOptions: NWProtocolTLS.Options? = nil) {
        kind = .proxy(tlsOptions == nil ? .http : .https, httpCONNECTProxy)
    }

    /// A proxy that speaks SOCKS 5, and is told the servers' names.
    ///
    /// - Parameter socksv5Proxy: Where the proxy is.
    public init(socksv5Proxy: NWEndpoint) {
        kind = .proxy(.socks5, socksv5Proxy)
    }

    /// Relays (MASQUE), one through the other, which are not supported on Linux.
    ///
    /// A load that would go through them fails with `URLError.cannotConnectToHost`, and nothing of it is sent.
    ///
    /// - Parameter relayHops: The relays, the first one first.
    public init(relayHops: [RelayHop]) {
        kind = .unsupported("a relay")
    }

    /// Oblivious HTTP (RFC 9458), which is not supported on Linux.
    ///
    /// A load that would go through it fails with `URLError.cannotConnectToHost`, and nothing of it is sent.
    ///
    /// - Parameters:
    ///   - obliviousHTTPRelay: The relay.
    ///   - relayResourcePath: The path of the relay's resource.
    ///   - gatewayKeyConfig: The gateway's key.
    ///   - matchDomains: The domains that it is for; empty for all.
    public init(obliviousHTTPRelay: RelayHop, relayResourcePath: String, gatewayKeyConfig: Data, matchDomains: [String]) {
        kind = .unsupported("Oblivious HTTP")
        self.matchDomains = matchDomains
    }

    /// Has the proxy's challenges answered.
    ///
    /// - Parameters:
    ///   - username: The user.
    ///   - password: The user's password.
    public mutating func applyCredential(username: String, password: String) { login = (username, password) }

    /// The proxy and its domains, without the password.
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
        let bare = ProxyText.bare(host.text).lowercased()
        if let fault = ProxyText.fault(inHost: bare) { return .unusable("proxyConfigurations: the host of a proxy \(fault)") }
        guard port.rawValue > 0 else { return .unusable("proxyConfigurations: the port of \(bare) is 0") }
        var server = ProxyServer(
            kind, host: bare, port: Int(port.rawValue), user: login?.user, password: login?.password
        )
        server.tunnelsAlways = true
        return .proxy(server)
    }
}

/// Where a proxy is.
///
/// Apple has it in the framework Network, with more cases and for more uses.
public enum NWEndpoint: Sendable, Hashable, CustomDebugStringConvertible {
    /// A host, and a port of it.
    case hostPort(host: Host, port: Port)

    /// A name, or an address.
    public struct Host: Sendable, Hashable, ExpressibleByStringLiteral, CustomDebugStringConvertible {
        let text: String

        /// A name, or an address, of IPv6 with or without brackets.
        ///
        /// - Parameter string: The name or address.
        public init(_ string: String) { text = string }

        /// The same, of a literal.
        ///
        /// - Parameter value: The name or address.
        public init(stringLiteral value: String) { text = value }

        /// The name or address.
        public var debugDescription: String { text }
    }

    /// The number of a port.
    public struct Port: Sendable, Hashable, RawRepresentable, ExpressibleByIntegerLiteral, CustomDebugStringConvertible {
        /// The number.
        public let rawValue: UInt16

        /// The port of a number.
        ///
        /// - Parameter rawValue: The number.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The same, of a literal.
        ///
        /// - Parameter value: The number.
        public init(integerLiteral value: UInt16) { rawValue = value }

        /// The port of a number in text, or nil for what is no number from 0 to 65535.
        ///
        /// - Parameter string: Decimal digits.
        public init?(_ string: String) {
            guard let number = UInt16(string) else { return nil }
            rawValue = number
        }

        /// The number.
        public var debugDescription: String { "\(rawValue)" }
    }

    /// Host and port with a colon between.
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

/// TLS, where a connection to a proxy has it.
///
/// Apple has it in the framework Network.
public enum NWProtocolTLS {
    /// Has a connection be made over TLS.
    ///
    /// There is nothing to set: versions and trust roots are those of the session's configuration.
    public final class Options: Sendable {
        /// TLS as the session's configuration has it.
        public init() {}
    }
}
