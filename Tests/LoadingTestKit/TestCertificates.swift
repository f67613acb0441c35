// SPDX-License-Identifier: Apache-2.0

import Crypto
package import Foundation
package import NIOSSL
import SwiftASN1
import X509

/// Creates a small certificate authority and server certificates, valid and invalid, for one test run (ECDSA, P-256).
package struct TestCertificates: Sendable {
    package enum Version: Sendable, Comparable { case v1_2, v1_3 }

    /// A certificate chain and its key.
    package struct Identity: Sendable {
        /// DER, the leaf first.
        package let chain: [[UInt8]]
        /// DER.
        package let key: [UInt8]
        package let chainPEM: String
        package let keyPEM: String

        /// The identity as a PKCS #12 file, written by BoringSSL.
        package func pkcs12(password: String) throws -> Data {
            let bundle = NIOSSLPKCS12Bundle(
                certificateChain: try chain.map { try NIOSSLCertificate(bytes: $0, format: .der) },
                privateKey: try NIOSSLPrivateKey(bytes: key, format: .der)
            )
            return Data(try bundle.serialize(passphrase: Array(password.utf8)))
        }

        /// The same with further copies of the last certificate.
        package func lengthened(to count: Int) -> Identity {
            let copies = max(0, count - chain.count)
            let last = chain.suffix(1)
            let block = last.map { PEMDocument(type: "CERTIFICATE", derBytes: $0).pemString + "\n" }.joined()
            return Identity(
                chain: chain + [[[UInt8]]](repeating: Array(last), count: copies).flatMap { $0 }, key: key,
                chainPEM: chainPEM + String(repeating: block, count: copies), keyPEM: keyPEM)
        }

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

    private struct Leaf {
        /// The certificate in DER.
        let bytes: [UInt8]
        let key: [UInt8]
        let keyPEM: String
    }

    /// For localhost, 127.0.0.1 and ::1, with its intermediate.
    package let valid: Identity
    package let expired: Identity
    package let notYetValid: Identity
    /// For another name only.
    package let wrongHost: Identity
    package let selfSigned: Identity
    /// A complete chain to an untrusted root.
    package let unknownAuthority: Identity
    /// For www.shop.localhost and img.shop.localhost, with its intermediate.
    package let shop: Identity
    /// For the names of ``shop``, issued by an untrusted root.
    package let untrustedShop: Identity
    /// The leaf of ``valid`` without its intermediate.
    package let missingIntermediate: Identity
    /// The leaf of ``valid`` with a certificate that has the intermediate's name, but another key.
    package let impostorIssuer: Identity
    /// For *.example.com only.
    package let wildcard: Identity
    /// For localhost and the loopback addresses, issued by an intermediate whose name constraints permit these names.
    package let nameConstraintSatisfied: Identity
    /// For localhost and the loopback addresses, issued by a valid server certificate, which is not a CA.
    package let nonCAIssuer: Identity
    /// For localhost, issued by an intermediate whose name constraints only permit good.example.
    package let nameConstraintViolated: Identity
    /// For localhost and the loopback addresses, with a 1024-bit RSA key.
    package let weakKey: Identity
    /// For localhost and the loopback addresses, for clients only (extended key usage).
    package let clientOnly: Identity
    /// A client certificate of the intermediate of ``valid``, accepted by servers that trust ``root``.
    package let client: Identity
    /// A client certificate of an untrusted root.
    package let untrustedClient: Identity
    /// The root to trust, in DER.
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
        impostorIssuer = try Self.identity(good, [Self.authority("Test Intermediate", under: nil, years)])
        expired = try Self.identity(
            Self.leaf(names, under: middle, years.lowerBound...now.addingTimeInterval(-day)), [middle]
        )
        notYetValid = try Self.identity(
            Self.leaf(names, under: middle, now.addingTimeInterval(day)...years.upperBound), [middle]
        )
        wrongHost = try Self.identity(Self.leaf([.dnsName("other.example")], under: middle, years), [middle])
        selfSigned = try Self.identity(Self.leaf(names, under: nil, years), [])
        unknownAuthority = try Self.identity(Self.leaf(names, under: stranger, years), [stranger])
        let shopNames: [GeneralName] = [.dnsName("www.shop.localhost"), .dnsName("img.shop.localhost")]
        shop = try Self.identity(Self.leaf(shopNames, under: middle, years), [middle])
        untrustedShop = try Self.identity(Self.leaf(shopNames, under: stranger, years), [stranger])
        wildcard = try Self.identity(Self.leaf([.dnsName("*.example.com")], under: middle, years), [middle])
        let addresses = [
            ASN1OctetString(contentBytes: [127, 0, 0, 0, 255, 0, 0, 0]),
            ASN1OctetString(
                contentBytes: ArraySlice([UInt8](repeating: 0, count: 15) + [1] + [UInt8](repeating: 255, count: 16))
            ),
        ]
        let local = NameConstraints(permittedDNSDomains: ["localhost"], permittedIPRanges: addresses)
        let limited = try Self.authority("Limited Intermediate", under: root, years, limits: local)
        nameConstraintSatisfied = try Self.identity(Self.leaf(names, under: limited, years), [limited])
        let foreign = NameConstraints(permittedDNSDomains: ["good.example"])
        let elsewhere = try Self.authority("Foreign Intermediate", under: root, years, limits: foreign)
        nameConstraintViolated = try Self.identity(Self.leaf([names[0]], under: elsewhere, years), [elsewhere])
        let (ordinaryKey, ordinaryName) = (P256.Signing.PrivateKey(), try DistinguishedName { CommonName("Test Server") })
        let ordinary = try Self.certificate(
            names, of: .init(ordinaryKey.publicKey), under: middle, or: ordinaryKey, years, commonName: "Test Server",
            usage: .serverAuth
        )
        let usurper = Authority(name: ordinaryName, key: ordinaryKey, certificate: ordinary)
        nonCAIssuer = try Self.identity(
            Self.leaf(names, under: usurper, years, commonName: "Other Server"), [usurper, middle])
        weakKey = try Self.identity(Self.weakLeaf(names, under: middle, years), [middle])
        clientOnly = try Self.identity(Self.leaf(names, under: middle, years, usage: .clientAuth), [middle])
        client = try Self.identity(
            Self.leaf([], under: middle, years, commonName: "Test Client", usage: .clientAuth), [middle]
        )
        untrustedClient = try Self.identity(
            Self.leaf([], under: stranger, years, commonName: "Strange Client", usage: .clientAuth), [stranger]
        )
        self.root = Data(try Self.der(root.certificate))
        rootPEM = try root.certificate.serializeAsPEM().pemString
    }

    private static func authority(
        _ commonName: String, under parent: Authority?, _ validity: ClosedRange<Date>, limits: NameConstraints? = nil
    ) throws -> Authority {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName(commonName) }
        var extensions = try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            Critical(KeyUsage(keyCertSign: true, cRLSign: true))
        }
        if let limits { try extensions.append(Certificate.Extension(limits, critical: true)) }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: .init(key.publicKey),
            notValidBefore: validity.lowerBound,
            notValidAfter: validity.upperBound,
            issuer: parent?.name ?? name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions,
            issuerPrivateKey: .init(parent?.key ?? key)
        )
        return Authority(name: name, key: key, certificate: certificate)
    }

    private static func leaf(
        _ names: [GeneralName], under parent: Authority?, _ validity: ClosedRange<Date>, commonName: String = "Test Server",
        usage: ExtendedKeyUsage.Usage = .serverAuth
    ) throws -> Leaf {
        let key = P256.Signing.PrivateKey()
        let certificate = try certificate(
            names, of: .init(key.publicKey), under: parent, or: key, validity, commonName: commonName, usage: usage
        )
        return Leaf(bytes: try der(certificate), key: Array(key.derRepresentation), keyPEM: key.pemRepresentation)
    }

    /// The SHA-256 hash of data, for tests that pin keys.
    package static func sha256(_ data: Data) -> Data { Data(SHA256.hash(data: data)) }

    /// Creates a leaf with a 1024-bit RSA key.
    ///
    /// Swift Crypto does not create such short keys. A fixed key therefore replaces the key of an ordinary leaf before the
    /// certificate is signed.
    private static func weakLeaf(
        _ names: [GeneralName], under parent: Authority, _ validity: ClosedRange<Date>
    ) throws -> Leaf {
        let strong = try DER.parse(leaf(names, under: parent, validity).bytes)
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { certificate in
            let parts = try children(strong)
            var signed = DER.Serializer()
            try signed.appendConstructedNode(identifier: .sequence) { fields in
                for (index, field) in try children(parts[0]).enumerated() {
                    // version, serial number, signature, issuer, validity, subject, key (RFC 5280, section 4.1)
                    if index == 6 {
                        fields.serializeRawBytes(try PEMDocument(pemString: WeakKey.publicKey).derBytes)
                    } else {
                        fields.serialize(field)
                    }
                }
            }
            certificate.serializeRawBytes(signed.serializedBytes)
            certificate.serialize(parts[1])
            let signature = try parent.key.signature(for: signed.serializedBytes)
            try certificate.serialize(ASN1BitString(bytes: ArraySlice(signature.derRepresentation)))
        }
        let key = try PEMDocument(pemString: WeakKey.privateKey)
        return Leaf(bytes: serializer.serializedBytes, key: key.derBytes, keyPEM: WeakKey.privateKey)
    }

    private static func children(_ node: ASN1Node) throws -> [ASN1Node] {
        guard case .constructed(let nodes) = node.content else { throw ASN1Error.unexpectedFieldType(node.identifier) }
        return Array(nodes)
    }

    private static func certificate(
        _ names: [GeneralName], of key: Certificate.PublicKey, under parent: Authority?, or own: P256.Signing.PrivateKey,
        _ validity: ClosedRange<Date>, commonName: String, usage: ExtendedKeyUsage.Usage
    ) throws -> Certificate {
        let subject = try DistinguishedName { CommonName(commonName) }
        var extensions = try Certificate.Extensions {
            Critical(BasicConstraints.notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true))
            try ExtendedKeyUsage([usage])
        }
        if !names.isEmpty { try extensions.append(Certificate.Extension(SubjectAlternativeNames(names), critical: false)) }
        return try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: key,
            notValidBefore: validity.lowerBound,
            notValidAfter: validity.upperBound,
            issuer: parent?.name ?? subject,
            subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions,
            issuerPrivateKey: .init(parent?.key ?? own)
        )
    }

    private static func identity(_ leaf: Leaf, _ authorities: [Authority]) throws -> Identity {
        let chain = [leaf.bytes] + (try authorities.map { try der($0.certificate) })
        let blocks = chain.map { PEMDocument(type: "CERTIFICATE", derBytes: $0).pemString }
        return Identity(chain: chain, key: leaf.key, chainPEM: blocks.joined(separator: "\n") + "\n", keyPEM: leaf.keyPEM + "\n")
    }

    private static func der(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}

/// A 1024-bit RSA key, created with `openssl genrsa`.
private enum WeakKey {
    static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCZ4poqa0LP2XnEuB8tuR7Eiffq
        vZW91wE44Cu+p8r4FF9NsOCR4L4S3ww8ynTWcEFpiZVsTZ9CE/bzcmvt5OE5EoaY
        n2YN13XWjx2hEZrXkYM50j6h7KBPe54UdR7mNQiTRC9SxnjxuDWchqE3Y5o5ZSlm
        lrye+ZAvLP7JKkOGgQIDAQAB
        -----END PUBLIC KEY-----
        """
    static let privateKey = """
        -----BEGIN RSA PRIVATE KEY-----
        MIICXAIBAAKBgQCZ4poqa0LP2XnEuB8tuR7EiffqvZW91wE44Cu+p8r4FF9NsOCR
        4L4S3ww8ynTWcEFpiZVsTZ9CE/bzcmvt5OE5EoaYn2YN13XWjx2hEZrXkYM50j6h
        7KBPe54UdR7mNQiTRC9SxnjxuDWchqE3Y5o5ZSlmlrye+ZAvLP7JKkOGgQIDAQAB
        AoGBAJET27hGK1T9eRmHZI2cy28Li9mZJwU1IIfYgCVc17QOsNL0AKRHN6te8ZCW
        ZpSMfH7dISxb+ds4K0fVBf/gGpxXpOERhYsXc2E5CSYM4Ywcey52fA1c0tPX28rC
        2jP7DNeIrHbI0TO2pgZ4jncEQ0nWdlACwTxGebIgEo+AtBnpAkEAx0HPqJ/kGxCG
        9s0UUU9WmKvTok9Jbvc891BGFSEK1vibs9s2XjAEEFbBYM0Xmaok+dmZrlLxYGNO
        1JYgFkMQhwJBAMW1GXvdGzSM6xvwQzT00BfPxYKZwNl51efA9IHuCMGwhu70OmqW
        sC+VFWAyLfsZ8Y7m/zp2U9z8NuznLtxzGrcCQBtg6pSj66bgXXsZ8Lm/agmuSnUZ
        6eAqbqEY0Zhjouao4FQVQeItPNG16fpQE/cUTuJZyOkQEoSJALLrMdt9OY8CQD7y
        dBStxzWqEEkq7Br2PzL1ogr87RvQ4LwTAUZFBWC11aBK/jZll97udonUMDOchP5c
        qbJxbi4T12ECEjd6Jm0CQACOuqZmVMNxXioc0kso5B8NkfuIdYIP+JdyUxTh3b2n
        lnQVizeHjuXDEHII4ii2GGi7I9sbEE+J+L+8XcbMuk0=
        -----END RSA PRIVATE KEY-----
        """
}
