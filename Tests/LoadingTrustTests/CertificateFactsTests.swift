// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import LoadingTestKit
import LoadingTrust
import Testing

@Suite struct CertificateFactsTests {
    private func der(_ pem: String) throws -> Data {
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        return try #require(Data(base64Encoded: lines.joined()))
    }

    @Test func `a certificate has its names, dates and key`() throws {
        let facts = try #require(CertificateFacts(der: try der(PEMSamples.certificate)))
        #expect(facts.subjectSummary == "Client ec")
        #expect(facts.commonName == "Client ec")
        #expect(facts.subject.contains("O=Example"))
        #expect(facts.issuer == "CN=Client Authority")
        #expect(facts.notBefore == Date(timeIntervalSince1970: 1_577_836_800))
        #expect(facts.serialNumber.count == 20)
        #expect(facts.key?.kind == .ec)
        #expect(facts.key?.bits == 256)
        #expect(facts.publicKey.count == 65)
        // The key is the end of the SubjectPublicKeyInfo, whose beginning is the same for every P-256 key.
        #expect(facts.spki.suffix(65) == facts.publicKey)
        #expect(facts.spki.count == 91)
        #expect(facts.spkiSHA256 == Data(SHA256.hash(data: facts.spki)))
        #expect(facts.tlsServerEndPointHash == Array(SHA256.hash(data: try der(PEMSamples.certificate))))
    }

    @Test func `an RSA key is in PKCS 1 format`() throws {
        let facts = try #require(CertificateFacts(der: try der(PEMSamples.rsaCertificate)))
        #expect(facts.key?.kind == .rsa)
        #expect(facts.key?.bits == 2_048)
        #expect(facts.publicKey.prefix(4) == Data([0x30, 0x82, 0x01, 0x0A]))
        #expect(facts.spki.suffix(facts.publicKey.count) == facts.publicKey)
    }

    @Test func `the names of a certificate are read, even if its signature is not supported`() throws {
        let valid = try TestCertificates.shared.get().valid
        #expect(CertificateFacts.names(in: Data(valid.chain[0])) == ["localhost", "127.0.0.1", "::1"])
        #expect(CertificateFacts.names(in: Data(UnsupportedSamples.der(UnsupportedSamples.pssServer))) == ["a.example"])
        #expect(CertificateFacts.names(in: try der(PEMSamples.certificate)) == [])
        #expect(CertificateFacts.names(in: Data([0x30, 0])) == [])
    }

    @Test func `an invalid certificate has no facts`() throws {
        #expect(CertificateFacts(der: Data()) == nil)
        #expect(CertificateFacts(der: Data([0x30, 0])) == nil)
        #expect(CertificateFacts(der: try der(PEMSamples.certificate).dropLast()) == nil)
    }
}
