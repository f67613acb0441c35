//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Overrides where a session's connections lead and where they come from.
package struct ConnectionOptions: Sendable, Hashable {
    package struct Endpoint: Sendable, Hashable {
        /// In lower case, without brackets and without a trailing dot; nil matches any host.
        package let host: String?
        package let port: Int?

        package init(host: String?, port: Int?) {
            self.host = host.map(Self.normalized)
            self.port = port
        }

        func matches(_ host: String, _ port: Int) -> Bool {
            (self.host ?? host) == host && (self.port ?? port) == port
        }

        fileprivate static func normalized(_ host: String) -> String {
            let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
            return (bare.hasSuffix(".") ? String(bare.dropLast()) : bare).lowercased()
        }
    }

    package struct Substitution: Sendable, Hashable {
        package let endpoint: Endpoint
        /// A nil host or port leaves the original one unchanged.
        package let replacement: Endpoint

        package init(endpoint: Endpoint, replacement: Endpoint) {
            self.endpoint = endpoint
            self.replacement = replacement
        }
    }

    /// The HTTP versions that a session uses.
    package enum HTTPVersions: String, Sendable, Hashable {
        /// HTTP/2 if ALPN selects it in the TLS handshake, otherwise HTTP/1.1.
        case negotiated
        case http1Only
        /// HTTP/2 with prior knowledge on cleartext connections (RFC 9113, section 3.3).
        case http2PriorKnowledge
    }

    package var httpVersions = HTTPVersions.negotiated
    /// Used instead of every TCP connection.
    package var unixSocketPath: String?
    package var interfaceName: String?
    package var localAddress: String?
    /// Used instead of a host name lookup.
    package var addresses: [Endpoint: [String]] = [:]
    /// Used instead of the system's resolver; empty means the system's resolver.
    package var nameServers: [String] = []
    /// The first match applies.
    package var substitutions: [Substitution] = []

    package init() {}

    /// The host and port to connect to for a URL's host and port.
    package func destination(host: String, port: Int) -> (host: String, port: Int) {
        let normalized = Endpoint.normalized(host)
        guard let replacement = substitutions.first(where: { $0.endpoint.matches(normalized, port) })?.replacement else {
            return (host, port)
        }
        return (replacement.host ?? host, replacement.port ?? port)
    }

    /// The configured addresses of a host, from the most specific entry that matches; nil if there is none.
    package func configuredAddresses(host: String, port: Int) -> [String]? {
        guard !addresses.isEmpty else { return nil }
        let host = Endpoint.normalized(host)
        return addresses[Endpoint(host: host, port: port)] ?? addresses[Endpoint(host: host, port: nil)]
            ?? addresses[Endpoint(host: nil, port: port)] ?? addresses[Endpoint(host: nil, port: nil)]
    }

    /// Whether a connection leads elsewhere than the URL and the system's resolver specify.
    package func substitutes(host: String, port: Int) -> Bool {
        guard unixSocketPath == nil, nameServers.isEmpty else { return true }
        let destination = destination(host: host, port: port)
        return destination != (host, port) || configuredAddresses(host: destination.host, port: destination.port) != nil
    }
}
