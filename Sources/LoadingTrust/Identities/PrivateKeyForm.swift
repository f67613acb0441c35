// SPDX-License-Identifier: Apache-2.0

import CryptoExtras
import FoundationEssentials
import SwiftASN1
import X509

/// Converts all forms of an unencrypted private key to PKCS #8 (RFC 5958).
enum PrivateKeyForm {
    static func pkcs8(_ der: [UInt8]) throws(IdentityFailure) -> Data {
        guard let root = try? DER.parse(der), root.identifier == .sequence, let parts = root.children(), parts.count >= 3 else {
            throw .malformed("the private key is damaged")
        }
        let key: Data?
        switch parts[1].identifier {
        case .sequence: key = (try? Certificate.PrivateKey(derBytes: der)).map { _ in Data(der) }
        case .integer: key = (try? _RSA.Signing.PrivateKey(derRepresentation: der))?.pkcs8DERRepresentation
        case .octetString:
            let document = PEMDocument(type: "EC PRIVATE KEY", derBytes: der)
            key = (try? Certificate.PrivateKey(pemDocument: document).serializeAsPEM()).map { Data($0.derBytes) }
        default: throw .malformed("the private key is damaged")
        }
        guard let key else {
            throw .unsupported("a private key other than RSA, P-256, P-384 or P-521 with the name of its curve, or Ed25519")
        }
        return key
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
}
