// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The requirements of ``AppTransportSecurity`` for a TLS connection, in addition to the evaluation of the server's trust.
package struct TLSDemands: Sendable, Hashable {
    /// The protocol's version number (RFC 8446, section 4.2.1): 0x0303 is TLS 1.2.
    ///
    /// Nil if only the session's minimum applies.
    package var minimumVersion: UInt16?
    /// Whether TLS 1.3 or a suite with ECDHE is required: the default "limits the accepted ciphers to those that support PFS
    /// through Elliptic Curve Diffie-Hellman Ephemeral (ECDHE) key exchange".
    package var requiresForwardSecrecy = false
    /// Whether an RSA key of at least 2048 bits or an elliptic curve key of at least 256 bits is required, in a certificate signed
    /// with SHA-256 or better.
    package var requiresStrongKeys = false
    /// SHA-256 hashes of keys (SubjectPublicKeyInfo), one of which the server's certificate must have.
    ///
    /// An empty list means no requirement.
    ///
    /// Pins apply regardless of a delegate's decision about the server's trust.
    package var leafPins: [Data] = []
    /// SHA-256 hashes of keys, one of which a CA certificate in the chain must have.
    ///
    /// If both lists are given, "both" must match.
    package var caPins: [Data] = []
    /// Whether a delegate must not relax the trust evaluation: the delegate may reject a server, but not accept a server that the
    /// default evaluation rejects.
    package var enforcesTrust = false

    package static let none = TLSDemands()

    /// The requirements of App Transport Security without any keys.
    package static let strict = TLSDemands(
        minimumVersion: 0x0303, requiresForwardSecrecy: true, requiresStrongKeys: true, enforcesTrust: true)
}
