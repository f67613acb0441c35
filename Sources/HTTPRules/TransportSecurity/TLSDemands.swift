//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// What a TLS connection has to satisfy beyond the trust that every server has to earn: what ``AppTransportSecurity`` asks of it.
package struct TLSDemands: Sendable, Hashable {
    /// As it stands on the wire (RFC 8446, section 4.2.1): 0x0303 is TLS 1.2.
    ///
    /// Nil leaves it to the session.
    package var minimumVersion: UInt16?
    /// TLS 1.3, or a suite with ECDHE: the default "limits the accepted ciphers to those that support PFS through Elliptic Curve
    /// Diffie-Hellman Ephemeral (ECDHE) key exchange".
    package var requiresForwardSecrecy: Bool
    /// An RSA key of 2048 bits or an elliptic one of 256 at least, in a certificate signed with SHA-256 or better.
    package var requiresStrongKeys: Bool
    /// SHA-256 of the keys (SubjectPublicKeyInfo) one of which the server's own certificate has to have; no condition if empty.
    ///
    /// Pins hold whatever a delegate says of the server's trust.
    package var leafPins: [Data]
    /// The same, of a certificate of an authority in the chain; where both are given, "both" have to be met.
    package var caPins: [Data]
    /// Whether a delegate cannot loosen trust: it may refuse a server, but not accept one that default evaluation refuses.
    package var enforcesTrust: Bool

    package static let none = TLSDemands()

    /// What App Transport Security asks for where no key says otherwise.
    package static let strict = TLSDemands(
        minimumVersion: 0x0303,
        requiresForwardSecrecy: true,
        requiresStrongKeys: true,
        enforcesTrust: true
    )

    package init(
        minimumVersion: UInt16? = nil,
        requiresForwardSecrecy: Bool = false,
        requiresStrongKeys: Bool = false,
        leafPins: [Data] = [],
        caPins: [Data] = [],
        enforcesTrust: Bool = false
    ) {
        self.minimumVersion = minimumVersion
        self.requiresForwardSecrecy = requiresForwardSecrecy
        self.requiresStrongKeys = requiresStrongKeys
        self.leafPins = leafPins
        self.caPins = caPins
        self.enforcesTrust = enforcesTrust
    }
}
