//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials
package import LoadingModel
import SwiftASN1
import X509

/// Reads a client's certificate and private key from the files that people have.
///
/// The input is what the app was given, not what a server sent; still, no input traps or runs for long.
package enum IdentityReader {
    /// Reads an identity from PEM.
    ///
    /// - Parameters:
    ///   - pem: The certificate, its issuers and perhaps the key; the certificate alone also as DER.
    ///   - key: The key, where it is in a file of its own, as PEM or DER: PKCS #8, PKCS #1 or SEC 1.
    ///   - password: Of the key.
    /// - Returns: The certificates and the key.
    /// - Throws: What is wrong with the files, or the password.
    package static func identity(pem: Data, key: Data?, password: String?) throws(IdentityFailure) -> ClientIdentity {
        let blocks = PEMBlock.blocks(in: pem) ?? []
        var certificates = blocks.filter { ["CERTIFICATE", "X509 CERTIFICATE"].contains($0.label) }
            .map { Data($0.bytes) }
        if blocks.isEmpty, (try? Certificate(derEncoded: Array(pem))) != nil { certificates = [pem] }
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
    ///   - pkcs12: As RFC 7292 has it, also what older systems write.
    ///   - password: Nil and "" are both tried where either is given.
    /// - Returns: The certificates and the key.
    /// - Throws: What is wrong with the file, or the password.
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

    /// Whether the private key (PKCS #8) is that of the certificate (DER).
    package static func matches(certificate: Data, key: Data) -> Bool {
        guard let certificate = try? Certificate(derEncoded: Array(certificate)),
            let key = try? Certificate.PrivateKey(derBytes: Array(key))
        else { return false }
        return certificate.publicKey == key.publicKey
    }

    /// The public part of a private key (PKCS #8), as `CertificateFacts.publicKey` has it.
    package static func publicKey(of key: Data) -> Data? {
        (try? Certificate.PrivateKey(derBytes: Array(key))).map { Data($0.publicKey.subjectPublicKeyInfoBytes) }
    }
}
