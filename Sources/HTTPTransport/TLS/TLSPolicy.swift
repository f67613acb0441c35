//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials

/// What a session demands of TLS; contexts and verdicts are shared by all sessions that demand the same.
package struct TLSPolicy: Sendable, Hashable {
    /// As on the wire: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    package var minimumVersion: UInt16
    /// Nil for the newest there is.
    package var maximumVersion: UInt16?
    /// The only certificates a chain may end in, in DER; empty for the system's.
    package var trustRoots: [Data]
    /// Whether the keys of a session must be lost with it: only suites with an ephemeral key exchange.
    package var requiresForwardSecrecy = false
    /// Whether the server may choose HTTP/2 (RFC 9113, section 3.2).
    package var offersHTTP2 = false

    /// TLS 1.2 is the least that Apple's App Transport Security allows; RFC 8996 retired what came before.
    package init(minimumVersion: UInt16 = 0x0303, maximumVersion: UInt16? = nil, trustRoots: [Data] = []) {
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
        self.trustRoots = trustRoots
    }
}
