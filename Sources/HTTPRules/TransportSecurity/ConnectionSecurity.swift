// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The parameters of a TLS handshake.
///
/// The parameters are stored with a response, so that a later load can decide whether it would have accepted the connection.
package struct ConnectionSecurity: Hashable, Codable, Sendable {
    /// The protocol's version number (RFC 8446, section 4.2.1): 0x0303 is TLS 1.2.
    package var version: UInt16
    /// Whether the version is TLS 1.3 or the cipher suite uses ECDHE.
    package var hasForwardSecrecy: Bool
    /// Whether the keys and signatures in the chain meet the requirements of App Transport Security.
    package var hasStrongKeys: Bool
    /// SHA-256 hashes of the keys (SubjectPublicKeyInfo) in the chain, starting with the server's.
    package var keys: [Data]

    package init(version: UInt16, hasForwardSecrecy: Bool, hasStrongKeys: Bool, keys: [Data]) {
        self.version = version
        self.hasForwardSecrecy = hasForwardSecrecy
        self.hasStrongKeys = hasStrongKeys
        self.keys = keys
    }

    /// Creates the parameters; `cipherSuite` is the IANA number of the cipher suite, or nil if unknown.
    package init(version: UInt16, cipherSuite: UInt16?, hasStrongKeys: Bool, keys: [Data]) {
        self.init(
            version: version, hasForwardSecrecy: version >= 0x0304 || cipherSuite.map(Self.isEphemeral) ?? false,
            hasStrongKeys: hasStrongKeys, keys: keys
        )
    }

    /// Whether a connection with these parameters would satisfy the requirements of a load.
    ///
    /// - Parameters:
    ///   - demands: The requirements of App Transport Security, including pins.
    ///   - versions: The versions that the session accepts.
    /// - Returns: Whether the load would have accepted the connection.
    package func satisfies(_ demands: TLSDemands, versions: ClosedRange<UInt16>) -> Bool {
        guard versions.contains(version), version >= demands.minimumVersion ?? 0,
            hasForwardSecrecy || !demands.requiresForwardSecrecy, hasStrongKeys || !demands.requiresStrongKeys
        else { return false }
        let hasLeaf = demands.leafPins.isEmpty || keys.prefix(1).contains(where: demands.leafPins.contains)
        return hasLeaf && (demands.caPins.isEmpty || keys.dropFirst().contains(where: demands.caPins.contains))
    }

    /// Combines two connections, so that the result satisfies only those requirements that both connections satisfy.
    ///
    /// Returns nil if the connections differ in the version or in a key: a load may accept only one of two versions or keys, and a
    /// single value cannot require that both be accepted.
    package func common(with other: ConnectionSecurity) -> ConnectionSecurity? {
        version == other.version && keys == other.keys ? joined(with: other) : nil
    }

    /// Combines two connections like ``common(with:)``, even if they differ in the version or in a key.
    ///
    /// Only the keys that are in both chains are kept. If the servers' own keys differ, the first key is empty: an empty key is unknown and
    /// matches no pin.
    package func joined(with other: ConnectionSecurity) -> ConnectionSecurity {
        guard self != other else { return self }
        let hasSameLeaf = keys.first == other.keys.first
        let issuers = keys.dropFirst().filter(other.keys.dropFirst().contains)
        return ConnectionSecurity(
            version: min(version, other.version), hasForwardSecrecy: hasForwardSecrecy && other.hasForwardSecrecy,
            hasStrongKeys: hasStrongKeys && other.hasStrongKeys,
            keys: (hasSameLeaf ? Array(keys.prefix(1)) : [Data()]) + issuers)
    }

    /// Whether a suite of TLS 1.2 or earlier uses ECDHE with AES or ChaCha20 (RFC 5289, RFC 7905 and RFC 8422).
    private static func isEphemeral(_ suite: UInt16) -> Bool {
        switch suite {
        case 0xC009, 0xC00A, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028, 0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9:
            true
        default: false
        }
    }
}
