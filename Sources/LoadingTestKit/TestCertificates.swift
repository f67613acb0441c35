//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Crypto
package import Foundation
package import NIOSSL
import SwiftASN1
import X509

/// Makes a small certification authority and server certificates, good and bad, for one test run (ECDSA, P-256).
package struct TestCertificates: Sendable {
    package enum Version: Sendable, Comparable { case v1_2, v1_3 }

    /// What a server shows and signs with.
    package struct Identity: Sendable {
        /// DER, the leaf first.
        package let chain: [[UInt8]]
        /// DER.
        package let key: [UInt8]
        package let chainPEM: String
        package let keyPEM: String

        package func serverConfiguration(versions: ClosedRange<Version>) throws -> TLSConfiguration {
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: try chain.map { .certificate(try NIOSSLCertificate(bytes: $0, format: .der)) },
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: key, format: .der))
            )
            configuration.minimumTLSVersion = versions.lowerBound == .v1_2 ? .tlsv12 : .tlsv13
            configuration.maximumTLSVersion = versions.upperBound == .v1_2 ? .tlsv12 : .tlsv13
            return configuration
        }
    }

    private struct Authority {
        let name: DistinguishedName
        let key: P256.Signing.PrivateKey
        let certificate: Certificate
    }

    /// For localhost, 127.0.0.1 and ::1, with its intermediate.
    package let valid: Identity
    package let expired: Identity
    package let notYetValid: Identity
    /// For another name only.
    package let wrongHost: Identity
    package let selfSigned: Identity
    /// A whole chain to a root that nobody trusts.
    package let unknownAuthority: Identity
    /// The leaf of ``valid`` without its intermediate.
    package let missingIntermediate: Identity
    /// DER of the root to trust.
    package let root: Data
    package let rootPEM: String

    /// One set for the whole process.
    package static let shared: Result<TestCertificates, any Error> = Result { try TestCertificates() }

    package init() throws {
        let day: TimeInterval = 86_400
        let now = Date()
        let years = now.addingTimeInterval(-365 * day)...now.addingTimeInterval(365 * day)
        let names: [GeneralName] = [
            .dnsName("localhost"),
            .ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1])),
            .ipAddress(ASN1OctetString(contentBytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
        ]
        let root = try Self.authority("Test Root", under: nil, years)
        let middle = try Self.authority("Test Intermediate", under: root, years)
        let stranger = try Self.authority("Strange Root", under: nil, years)
        let good = try Self.leaf(names, under: middle, years)
        valid = try Self.identity(good, [middle])
        missingIntermediate = try Self.identity(good, [])
        expired = try Self.identity(
            Self.leaf(names, under: middle, years.lowerBound...now.addingTimeInterval(-day)), [middle]
        )
        notYetValid = try Self.identity(
            Self.leaf(names, under: middle, now.addingTimeInterval(day)...years.upperBound), [middle]
        )
        wrongHost = try Self.identity(Self.leaf([.dnsName("other.example")], under: middle, years), [middle])
        selfSigned = try Self.identity(Self.leaf(names, under: nil, years), [])
        unknownAuthority = try Self.identity(Self.leaf(names, under: stranger, years), [stranger])
        self.root = Data(try Self.der(root.certificate))
        rootPEM = try root.certificate.serializeAsPEM().pemString
    }

    private static func authority(
        _ commonName: String, under parent: Authority?, _ validity: ClosedRange<Date>
    ) throws -> Authority {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName(commonName) }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: .init(key.publicKey),
            notValidBefore: validity.lowerBound,
            notValidAfter: validity.upperBound,
            issuer: parent?.name ?? name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            },
            issuerPrivateKey: .init(parent?.key ?? key)
        )
        return Authority(name: name, key: key, certificate: certificate)
    }

    private static func leaf(
        _ names: [GeneralName], under parent: Authority?, _ validity: ClosedRange<Date>
    ) throws -> (certificate: Certificate, key: P256.Signing.PrivateKey) {
        let key = P256.Signing.PrivateKey()
        let subject = try DistinguishedName { CommonName("Test Server") }
        let usage = try ExtendedKeyUsage([.serverAuth])
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: .init(key.publicKey),
            notValidBefore: validity.lowerBound,
            notValidAfter: validity.upperBound,
            issuer: parent?.name ?? subject,
            subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                usage
                SubjectAlternativeNames(names)
            },
            issuerPrivateKey: .init(parent?.key ?? key)
        )
        return (certificate, key)
    }

    private static func identity(
        _ leaf: (certificate: Certificate, key: P256.Signing.PrivateKey), _ authorities: [Authority]
    ) throws -> Identity {
        let chain = [leaf.certificate] + authorities.map(\.certificate)
        return Identity(
            chain: try chain.map(der),
            key: Array(leaf.key.derRepresentation),
            chainPEM: try chain.map { try $0.serializeAsPEM().pemString }.joined(separator: "\n") + "\n",
            keyPEM: leaf.key.pemRepresentation + "\n"
        )
    }

    private static func der(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}
