// SPDX-License-Identifier: Apache-2.0

import Crypto
package import FoundationEssentials
import SwiftASN1
import X509

/// The properties of a certificate that programs ask for.
package struct CertificateFacts: Sendable, Hashable {
    /// The most specific part of the subject: the common name if it has one, otherwise the organizational unit, the organization, or
    /// the whole name.
    package let subjectSummary: String
    package let commonName: String?
    package let subject: String
    package let issuer: String
    /// The subject name in DER.
    package let subjectDER: Data
    package let issuerDER: Data
    package let notBefore: Date
    package let notAfter: Date
    package let serialNumber: Data
    /// The `SubjectPublicKeyInfo` in DER.
    package let spki: Data
    package let spkiSHA256: Data
    /// The public key: PKCS #1 for an RSA key, X9.63 for an EC key, the 32 bytes of an Ed25519 key, or what another kind defines.
    package let publicKey: Data
    /// The kind and size of the key; nil if the kind is not supported.
    package let key: KeyFacts?
    /// The hash of the certificate for channel binding (RFC 5929, section 4.1).
    package let tlsServerEndPointHash: [UInt8]

    /// Parses a certificate with any kind of key and signature; returns nil if it cannot be parsed.
    package init?(der: Data) {
        let bytes = Array(der)
        guard let fields = CertificateFields(bytes), let subjectName = fields.subjectName, let issuerName = fields.issuerName
        else { return nil }
        var values: [ASN1ObjectIdentifier: String] = [:]
        for attribute in subjectName.joined() { values[attribute.type] = String(describing: attribute.value) }
        commonName = values[.RDNAttributeType.commonName]
        subjectSummary =
            commonName ?? values[.RDNAttributeType.organizationalUnitName] ?? values[.RDNAttributeType.organizationName]
            ?? subjectName.description
        subject = subjectName.description
        issuer = issuerName.description
        subjectDER = Data(fields.subject)
        issuerDER = Data(fields.issuer)
        notBefore = fields.notBefore
        notAfter = fields.notAfter
        serialNumber = Data(fields.serialNumber)
        spki = Data(fields.subjectPublicKeyInfo)
        spkiSHA256 = Data(SHA256.hash(data: fields.subjectPublicKeyInfo))
        publicKey = Data(fields.publicKey)
        key = fields.key.map(KeyFacts.init)
        tlsServerEndPointHash = Self.endPointHash(bytes, signedWith: fields.signatureAlgorithm)
    }

    /// Returns the hosts, addresses, mailboxes and URIs in the alternative names of a certificate; empty if it cannot be parsed.
    package static func names(in der: Data) -> [String] {
        let names = CertificateFields(Array(der))?.alternativeNames ?? []
        return names.compactMap { name in
            switch name {
            case .dnsName, .ipAddress, .rfc822Name, .uniformResourceIdentifier: TrustExplanation.text(of: name)
            case .directoryName, .otherName, .x400Address, .ediPartyName, .registeredID: nil
            }
        }
    }

    /// Returns the hash of RFC 5929, section 4.1, which uses the hash function of the certificate's signature, but "if [it] is
    /// either MD5 or SHA-1, then use SHA-256".
    ///
    /// The RFC does not cover signatures without a single hash. For such signatures, other implementations use SHA-256.
    private static func endPointHash(_ certificate: [UInt8], signedWith algorithm: ASN1ObjectIdentifier) -> [UInt8] {
        switch algorithm {
        case [1, 2, 840, 113_549, 1, 1, 12], [1, 2, 840, 10_045, 4, 3, 3]: Array(SHA384.hash(data: certificate))
        case [1, 2, 840, 113_549, 1, 1, 13], [1, 2, 840, 10_045, 4, 3, 4]: Array(SHA512.hash(data: certificate))
        default: Array(SHA256.hash(data: certificate))
        }
    }
}
