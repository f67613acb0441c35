// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The proxy that the user names in curl's syntax.
struct ProxyAddress {
    /// The proxy's URL for `URLSessionConfiguration.proxyEnvironment`, with a scheme and a percent-encoded login.
    let text: String

    private static let schemes: Set = ["http", "https", "socks", "socks4", "socks4a", "socks5", "socks5h"]

    /// Parses `host`, `host:port` or `scheme://user:password@host:port`.
    init(_ text: String, login: Login?) throws(ToolFailure) {
        let scheme = text.range(of: "://").map { text[..<$0.lowerBound].lowercased() } ?? "http"
        guard Self.schemes.contains(scheme) else {
            throw ToolFailure(
                7, "the proxy cannot be used: \(scheme) is not supported, but http, https, socks4(a) and socks5(h)")
        }
        guard var parts = URLComponents(string: text.contains("://") ? text : "http://" + text), let host = parts.host,
            !host.isEmpty, 1...65_535 ~= parts.port ?? 1080, ["", "/"].contains(parts.path), parts.query == nil,
            parts.fragment == nil
        else {
            // The text may contain a password, so it is not shown.
            throw ToolFailure(5, "the value of --proxy is not a proxy: write 'host:port'")
        }
        parts.path = ""
        if let login {
            parts.percentEncodedUser = login.user.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
            parts.percentEncodedPassword = login.password.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
        }
        self.text = parts.string ?? text
    }
}
