// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import SwiftASN1
import X509

/// A certificate with its key (P-256), of an authority or a server, with any defects that a test needs.
struct Signer {
    let certificate: Certificate
    let der: [UInt8]
    private let key: P256.Signing.PrivateKey

    var data: Data { Data(der) }
    var keyPEM: String { key.pemRepresentation }

    /// Creates a certificate signed by `parent`, or self-signed, with a new key or that of `twin`, and with additional
    /// extensions.
    init(
        _ commonName: String, under parent: Signer? = nil, keyOf twin: Signer? = nil,
        _ constraints: BasicConstraints? = .isCertificateAuthority(maxPathLength: nil), names: [GeneralName] = [],
        extensions others: [Certificate.Extension] = [], version: Certificate.Version = .v3,
        subject name: DistinguishedName? = nil
    ) throws {
        key = twin?.key ?? P256.Signing.PrivateKey()
        let subject = try name ?? DistinguishedName { CommonName(commonName) }
        var extensions = try Certificate.Extensions(others)
        if let constraints { try extensions.append(Certificate.Extension(constraints, critical: true)) }
        if !names.isEmpty { try extensions.append(Certificate.Extension(SubjectAlternativeNames(names), critical: false)) }
        certificate = try Certificate(
            version: version, serialNumber: Certificate.SerialNumber(), publicKey: .init(key.publicKey),
            notValidBefore: Date().addingTimeInterval(-86_400), notValidAfter: Date().addingTimeInterval(86_400),
            issuer: parent?.certificate.subject ?? subject, subject: subject, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions, issuerPrivateKey: .init(parent?.key ?? key)
        )
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        der = serializer.serializedBytes
    }

    /// A server's certificate for a.example.
    static func server(under parent: Signer, extensions: [Certificate.Extension] = []) throws -> Signer {
        try Signer("Server", under: parent, .notCertificateAuthority, names: [.dnsName("a.example")], extensions: extensions)
    }
}
