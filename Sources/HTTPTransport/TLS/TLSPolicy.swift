// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// A session's TLS requirements; sessions with the same requirements share contexts and verdicts.
package struct TLSPolicy: Sendable, Hashable {
    /// The minimum version, as the number on the wire: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    package var minimumVersion: UInt16
    /// The maximum version; nil for the newest supported version.
    package var maximumVersion: UInt16?
    /// The only certificates a chain may end in, in DER; empty for the system's roots.
    package var trustRoots: [Data]
    /// Whether only cipher suites with an ephemeral key exchange are allowed.
    package var requiresForwardSecrecy = false
    /// The versions of HTTP among which the server may choose.
    package var versions = HTTPVersions.http1

    /// Creates a policy; the default minimum is TLS 1.2, as in App Transport Security (RFC 8996 deprecated earlier versions).
    package init(minimumVersion: UInt16 = 0x0303, maximumVersion: UInt16? = nil, trustRoots: [Data] = []) {
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
        self.trustRoots = trustRoots
    }
}
