// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import LoadingModel
import LoadingTestKit
import LoadingTrust
import SwiftASN1
import Testing
import X509

@Suite struct TrustCheckTests {
    private let authority: LocalAuthority

    init() throws { authority = try LocalAuthority() }

    private func failure(of leaf: [UInt8], host: String) async throws -> TrustFailure? {
        await TrustCheck.failure(of: [leaf], host: host, roots: [authority.root])
    }

    @Test(
        arguments: [
            ("a.example", "a.example"), ("A.Example", "a.example"), ("a.example.", "a.example"),
            ("*.example.com", "a.example.com"), ("*.example.com", "my_app.example.com"), ("my_app.example", "MY_APP.example"),
            ("*.my_app.example", "a.my_app.example."),
        ]
    )
    func `a matching DNS name is trusted`(name: String, host: String) async throws {
        let leaf = try authority.leaf([.dnsName(name)])
        #expect(try await failure(of: leaf, host: host) == nil)
    }

    @Test(
        arguments: [
            ("*.a.example", "b.c.a.example"), ("*.a.example", "a.example"), ("b.example", "a.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("*", "example"), ("w*.a.example", "www.a.example"), ("*_app.a.example", "my_app.a.example"),
            ("a.*.example", "a.b.example"), ("my_app.example", "my-app.example"), ("my\0.example", "my"), ("", "a.example"),
        ]
    )
    func `another DNS name is not trusted`(name: String, host: String) async throws {
        let leaf = try authority.leaf([.dnsName(name)])
        #expect(try await failure(of: leaf, host: host)?.kind == .serverCertificateUntrusted)
    }

    @Test func `an address must match an address entry`() async throws {
        let leaf = try authority.leaf([.ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1]))])
        #expect(try await failure(of: leaf, host: "127.0.0.1") == nil)
        #expect(try await failure(of: leaf, host: "127.0.0.2")?.kind == .serverCertificateUntrusted)
    }

    @Test func `the zone of an address is ignored`() async throws {
        let address = ASN1OctetString(contentBytes: [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        let leaf = try authority.leaf([.ipAddress(address)])
        for host in ["fe80::1", "fe80::1%eth0", "[fe80::1%25eth0]"] {
            #expect(try await failure(of: leaf, host: host) == nil, "\(host)")
        }
        #expect(try await failure(of: leaf, host: "fe80::2%eth0")?.reason == .wrongHost)
    }

    @Test func `a common name is not sufficient`() async throws {
        let leaf = try authority.leaf([], commonName: "a.example")
        #expect(try await failure(of: leaf, host: "a.example")?.message.contains("common name") == true)
    }

    @Test func `a client certificate is refused for a server`() async throws {
        let leaf = try authority.leaf([.dnsName("a.example")], usages: [.clientAuth])
        #expect(try await failure(of: leaf, host: "a.example")?.message.contains("extended key usage") == true)
        let anything = try authority.leaf([.dnsName("a.example")], usages: [.any])
        #expect(try await failure(of: anything, host: "a.example") == nil)
        let unlimited = try authority.leaf([.dnsName("a.example")], usages: [])
        #expect(try await failure(of: unlimited, host: "a.example") == nil)
    }

    @Test func `name constraints of an authority are enforced`() async throws {
        let limited = try LocalAuthority(permitted: ["good.example"])
        let good = try limited.leaf([.dnsName("www.good.example")])
        let bad = try limited.leaf([.dnsName("www.bad.example")])
        #expect(await TrustCheck.failure(of: [good], host: "www.good.example", roots: [limited.root]) == nil)
        let failure = await TrustCheck.failure(of: [bad], host: "www.bad.example", roots: [limited.root])
        #expect(failure?.kind == .serverCertificateUntrusted)
    }

    @Test func `a root certificate is trusted as a server's certificate`() async throws {
        let certificates = try TestCertificates.shared.get()
        let own = certificates.selfSigned.chain[0]
        #expect(await TrustCheck.failure(of: [own], host: "localhost", roots: [Data(own)]) == nil)
        #expect(await TrustCheck.failure(of: [own], host: "other", roots: [Data(own)])?.kind == .serverCertificateUntrusted)
    }

    @Test func `a short RSA key is refused, even that of a root`() async throws {
        let weak = try #require(Data(base64Encoded: weakCertificate, options: .ignoreUnknownCharacters))
        let failure = await TrustCheck.failure(of: [Array(weak)], host: "localhost", roots: [weak])
        #expect(failure?.kind == .serverCertificateUntrusted)
    }

    @Test func `an invalid certificate is malformed`() async throws {
        for chain in [[], [[]], [[0x30, 0x80]], [try authority.leaf([.dnsName("a")]), [1, 2, 3]]] as [[[UInt8]]] {
            let failure = await TrustCheck.failure(of: chain, host: "a", roots: [authority.root])
            #expect(failure?.kind == .serverCertificateUntrusted)
            #expect(failure?.message.contains("malformed") == true)
        }
    }

    @Test func `an unsupported certificate is ignored if it is not needed`() async throws {
        let weak = Array(try #require(Data(base64Encoded: weakCertificate, options: .ignoreUnknownCharacters)))
        let root = try Signer("Root")
        let intermediate = try Signer("Intermediate", under: root)
        let leaf = try Signer.server(under: intermediate)
        for chain in [[leaf.der, intermediate.der, weak], [leaf.der, weak, intermediate.der, weak]] {
            #expect(await TrustCheck.failure(of: chain, host: "a.example", roots: [root.data]) == nil)
        }
        // Without a path to a root, the unsupported certificate may be the missing one. The first certificate is never ignored.
        let missing = await TrustCheck.failure(of: [leaf.der, weak], host: "a.example", roots: [root.data])
        #expect(missing?.reason == .weakKey)
        let first = await TrustCheck.failure(of: [weak, leaf.der, intermediate.der], host: "a.example", roots: [root.data])
        #expect(first?.reason == .weakKey)
        // Other failures are still reported.
        let elsewhere = await TrustCheck.failure(of: [leaf.der, intermediate.der, weak], host: "b.example", roots: [root.data])
        #expect(elsewhere?.reason == .wrongHost)
    }

    @Test func `root files are read once per certificate, and invalid files are ignored`() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("roots-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let pem = try TestCertificates.shared.get().rootPEM
        for name in ["a.pem", "b.0"] { try Data((pem + pem).utf8).write(to: directory.appendingPathComponent(name)) }
        try Data("nonsense".utf8).write(to: directory.appendingPathComponent("c.txt"))
        let found = TrustRoots.certificates(inFiles: ["/no/such/file"], directories: ["/no/such/directory", directory.path])
        #expect(found.count == 1)
    }

    @Test func `files of roots that would block or never end are not read`() throws {
        let directory = try TemporaryDirectory()
        let root = try TestCertificates.shared.get()
        try directory.write(root.rootPEM.utf8, to: "folder/root.pem")
        #expect(mkfifo(directory.file("folder/pipe.pem").path, 0o600) == 0)
        try FileManager.default.createSymbolicLink(
            at: directory.file("folder/zero.pem"), withDestinationURL: URL(fileURLWithPath: "/dev/zero"))
        #expect(TrustRoots.certificates(inFiles: [], directories: [directory.file("folder").path]).count == 1)
        for name in ["pipe.pem", "zero.pem"] {
            #expect(TrustRoots.roots(file: directory.file("folder/" + name).path, directories: []) == [Data()], "\(name)")
        }
        // A file has at most 16 MiB.
        let long = root.rootPEM.utf8 + Array(repeating: UInt8(ascii: "\n"), count: 16 << 20)
        let path = try directory.write(long, to: "long.pem").path
        #expect(TrustRoots.roots(file: path, directories: []) == [Data()])
    }
}

/// Signs server certificates with any defects that a test needs.
private struct LocalAuthority {
    let root: Data
    private let key = P256.Signing.PrivateKey()
    private let name: DistinguishedName
    private let validity: ClosedRange<Date>

    init(permitted: [String] = []) throws {
        name = try DistinguishedName { CommonName("Local Root") }
        validity = Date().addingTimeInterval(-86_400)...Date().addingTimeInterval(86_400)
        var extensions = try Certificate.Extensions {
            Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            Critical(KeyUsage(keyCertSign: true))
        }
        if !permitted.isEmpty {
            let constraints = NameConstraints(permittedDNSDomains: permitted)
            try extensions.append(Certificate.Extension(constraints, critical: true))
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(key.publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound, issuer: name, subject: name,
            signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions, issuerPrivateKey: .init(key)
        )
        root = Data(try Self.der(certificate))
    }

    func leaf(
        _ names: [GeneralName], commonName: String = "server", constraints: BasicConstraints = .notCertificateAuthority,
        usages: [ExtendedKeyUsage.Usage] = [.serverAuth]
    ) throws -> [UInt8] {
        var extensions = try Certificate.Extensions { Critical(constraints) }
        if !names.isEmpty { try extensions.append(Certificate.Extension(SubjectAlternativeNames(names), critical: false)) }
        if !usages.isEmpty {
            try extensions.append(Certificate.Extension(ExtendedKeyUsage(usages), critical: true))
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: .init(P256.Signing.PrivateKey().publicKey),
            notValidBefore: validity.lowerBound, notValidAfter: validity.upperBound, issuer: name,
            subject: DistinguishedName { CommonName(commonName) }, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions, issuerPrivateKey: .init(key)
        )
        return try Self.der(certificate)
    }

    private static func der(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}

/// A self-signed RSA-1024 certificate for localhost, valid from 2020 to 2120; made with `openssl req` and `openssl ca -selfsign`.
private let weakCertificate = """
    MIIB2zCCAUSgAwIBAgIBATANBgkqhkiG9w0BAQsFADAPMQ0wCwYDVQQDDAR3ZWFrMCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAx
    MDAwMDAwWjAPMQ0wCwYDVQQDDAR3ZWFrMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDQU1vHUrGoiApXSVt322gYAEFiQft3
    nWJCQT/KWSAC3B2SRwTSi239Yl2WB5d4HiGRH0XfEGJ5Ox8t3EwYcMuVUHjk5//1Hhzt4OYfUgQN0sQV6y5vTmXcOCUwdkgg2Fnf
    YgZtP9CX4OYt2GcYVIRIvH1M7hUYOC/pzhLnKfxSeQIDAQABo0UwQzAUBgNVHREEDTALgglsb2NhbGhvc3QwDAYDVR0TAQH/BAIw
    ADAdBgNVHQ4EFgQU2DmNmn9Ego7TxWRnQ2SgrQBrDNgwDQYJKoZIhvcNAQELBQADgYEAfV2aStt/Q02KOYURl6CtuaiBK94NmMXB
    VTQTIRgDRE1isTJIzksKSPfR35Q6q8fSG9EvyyBVyZgVjCppNyVjBPfVZoyrbA9JcewP+fzS4cAIMSxMFuPRE4MLe2mzLIogqKpB
    04shfDy5IWFKl3Zw4h7QGMVFiCBf+nw+xzqyVBE=
    """
