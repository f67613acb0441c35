// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The origin of a request, used to compare connections, credentials and redirects (RFC 9110, section 4.3.1).
package struct Origin: Hashable, Sendable {
    /// `http` or `https`.
    package let scheme: String
    /// The host in lowercase.
    ///
    /// An IPv6 address has no brackets, and its zone follows a percent sign.
    package let host: String
    /// The scheme's default port if the URL contains none.
    package let port: Int
    /// Whether the scheme is `https`.
    package let isSecure: Bool

    package init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
        isSecure = scheme == "https"
    }

    /// Creates the origin of a URL; returns nil if HTTP requests cannot be sent to the URL.
    package init?(_ url: URL) {
        guard let target = try? RequestTarget(url) else { return nil }
        self = target.origin
    }

    package var hasDefaultPort: Bool { port == (isSecure ? 443 : 80) }
}
