//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// A server as a URL names it.
struct ServerPlace: Sendable, Equatable {
    let scheme: String
    let host: String
    let port: Int

    /// Nil where the URL is of no server.
    init?(_ url: URL) {
        guard let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host(), !host.isEmpty
        else { return nil }
        self.scheme = scheme
        self.host = Self.bare(host)
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Whether what is meant for this server may go to that one: it is the same, or the same over TLS.
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
