//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// Tells whom a request goes to: what connections, credentials and redirects compare (RFC 9110, section 4.3.1).
package struct Origin: Hashable, Sendable {
    /// `http` or `https`.
    package let scheme: String
    /// In lower case; an IPv6 address stands without brackets, with its zone after a percent sign.
    package let host: String
    /// The scheme's default where the URL names none.
    package let port: Int
    /// Whether the scheme is `https`.
    package let isSecure: Bool

    package init(scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
        isSecure = scheme == "https"
    }

    /// The origin of a URL, or nil where no HTTP request can be sent to it.
    package init?(_ url: URL) {
        guard let target = try? RequestTarget(url) else { return nil }
        self = target.origin
    }

    package var hasDefaultPort: Bool { port == (isSecure ? 443 : 80) }
}
