// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The scheme, host and port of a URL's server.
struct ServerOrigin: Sendable, Equatable {
    let scheme: String
    let host: String
    let port: Int

    /// Nil if the URL has no host, or its scheme is neither http nor https.
    init?(_ url: URL) {
        guard let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host(), !host.isEmpty
        else { return nil }
        self.scheme = scheme
        self.host = Self.bare(host)
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Whether data for this server may be sent to the given one: both must be the same, or the given one must be this server over
    /// TLS.
    func covers(host: String, port: Int, scheme: String) -> Bool {
        guard Self.bare(host) == self.host else { return false }
        if scheme == self.scheme { return port == self.port }
        return self.scheme == "http" && scheme == "https" && (port == self.port || self.port == 80 && port == 443)
    }

    private static func bare(_ host: String) -> String {
        let host = host.lowercased()
        return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }
}
