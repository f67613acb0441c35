// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LoadingTrust
import URLLoading

/// The permitted public keys of a server, as SHA-256 hashes of their SubjectPublicKeyInfo (RFC 7469, section 2.4).
struct KeyPins: Sendable {
    private let hashes: [[UInt8]]

    /// Parses curl's `sha256//BASE64;sha256//BASE64`.
    init(_ text: String) throws {
        hashes = try text.split(separator: ";", omittingEmptySubsequences: false).map { pin in
            guard pin.hasPrefix("sha256//"), let hash = Data(base64Encoded: String(pin.dropFirst(8))), hash.count == 32 else {
                throw ValidationError("'\(pin)' is not a pin: write 'sha256//' and the hash of the public key in Base64.")
            }
            return Array(hash)
        }
    }

    /// Whether the server's own certificate has one of the keys, regardless of its issuer.
    func accept(_ trust: SecTrust) -> Bool {
        let chain = SecTrustCopyCertificateChain(trust)?.compactMap { $0 as? SecCertificate } ?? []
        guard let own = chain.first else { return false }
        return accept(certificate: Array(SecCertificateCopyData(own) as Data))
    }

    func accept(certificate: [UInt8]) -> Bool {
        guard let facts = CertificateFacts(der: Data(certificate)) else { return false }
        return hashes.contains(Array(facts.spkiSHA256))
    }
}
