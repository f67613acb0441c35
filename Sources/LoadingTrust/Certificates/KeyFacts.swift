// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
package import FoundationEssentials
import SwiftASN1
import X509

/// The kind and size of a public key.
package struct KeyFacts: Sendable, Hashable {
    package enum Kind: Sendable, Hashable { case rsa, ec, ed25519 }

    package var kind: Kind
    package var bits: Int

    /// Parses a public key in the form of `CertificateFacts.publicKey`.
    ///
    /// Returns nil if the key is malformed or of an unsupported kind.
    package init?(publicKey: Data, kind: Kind) {
        let isKey =
            switch (kind, publicKey.count) {
            case (.rsa, _): (try? _RSA.Signing.PublicKey(derRepresentation: publicKey)) != nil
            case (.ec, 65): (try? P256.Signing.PublicKey(x963Representation: publicKey)) != nil
            case (.ec, 97): (try? P384.Signing.PublicKey(x963Representation: publicKey)) != nil
            case (.ec, 133): (try? P521.Signing.PublicKey(x963Representation: publicKey)) != nil
            case (.ed25519, 32): true
            default: false
            }
        guard isKey else { return nil }
        self.init(bytes: Array(publicKey)[...])
        guard self.kind == kind else { return nil }
    }

    init(_ key: Certificate.PublicKey) { self.init(bytes: key.subjectPublicKeyInfoBytes) }

    init(bytes: ArraySlice<UInt8>) {
        if let size = Self.modulusSize(bytes) {
            self.init(kind: .rsa, bits: size)
        } else if bytes.count == 32 {
            self.init(kind: .ed25519, bits: 256)
        } else {
            // X9.63: one byte and two coordinates.
            let size = bytes.count / 2 * 8
            self.init(kind: .ec, bits: size == 528 ? 521 : size)
        }
    }

    private init(kind: Kind, bits: Int) {
        self.kind = kind
        self.bits = bits
    }

    /// Returns the size of an RSA key in bits; nil for other kinds of key.
    ///
    /// Only an RSA key is a sequence of two integers (RFC 8017, appendix A.1.1).
    private static func modulusSize(_ key: ArraySlice<UInt8>) -> Int? {
        guard key.first == 0x30, let node = try? DER.parse(key), node.identifier == .sequence else { return nil }
        let modulus = try? DER.sequence(node, identifier: .sequence) { nodes in
            let modulus = try ArraySlice<UInt8>(derEncoded: &nodes)
            _ = try ArraySlice<UInt8>(derEncoded: &nodes)
            return modulus
        }
        guard let significant = modulus?.drop(while: { $0 == 0 }), let first = significant.first else { return nil }
        return significant.count * 8 - first.leadingZeroBitCount
    }
}
