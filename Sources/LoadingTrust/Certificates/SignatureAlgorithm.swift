// SPDX-License-Identifier: Apache-2.0

import SwiftASN1

/// The algorithm of a certificate's signature (RFC 5280, section 4.1.1.2), even if such signatures cannot be verified.
struct SignatureAlgorithm {
    /// The name for messages.
    let name: String
    /// Whether signatures can be verified.
    let isSupported: Bool
    /// Whether the hash function is SHA-1 or older; nil if it is unknown.
    let isWeak: Bool?

    /// Parses an `AlgorithmIdentifier`; returns nil if it is malformed.
    init?(_ node: ASN1Node) {
        guard let parts = node.children(), let kind = parts.first?.name else { return nil }
        (name, isSupported, isWeak) =
            switch kind {
            case [1, 2, 840, 113_549, 1, 1, 5]: ("SHA-1", true, true)
            case [1, 2, 840, 113_549, 1, 1, 11], [1, 2, 840, 113_549, 1, 1, 12], [1, 2, 840, 113_549, 1, 1, 13]:
                ("RSA", true, false)
            case [1, 2, 840, 10_045, 4, 3, 2], [1, 2, 840, 10_045, 4, 3, 3], [1, 2, 840, 10_045, 4, 3, 4]:
                ("ECDSA", true, false)
            case [1, 3, 101, 112]: ("Ed25519", true, false)
            case [1, 2, 840, 113_549, 1, 1, 10]:
                ("RSASSA-PSS", false, !(parts.dropFirst().first.map(Self.usesSHA2) ?? false))
            case [1, 2, 840, 113_549, 1, 1, 2], [1, 2, 840, 113_549, 1, 1, 4]: ("MD2 or MD5", false, true)
            case [1, 2, 840, 10_045, 4, 1], [1, 2, 840, 10_040, 4, 3]: ("SHA-1", false, true)
            default: ("an unknown algorithm (\(kind))", false, nil)
            }
    }

    /// Whether the parameters of RSASSA-PSS name SHA-256, SHA-384 or SHA-512; the default is SHA-1 (RFC 4055, section 3.1).
    private static func usesSHA2(_ parameters: ASN1Node) -> Bool {
        guard let hash = parameters.children()?.first,
            hash.identifier == ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific),
            let kind = hash.children()?.first?.children()?.first?.name
        else { return false }
        let family: [ASN1ObjectIdentifier] = [
            [2, 16, 840, 1, 101, 3, 4, 2, 1], [2, 16, 840, 1, 101, 3, 4, 2, 2], [2, 16, 840, 1, 101, 3, 4, 2, 3],
        ]
        return family.contains(kind)
    }
}
