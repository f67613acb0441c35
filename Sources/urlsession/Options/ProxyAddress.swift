//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// The proxy that a user names, read as curl reads it.
struct ProxyAddress {
    let host: String
    let port: Int
    let login: Login?

    /// `host`, `host:port` or `http://user:password@host:port`.
    init(_ text: String) throws(ToolFailure) {
        let scheme = text.range(of: "://").map { text[..<$0.lowerBound].lowercased() }
        guard (scheme ?? "http") == "http" else {
            throw ToolFailure(7, "the proxy cannot be used: HTTP proxies are spoken to, and no \(scheme ?? "") ones")
        }
        guard let parts = URLComponents(string: scheme == nil ? "http://" + text : text), let host = parts.host, !host.isEmpty,
            1...65_535 ~= parts.port ?? 1080, ["", "/"].contains(parts.path), parts.query == nil, parts.fragment == nil
        else {
            // The text may have a password in it.
            throw ToolFailure(5, "what --proxy says is no proxy: write 'host:port'")
        }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        port = parts.port ?? 1080
        login = parts.url.flatMap(Login.init(userOf:))
    }
}
