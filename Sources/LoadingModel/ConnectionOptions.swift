//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Where a session's connections lead and where they come from, as far as that is not for the URL and the system to say.
package struct ConnectionOptions: Sendable, Hashable {
    package struct Endpoint: Sendable, Hashable {
        /// In lower case, without brackets and a last dot; nil for any.
        package let host: String?
        package let port: Int?

        package init(host: String?, port: Int?) {
            self.host = host.map(Self.plain)
            self.port = port
        }

        func matches(_ host: String, _ port: Int) -> Bool {
            (self.host ?? host) == host && (self.port ?? port) == port
        }

        fileprivate static func plain(_ host: String) -> String {
            let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
            return (bare.hasSuffix(".") ? String(bare.dropLast()) : bare).lowercased()
        }
    }

    package struct Substitution: Sendable, Hashable {
        package let endpoint: Endpoint
        /// What is nil there stays as it is.
        package let replacement: Endpoint

        package init(endpoint: Endpoint, replacement: Endpoint) {
            self.endpoint = endpoint
            self.replacement = replacement
        }
    }

    /// Which versions of HTTP a session speaks.
    package enum HTTPVersions: String, Sendable, Hashable {
        /// HTTP/2 where server and client agree on it in the TLS handshake, otherwise HTTP/1.1.
        case negotiated
        case http1Only
        /// In clear, HTTP/2 from the first byte on (RFC 9113, section 3.3).
        case http2PriorKnowledge
    }

    package var httpVersions = HTTPVersions.negotiated
    /// In place of every TCP connection.
    package var unixSocketPath: String?
    package var interfaceName: String?
    package var localAddress: String?
    /// In place of what a look-up would find.
    package var addresses: [Endpoint: [String]] = [:]
    /// In place of the system's ways to look names up; empty for these.
    package var nameServers: [String] = []
    /// The first that matches counts.
    package var substitutions: [Substitution] = []

    package init() {}

    /// The other end of a connection that is to lead to a host and port.
    package func destination(host: String, port: Int) -> (host: String, port: Int) {
        let plain = Endpoint.plain(host)
        guard let replacement = substitutions.first(where: { $0.endpoint.matches(plain, port) })?.replacement else {
            return (host, port)
        }
        return (replacement.host ?? host, replacement.port ?? port)
    }

    /// What is said of a host's addresses, by the entry that says most about where it applies; nil where nothing is.
    package func givenAddresses(host: String, port: Int) -> [String]? {
        guard !addresses.isEmpty else { return nil }
        let host = Endpoint.plain(host)
        return addresses[Endpoint(host: host, port: port)] ?? addresses[Endpoint(host: host, port: nil)]
            ?? addresses[Endpoint(host: nil, port: port)] ?? addresses[Endpoint(host: nil, port: nil)]
    }

    /// Whether another end is put in place of the one that the URL and the system's look-ups lead to.
    package func substitutes(host: String, port: Int) -> Bool {
        guard unixSocketPath == nil, nameServers.isEmpty else { return true }
        let destination = destination(host: host, port: port)
        return destination != (host, port) || givenAddresses(host: destination.host, port: destination.port) != nil
    }
}
