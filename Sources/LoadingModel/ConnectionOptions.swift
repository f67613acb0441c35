// SPDX-License-Identifier: Apache-2.0

/// Overrides the destinations of a session's connections, and the interface or address that they come from.
package struct ConnectionOptions: Sendable, Hashable {
    package struct Endpoint: Sendable, Hashable {
        /// The host in lower case, without brackets and without a trailing dot; nil matches any host.
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
        /// The endpoint to connect to instead; a nil host or port leaves the original one unchanged.
        package let replacement: Endpoint

        package init(endpoint: Endpoint, replacement: Endpoint) {
            self.endpoint = endpoint
            self.replacement = replacement
        }
    }

    /// The HTTP versions that a session uses.
    package enum HTTPVersions: String, Sendable, Hashable {
        /// HTTP/3 if the server is known to speak it and can be reached; HTTP/2 if ALPN selects it in the TLS handshake; otherwise
        /// HTTP/1.1.
        case negotiated
        case http1Only
        /// HTTP/2 with prior knowledge on cleartext connections (RFC 9113, section 3.3).
        case http2PriorKnowledge
        /// HTTP/3, whether the server announces it or not; all other requests fail.
        case http3Only
        /// HTTP/2 or HTTP/1.1, as ``negotiated``.
        case withoutHTTP3
    }

    package var httpVersions = HTTPVersions.negotiated
    /// The Unix socket to use instead of every TCP connection.
    package var unixSocketPath: String?
    package var interfaceName: String?
    package var localAddress: String?
    /// The addresses of hosts, used instead of a host name lookup.
    package var addresses: [Endpoint: [String]] = [:]
    /// The name servers to use instead of the system's resolver; if empty, the system's resolver is used.
    package var nameServers: [String] = []
    /// The substitutions; the first one that matches applies.
    package var substitutions: [Substitution] = []

    package init() {}

    /// Returns the host and port to connect to for a URL's host and port.
    package func destination(host: String, port: Int) -> (host: String, port: Int) {
        let normalized = Endpoint.normalized(host)
        guard let replacement = substitutions.first(where: { $0.endpoint.matches(normalized, port) })?.replacement else {
            return (host, port)
        }
        return (replacement.host ?? host, replacement.port ?? port)
    }

    /// Returns the configured addresses of a host, from the most specific entry that matches; nil if no entry matches.
    package func configuredAddresses(host: String, port: Int) -> [String]? {
        guard !addresses.isEmpty else { return nil }
        let host = Endpoint.normalized(host)
        return addresses[Endpoint(host: host, port: port)] ?? addresses[Endpoint(host: host, port: nil)]
            ?? addresses[Endpoint(host: nil, port: port)] ?? addresses[Endpoint(host: nil, port: nil)]
    }

    /// Whether a connection leads to a destination other than the one that the URL and the system's resolver specify.
    package func substitutes(host: String, port: Int) -> Bool {
        guard unixSocketPath == nil, nameServers.isEmpty else { return true }
        let destination = destination(host: host, port: port)
        return destination != (host, port) || configuredAddresses(host: destination.host, port: destination.port) != nil
    }
}
