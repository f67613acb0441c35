// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import LoadingTrust
import Testing

/// Certificates with signatures that cannot be verified: they are shown, explained, and do not affect others.
@Suite struct UnsupportedSignatureTests {
    private let root = UnsupportedSamples.der(UnsupportedSamples.root)
    private let server = UnsupportedSamples.der(UnsupportedSamples.server)
    private let pssServer = UnsupportedSamples.der(UnsupportedSamples.pssServer)
    private let oldServer = UnsupportedSamples.der(UnsupportedSamples.oldServer)

    private func failure(_ chain: [[UInt8]], roots: [Data]) async -> TrustFailure? {
        await TrustCheck.failure(of: chain, host: "a.example", roots: roots)
    }

    @Test func `the reason names RSASSA-PSS, wherever it is in the chain`() async throws {
        let other = try Signer("Other")
        for (name, chain) in [("own", [pssServer]), ("root, sent", [server, root]), ("root, not sent", [server])] {
            let failure = await failure(chain, roots: [other.data, Data(root)])
            #expect(failure?.reason == .unsupported, "\(name)")
            #expect(failure?.kind == .serverCertificateUntrusted, "\(name)")
            #expect(
                failure?.message.contains("RSASSA-PSS, which is not supported") == true,
                "\(name): \(failure?.message ?? "trusted")")
        }
        let old = await failure([oldServer], roots: [other.data])
        #expect(old?.reason == .weakSignature)
        #expect(old?.message.contains("SHA-1") == true, "\(old?.message ?? "trusted")")
    }

    @Test func `an algorithm that is not known is named by its number`() async throws {
        let root = try Signer("Root")
        let failure = await failure([try unknown(Signer.server(under: root))], roots: [root.data])
        #expect(failure?.reason == .unsupported)
        #expect(failure?.message.contains("1.2.840.10045.4.3.126") == true, "\(failure?.message ?? "trusted")")
    }

    /// Returns a certificate with another number in place of that of ECDSA with SHA-256.
    private func unknown(_ signer: Signer) throws -> [UInt8] {
        let name: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2]
        var bytes = signer.data
        for _ in 0..<2 {
            let place = try #require(bytes.firstRange(of: name))
            bytes[place.upperBound - 1] = 126
        }
        return Array(bytes)
    }

    @Test func `a root that cannot be used does not affect the others`() async throws {
        let good = try Signer("Good")
        let chain = [try Signer.server(under: good).der]
        #expect(await failure(chain, roots: [Data(root), good.data]) == nil)
        // Nor does it change why another server is not trusted.
        let stranger = try Signer("Stranger")
        let own = try Signer("Own", .notCertificateAuthority, names: [.dnsName("a.example")])
        let rows: [([[UInt8]], TrustFailure.Reason)] = [
            ([try Signer.server(under: stranger).der, stranger.der], .unknownRoot), ([own.der], .selfSigned),
            ([try Signer.server(under: stranger).der], .missingIssuer),
        ]
        for (chain, reason) in rows { #expect(await failure(chain, roots: [Data(root), good.data])?.reason == reason) }
    }

    @Test func `a file's other certificates are read`() throws {
        let directory = try TemporaryDirectory()
        let good = try TestCertificates.shared.get().rootPEM
        let damaged = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"
        let open = "-----BEGIN CERTIFICATE-----\nMIIB\n"
        try directory.write(Array([UnsupportedSamples.root + "\n", damaged, open, good].joined().utf8), to: "roots.pem")
        #expect(TrustRoots.certificates(inFiles: [directory.path + "/roots.pem"], directories: []).count == 1)
        let roots = TrustRoots.roots(file: directory.path + "/roots.pem", directories: [])
        #expect(roots == [Data(root), try TestCertificates.shared.get().root])
    }

    @Test func `such certificates have properties, and can be pinned`() throws {
        for (bytes, name, bits) in [(root, "PSS Root", 2_048), (pssServer, "Server", 256), (oldServer, "localhost", 256)] {
            let facts = try #require(CertificateFacts(der: Data(bytes)))
            #expect(facts.commonName == name)
            #expect(facts.key?.bits == bits)
            #expect(facts.notBefore == Date(timeIntervalSince1970: 1_577_836_800))
            #expect(facts.notAfter == Date(timeIntervalSince1970: 4_733_510_400))
        }
        let pin = try #require(CertificateFacts(der: Data(oldServer))).spkiSHA256
        #expect(pin.map { String($0, radix: 16) }.joined().hasPrefix("13eff0526498be8e9f58357ea9648b5b5a67dcae"))
        for (bytes, isStrong) in [(root, true), (pssServer, true), (oldServer, false)] {
            let pins = TrustPins(leaf: [try #require(CertificateFacts(der: Data(bytes))).spkiSHA256])
            #expect(TrustCheck.failure(ofTrusted: [bytes], host: "h", requiresStrongKeys: false, pins: pins) == nil)
            let failure = TrustCheck.failure(ofTrusted: [bytes], host: "h", requiresStrongKeys: true, pins: pins)
            #expect(failure?.reason == (isStrong ? nil : .weakSignature))
        }
    }

    @Test func `a certificate with an unknown kind of key has no key`() throws {
        // The number of the kind of an EC key is changed.
        var bytes = Data(oldServer)
        let place = try #require(bytes.firstRange(of: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1] as [UInt8]))
        bytes[place.upperBound - 1] = 126
        let facts = try #require(CertificateFacts(der: bytes))
        #expect(facts.key == nil)
        #expect(facts.commonName == "localhost")
    }
}
