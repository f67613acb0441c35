//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// What a TLS handshake agreed on, kept with a response so that a later load can judge the connection it came over.
package struct ConnectionSecurity: Hashable, Codable, Sendable {
    /// As on the wire (RFC 8446, section 4.2.1): 0x0303 is TLS 1.2.
    package var version: UInt16
    /// TLS 1.3, or a cipher suite with ECDHE.
    package var hasForwardSecrecy: Bool
    /// Whether the length of the keys and the signatures in the chain satisfied App Transport Security.
    package var hasStrongKeys: Bool
    /// SHA-256 of the keys (SubjectPublicKeyInfo) in the chain, the server's own first.
    package var keys: [Data]

    package init(version: UInt16, hasForwardSecrecy: Bool, hasStrongKeys: Bool, keys: [Data]) {
        self.version = version
        self.hasForwardSecrecy = hasForwardSecrecy
        self.hasStrongKeys = hasStrongKeys
        self.keys = keys
    }

    /// Takes the IANA number of the cipher suite, or nil where it is not known.
    package init(version: UInt16, cipherSuite: UInt16?, hasStrongKeys: Bool, keys: [Data]) {
        self.init(
            version: version, hasForwardSecrecy: version >= 0x0304 || cipherSuite.map(Self.isEphemeral) ?? false,
            hasStrongKeys: hasStrongKeys, keys: keys
        )
    }

    /// Whether a handshake that agreed on this would satisfy a load.
    ///
    /// - Parameters:
    ///   - demands: What App Transport Security asks for, pins included.
    ///   - versions: The versions that the session accepts, besides.
    /// - Returns: Whether the load would have accepted the connection.
    package func satisfies(_ demands: TLSDemands, versions: ClosedRange<UInt16>) -> Bool {
        guard versions.contains(version), version >= demands.minimumVersion ?? 0,
            hasForwardSecrecy || !demands.requiresForwardSecrecy, hasStrongKeys || !demands.requiresStrongKeys
        else { return false }
        let hasLeaf = demands.leafPins.isEmpty || keys.prefix(1).contains(where: demands.leafPins.contains)
        return hasLeaf && (demands.caPins.isEmpty || keys.dropFirst().contains(where: demands.caPins.contains))
    }

    /// What two connections have in common, so that it satisfies only loads that both would satisfy.
    ///
    /// Nil where they differ in the version or in a key: a load may accept either of two, and no value says that it has to accept both.
    package func common(with other: ConnectionSecurity) -> ConnectionSecurity? {
        version == other.version && keys == other.keys ? joined(with: other) : nil
    }

    /// What satisfies no load but those that two handshakes would satisfy.
    ///
    /// Of the keys are left those that both have; a server's own that differ become an unknown one, which no pin has.
    package func joined(with other: ConnectionSecurity) -> ConnectionSecurity {
        guard self != other else { return self }
        let hasSameLeaf = keys.first == other.keys.first
        let issuers = keys.dropFirst().filter(other.keys.dropFirst().contains)
        return ConnectionSecurity(
            version: min(version, other.version), hasForwardSecrecy: hasForwardSecrecy && other.hasForwardSecrecy,
            hasStrongKeys: hasStrongKeys && other.hasStrongKeys,
            keys: (hasSameLeaf ? Array(keys.prefix(1)) : [Data()]) + issuers)
    }

    /// The suites of TLS 1.2 and earlier with ECDHE: 0xC006 to 0xC019 and those that RFC 5289 and RFC 7905 add.
    private static func isEphemeral(_ suite: UInt16) -> Bool {
        switch suite {
        case 0xC009, 0xC00A, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028, 0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9:
            true
        default: false
        }
    }
}
