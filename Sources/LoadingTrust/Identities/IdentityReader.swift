// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import LoadingModel
import SwiftASN1
import X509

/// Reads a client's certificate and private key from PEM, DER and PKCS #12.
///
/// The input comes from the app, not from a server. Still, no input may cause a trap or a long computation.
package enum IdentityReader {
    /// Reads an identity from PEM.
    ///
    /// - Parameters:
    ///   - pem: The certificate, its issuers and optionally the key; a single certificate may also be in DER.
    ///   - key: The key if it is in a separate file, as PEM or DER: PKCS #8, PKCS #1 or SEC 1.
    ///   - password: The password of the key.
    /// - Returns: The certificates and the key.
    /// - Throws: An ``IdentityFailure`` for malformed files or a wrong password.
    package static func identity(pem: Data, key: Data?, password: String?) throws(IdentityFailure) -> ClientIdentity {
        let blocks = PEMBlock.blocks(in: pem) ?? []
        var certificates = blocks.filter(\.isCertificate).map { Data($0.bytes) }
        if blocks.isEmpty, CertificateFields(Array(pem)) != nil { certificates = [pem] }
        if certificates.isEmpty {
            throw blocks.isEmpty ? .malformed("it is neither PEM nor a certificate in DER") : .noCertificate
        }
        let privateKey: Data
        if let key {
            privateKey = try PrivateKeyReader.key(in: key, password: password)
        } else if let block = blocks.first(where: PrivateKeyReader.isKey) {
            privateKey = try PrivateKeyReader.key(block, password: password)
        } else {
            throw .noKey
        }
        return try IdentityCertificates(certificates).identity(of: privateKey)
    }

    /// Reads an identity from PKCS #12.
    ///
    /// - Parameters:
    ///   - pkcs12: A PKCS #12 file (RFC 7292); all ciphers that current programs write by default are supported.
    ///   - password: The password of the file. Nil and "" are equivalent, because programs encode a missing password in two ways.
    /// - Returns: The certificates and the key.
    /// - Throws: An ``IdentityFailure`` for a malformed file or a wrong password.
    package static func identity(pkcs12: Data, password: String?) throws(IdentityFailure) -> ClientIdentity {
        let content = try PKCS12File.content(of: Array(pkcs12), password: password)
        guard !content.keys.isEmpty else { throw .noKey }
        guard !content.certificates.isEmpty else { throw .noCertificate }
        var failure = IdentityFailure.keyDoesNotMatch
        let certificates = IdentityCertificates(content.certificates)
        for key in content.keys {
            do {
                return try certificates.identity(of: PrivateKeyForm.pkcs8(key))
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// Returns the public key of a private key (PKCS #8), in the form of `CertificateFacts.publicKey`.
    package static func publicKey(of key: Data) -> Data? {
        (try? Certificate.PrivateKey(derBytes: Array(key))).map { Data($0.publicKey.subjectPublicKeyInfoBytes) }
    }
}
