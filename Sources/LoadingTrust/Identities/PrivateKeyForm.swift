//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import SwiftASN1
import X509

/// Converts all forms of an unencrypted private key to PKCS #8 (RFC 5958).
enum PrivateKeyForm {
    private static let rsaEncryption: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 1, 1]
    private static let ecPublicKey: ASN1ObjectIdentifier = [1, 2, 840, 10_045, 2, 1]

    static func pkcs8(_ der: [UInt8]) throws(IdentityFailure) -> Data {
        guard let root = try? DER.parse(der), root.identifier == .sequence, let parts = root.children(), parts.count >= 3 else {
            throw .malformed("the private key is damaged")
        }
        let key: [UInt8]?
        switch parts[1].identifier {
        case .sequence: key = der
        case .integer: key = try? wrap(der, rsaEncryption) { try $0.serialize(ASN1Null()) }
        // SEC 1, appendix C.4: version, key, [0] curve, [1] public key.
        case .octetString:
            guard let curve = parts.first(where: { $0.identifier == .init(tagWithNumber: 0, tagClass: .contextSpecific) }),
                let name = curve.children()?.first
            else { throw .unsupported("an EC key that does not name its curve") }
            key = try? wrap(der, ecPublicKey) { $0.serialize(name) }
        default: throw .malformed("the private key is damaged")
        }
        guard let key else { throw .malformed("the private key is damaged") }
        guard (try? Certificate.PrivateKey(derBytes: key)) != nil else {
            throw .unsupported("a private key other than RSA, P-256, P-384, P-521 or Ed25519")
        }
        return Data(key)
    }

    /// Converts a decrypted key; reports a malformed key as a wrong password.
    ///
    /// With a wrong password, the padding is still valid in one of 256 cases.
    static func pkcs8(decrypted der: [UInt8]) throws(IdentityFailure) -> Data {
        do {
            return try pkcs8(der)
        } catch {
            if case .malformed = error { throw .wrongPassword }
            throw error
        }
    }

    private static func wrap(
        _ key: [UInt8], _ algorithm: ASN1ObjectIdentifier, parameters: (inout DER.Serializer) throws -> Void
    ) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { fields in
            try fields.serialize(0)
            try fields.appendConstructedNode(identifier: .sequence) { identifier in
                try identifier.serialize(algorithm)
                try parameters(&identifier)
            }
            try fields.serialize(ASN1OctetString(contentBytes: key[...]))
        }
        return serializer.serializedBytes
    }
}
