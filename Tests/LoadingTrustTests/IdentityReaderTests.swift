// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTrust
import SwiftASN1
import Testing

@Suite struct IdentityReaderTests {
    private func pem(_ texts: String...) -> Data { Data(texts.joined(separator: "\n").utf8) }

    private func leaf(_ pem: String) throws -> Data {
        try #require(Data(base64Encoded: pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()))
    }

    private func matches(certificate: Data, key: Data) -> Bool {
        IdentityReader.publicKey(of: key).map { $0 == CertificateFacts(der: certificate)?.publicKey } ?? false
    }

    @Test func `PKCS 12 files of all kinds are read`() throws {
        let rows: [(String, Data, String?, Int)] = [
            ("modern", PKCS12Samples.modern, "geheim", 2), ("legacy", PKCS12Samples.legacy, "geheim", 2),
            ("SHA-512", PKCS12Samples.sha512, "geheim", 2),
            ("accents", PKCS12Samples.accented, "pässwörter 🔑", 2),
            ("accents, legacy", PKCS12Samples.accentedLegacy, "pässwörter", 2),
            ("no password", PKCS12Samples.unprotected, nil, 2),
            ("empty password", PKCS12Samples.unprotected, "", 2), ("no seal", PKCS12Samples.unsealed, "geheim", 2),
            ("not encrypted", PKCS12Samples.clear, "geheim", 2),
        ]
        for (name, file, password, count) in rows {
            do {
                let identity = try IdentityReader.identity(pkcs12: file, password: password)
                #expect(identity.certificates.count == count, "\(name)")
                let leaf = try #require(identity.certificates.first)
                #expect(matches(certificate: leaf, key: identity.privateKey), "\(name)")
            } catch {
                Issue.record("\(name): \(error)")
            }
        }
    }

    @Test func `an invalid PKCS 12 file is refused with a reason`() throws {
        let rows: [(String, Data, String?, IdentityFailure)] = [
            ("wrong", PKCS12Samples.modern, "x", .wrongPassword), ("wrong, legacy", PKCS12Samples.legacy, "x", .wrongPassword),
            ("wrong, no seal", PKCS12Samples.unsealed, "x", .wrongPassword),
            ("none given", PKCS12Samples.modern, nil, .passwordRequired), ("empty", PKCS12Samples.modern, "", .wrongPassword),
            ("RC2-128", PKCS12Samples.mixedLegacy, "geheim", .outdatedCipher("1.2.840.113549.1.12.1.5")),
            ("no key", PKCS12Samples.withoutKey, "geheim", .noKey),
            ("no certificate", PKCS12Samples.withoutCertificate, "geheim", .noCertificate),
            ("no file", Data(), "", .malformed("it is not a PKCS #12 file")),
            ("PEM", pem(PEMSamples.certificate), "", .malformed("it is not a PKCS #12 file")),
        ]
        for (name, file, password, expected) in rows {
            #expect(throws: expected, "\(name)") { try IdentityReader.identity(pkcs12: file, password: password) }
        }
    }

    @Test func `the error about an outdated cipher says how to replace it`() {
        #expect("\(IdentityFailure.outdatedCipher("1.2.3"))".contains("openssl pkcs12 -legacy"))
    }

    @Test func `a truncated PKCS 12 file fails, and one with a flipped byte fails or has a matching key`() throws {
        for file in [PKCS12Samples.modern, PKCS12Samples.legacy, PKCS12Samples.unsealed] {
            for index in stride(from: 0, to: file.count, by: 23) {
                var damaged = file
                damaged[index] ^= 0x41
                // Both results are allowed: a flipped byte may be in a name, in another certificate, or in a file without a MAC.
                // But a certificate never gets the key of another one.
                if let identity = try? IdentityReader.identity(pkcs12: damaged, password: "geheim") {
                    let leaf = try #require(identity.certificates.first, "\(index)")
                    #expect(matches(certificate: leaf, key: identity.privateKey), "\(index)")
                }
                #expect(throws: IdentityFailure.self, "\(index)") {
                    try IdentityReader.identity(pkcs12: file.prefix(index), password: "geheim")
                }
            }
        }
    }

    @Test func `the iterations of a PKCS 12 file are limited in total`() throws {
        func node(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
            [tag, 0x83, UInt8(content.count >> 16), UInt8(content.count >> 8 & 0xFF), UInt8(content.count & 0xFF)] + content
        }
        let name: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01]
        let bag = node(0x30, node(6, name + [12, 10, 1, 2]) + node(0xA0, Array(Self.slowKey)))
        func file(of count: Int) -> Data {
            func data(_ content: [UInt8]) -> [UInt8] { node(0x30, node(6, name + [7, 1]) + node(0xA0, node(4, content))) }
            let bags = node(0x30, Array(repeatElement(bag, count: count).joined()))
            return Data(node(0x30, [2, 1, 3] + data(node(0x30, data(bags)))))
        }
        #expect(throws: IdentityFailure.noCertificate) { try IdentityReader.identity(pkcs12: file(of: 1), password: "geheim") }
        #expect(throws: IdentityFailure.unsupported("a file with so many key derivation rounds")) {
            try IdentityReader.identity(pkcs12: file(of: 32), password: "geheim")
        }
    }

    /// A key encrypted with the password "geheim".
    ///
    /// It was made with `openssl pkcs8 -topk8 -v2 aes-128-cbc -v2prf hmacWithSHA1 -iter 3000000`.
    private static let slowKey =
        Data(
            base64Encoded: """
                MIHfMEoGCSqGSIb3DQEFDTA9MBwGCSqGSIb3DQEFDDAPBAjGnW5MmmnyHgIDLcbAMB0GCWCGSAFlAwQBAgQQ1nbw1XCvX7dJOKdYa+8jLASBkJ2zKSxzme
                t+awhWBU+qwWbturU8WaCmchsJq0LAAI3W/7QZFSunT732MQvY6U6hB326nGSDDW0nGm3SAmvIrq325fpfsQN761e3qDOhEKdityaYpu+/Lga0/eYOlRpH
                xzEygKK5T9UziSESHYBn7UBVP67ldenEjKoWek2ewoq0IyXWHAezgInif3hyBrTOJw==
                """,
            options: .ignoreUnknownCharacters
        ) ?? Data()

    @Test func `the certificate of the key comes first, then its issuers, then the others`() throws {
        let root = try Signer("Root")
        let issuer = try Signer("Issuer", under: root)
        let (leaf, other) = (try Signer.server(under: issuer), try Signer.server(under: issuer))
        let twin = try Signer("Issuer", under: root)
        let mixed = [other, root, issuer, twin, leaf].map { PEMDocument(type: "CERTIFICATE", derBytes: $0.der).pemString }
        let identity = try IdentityReader.identity(
            pem: Data(mixed.joined(separator: "\n").utf8), key: Data(leaf.keyPEM.utf8), password: nil
        )
        #expect(identity.certificates == [leaf, issuer, root, other, twin].map(\.data))
    }

    @Test func `PEM keys of all kinds are read`() throws {
        let certificates = pem(PEMSamples.certificate, PEMSamples.issuer)
        let rows: [(String, String, String?)] = [
            ("SEC 1", PEMSamples.sec1, nil), ("PKCS 8", PEMSamples.pkcs8, nil), ("AES-256", PEMSamples.aes256, "geheim"),
            ("AES-128", PEMSamples.aes128, "geheim"), ("triple DES", PEMSamples.tripleDES, "geheim"),
            ("as PKCS 12", PEMSamples.pkcs12Style, "geheim"), ("OpenSSL's AES", PEMSamples.traditionalAES, "geheim"),
            ("OpenSSL's triple DES", PEMSamples.traditionalTripleDES, "geheim"), ("password not needed", PEMSamples.pkcs8, "x"),
        ]
        for (name, key, password) in rows {
            do throws(IdentityFailure) {
                let apart = try IdentityReader.identity(pem: certificates, key: pem(key), password: password)
                let together = try IdentityReader.identity(
                    pem: pem(key, "Bag Attributes", PEMSamples.issuer, PEMSamples.certificate), key: nil, password: password
                )
                #expect(apart == together, "\(name): the key's certificate comes first, wherever it was")
                #expect(apart.certificates.count == 2)
                #expect(matches(certificate: apart.certificates[0], key: apart.privateKey))
            } catch {
                Issue.record("\(name): \(error)")
            }
        }
    }

    @Test func `RSA keys are read, and certificate and key also as DER`() throws {
        for (key, password) in [
            (PEMSamples.rsaPKCS1, nil), (PEMSamples.rsaPKCS8, nil), (PEMSamples.rsaTraditional, "geheim"),
        ] as [(String, String?)] {
            let identity = try IdentityReader.identity(pem: pem(PEMSamples.rsaCertificate, key), key: nil, password: password)
            #expect(identity.certificates == [try leaf(PEMSamples.rsaCertificate)])
        }
        let binary = try IdentityReader.identity(
            pem: try leaf(PEMSamples.rsaCertificate), key: try leaf(PEMSamples.rsaPKCS1), password: nil
        )
        #expect(
            try binary
                == IdentityReader.identity(
                    pem: pem(PEMSamples.rsaCertificate), key: pem(PEMSamples.rsaPKCS8), password: nil
                ))
        let encrypted = try leaf(PEMSamples.aes256)
        #expect(throws: Never.self) {
            try IdentityReader.identity(pem: pem(PEMSamples.certificate), key: encrypted, password: "geheim")
        }
    }

    @Test func `an invalid PEM file is refused with a reason`() throws {
        let certificate = pem(PEMSamples.certificate)
        let rows: [(String, Data, Data?, String?, IdentityFailure)] = [
            ("no password", certificate, pem(PEMSamples.aes256), nil, .passwordRequired),
            ("wrong password", certificate, pem(PEMSamples.aes256), "x", .wrongPassword),
            ("wrong password, triple DES", certificate, pem(PEMSamples.pkcs12Style), "x", .wrongPassword),
            ("wrong password, traditional", certificate, pem(PEMSamples.traditionalAES), "x", .wrongPassword),
            ("no password, traditional", certificate, pem(PEMSamples.traditionalAES), nil, .passwordRequired),
            ("no key", certificate, nil, nil, .noKey), ("no certificate", pem(PEMSamples.pkcs8), nil, nil, .noCertificate),
            ("another's key", certificate, pem(PEMSamples.rsaPKCS8), nil, .keyDoesNotMatch),
            ("nothing", Data(), nil, nil, .malformed("it is neither PEM nor a certificate in DER")),
        ]
        for (name, text, key, password, expected) in rows {
            #expect(throws: expected, "\(name)") { try IdentityReader.identity(pem: text, key: key, password: password) }
        }
        for key in [PEMSamples.scrypt, PEMSamples.otherCurve] {
            let failure = #expect(throws: IdentityFailure.self) {
                try IdentityReader.identity(pem: certificate, key: pem(key), password: "geheim")
            }
            guard case .unsupported = failure else {
                Issue.record("\(String(describing: failure))")
                continue
            }
        }
    }

    @Test func `a description never contains the key`() throws {
        let identity = try IdentityReader.identity(pkcs12: PKCS12Samples.modern, password: "geheim")
        #expect("\(identity)" == "an identity with 2 certificates")
    }
}
