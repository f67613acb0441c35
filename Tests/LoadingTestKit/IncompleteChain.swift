// SPDX-License-Identifier: Apache-2.0

import Crypto
package import Foundation
import SwiftASN1
import X509

/// The certificate of a server that sends none of its issuers, each of which names where its own issuer can be fetched.
package struct IncompleteChain: Sendable {
    /// The server's certificate alone, for localhost and 127.0.0.1.
    package let identity: TestCertificates.Identity
    /// The intermediate certificates in DER, from the server's issuer upwards.
    package let issuers: [[UInt8]]
    /// The root in DER.
    package let root: Data
    package let rootPEM: String

    /// Creates a chain.
    ///
    /// - Parameters:
    ///   - locations: The URLs (caIssuers) in each certificate below the root, the server's own first.
    ///   - names: Further names of the server.
    /// - Throws: If a certificate cannot be encoded.
    package init(_ locations: [[String]], names: [String] = []) throws {
        let keys = locations.map { _ in P256.Signing.PrivateKey() } + [P256.Signing.PrivateKey()]
        let subjects = try (0...locations.count).map { index in
            try DistinguishedName { CommonName(index == 0 ? "Server" : index == locations.count ? "Root" : "Issuer \(index)") }
        }
        var certificates: [Certificate] = []
        for index in keys.indices {
            let issuer = min(index + 1, locations.count)
            var extensions =
                index == 0
                ? try Certificate.Extensions {
                    Critical(BasicConstraints.notCertificateAuthority)
                    SubjectAlternativeNames(
                        (["localhost"] + names).map { .dnsName($0) }
                            + [.ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1]))])
                }
                : try Certificate.Extensions {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                    Critical(KeyUsage(keyCertSign: true))
                }
            if index < locations.count, !locations[index].isEmpty {
                let access = AuthorityInformationAccess(
                    locations[index].map { .init(method: .issuingCA, location: .uniformResourceIdentifier($0)) })
                try extensions.append(Certificate.Extension(access, critical: false))
            }
            certificates.append(
                try Certificate(
                    version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(keys[index].publicKey),
                    notValidBefore: Date(timeIntervalSinceNow: -86_400), notValidAfter: Date(timeIntervalSinceNow: 86_400),
                    issuer: subjects[issuer], subject: subjects[index], signatureAlgorithm: .ecdsaWithSHA256,
                    extensions: extensions, issuerPrivateKey: .init(keys[issuer])))
        }
        let all = try certificates.map { certificate in
            var serializer = DER.Serializer()
            try serializer.serialize(certificate)
            return serializer.serializedBytes
        }
        identity = TestCertificates.Identity(
            chain: Array(all.prefix(1)), key: Array(keys[0].derRepresentation),
            chainPEM: try certificates[0].serializeAsPEM().pemString + "\n", keyPEM: keys[0].pemRepresentation + "\n")
        issuers = Array(all.dropFirst().dropLast())
        root = Data(all[locations.count])
        rootPEM = try certificates[locations.count].serializeAsPEM().pemString
    }

    /// Returns a "certs-only" CMS message (RFC 5652, section 5.1) with certificates in DER.
    package static func message(_ certificates: [[UInt8]]) throws -> [UInt8] {
        let explicit = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { message in
            try message.serialize([1, 2, 840, 113_549, 1, 7, 2] as ASN1ObjectIdentifier)
            try message.appendConstructedNode(identifier: explicit) { content in
                try content.appendConstructedNode(identifier: .sequence) { signed in
                    try signed.serialize(1)
                    signed.appendConstructedNode(identifier: .set) { _ in }
                    try signed.appendConstructedNode(identifier: .sequence) { content in
                        try content.serialize([1, 2, 840, 113_549, 1, 7, 1] as ASN1ObjectIdentifier)
                    }
                    signed.appendConstructedNode(identifier: explicit) { set in
                        for certificate in certificates { set.serializeRawBytes(certificate) }
                    }
                    signed.appendConstructedNode(identifier: .set) { _ in }
                }
            }
        }
        return serializer.serializedBytes
    }
}
