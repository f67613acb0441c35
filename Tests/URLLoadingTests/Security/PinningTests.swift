// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

@Suite struct PinningTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func trust(_ identity: TestCertificates.Identity, host: String = "localhost") throws -> SecTrust {
        try certificates.trust(identity, host: host)
    }

    @Test func `the default evaluator requires a trusted root and the right host`() throws {
        let evaluator = DefaultTrustEvaluator()
        try evaluator.evaluate(trust(certificates.valid), forHost: "localhost")
        for (identity, host) in [
            (certificates.valid, "other.example"), (certificates.expired, "localhost"),
            (certificates.unknownAuthority, "localhost"), (certificates.selfSigned, "localhost"),
        ] {
            #expect(throws: PinningError.self) { try evaluator.evaluate(trust(identity), forHost: host) }
        }
        try DefaultTrustEvaluator(validateHost: false).evaluate(trust(certificates.wrongHost), forHost: "localhost")
    }

    @Test func `the revocation evaluator checks everything except revocation`() throws {
        try RevocationTrustEvaluator().evaluate(trust(certificates.valid), forHost: "localhost")
        #expect(throws: PinningError.self) {
            try RevocationTrustEvaluator().evaluate(trust(certificates.expired), forHost: "localhost")
        }
    }

    @Test func `a certificate of the server or an issuer can be pinned`() throws {
        for index in 0...1 {
            let evaluator = PinnedCertificatesTrustEvaluator(
                certificates: [try certificates.certificate(certificates.valid, index)]
            )
            try evaluator.evaluate(trust(certificates.valid), forHost: "localhost")
        }
        let root = try #require(SecCertificateCreateWithData(nil, certificates.root as CFData))
        try PinnedCertificatesTrustEvaluator(certificates: [root]).evaluate(trust(certificates.valid), forHost: "localhost")
        let other = try certificates.certificate(certificates.unknownAuthority, 1)
        #expect(throws: PinningError.self) {
            try PinnedCertificatesTrustEvaluator(certificates: [other]).evaluate(trust(certificates.valid), forHost: "localhost")
        }
    }

    @Test func `a pinned certificate outside the chain does not count`() throws {
        let pinned = try certificates.certificate(certificates.unknownAuthority, 1)
        let padded = try certificates.valid.chain.indices.map { try certificates.certificate(certificates.valid, $0) } + [pinned]
        var made: SecTrust?
        #expect(SecTrustCreateWithCertificates(padded as CFArray, SecPolicyCreateSSL(true, nil), &made) == errSecSuccess)
        let trust = try #require(made)
        for isValidated in [true, false] {
            let root = try #require(SecCertificateCreateWithData(nil, certificates.root as CFData))
            if isValidated { _ = SecTrustSetAnchorCertificates(trust, [root] as CFArray) }
            let evaluator = PinnedCertificatesTrustEvaluator(
                certificates: [pinned], performDefaultValidation: isValidated, validateHost: isValidated
            )
            #expect(throws: PinningError.self) { try evaluator.evaluate(trust, forHost: "localhost") }
        }
    }

    @Test func `a self-signed certificate can be pinned`() throws {
        let own = try certificates.certificate(certificates.selfSigned, 0)
        let evaluator = PinnedCertificatesTrustEvaluator(certificates: [own], acceptSelfSignedCertificates: true)
        try evaluator.evaluate(trust(certificates.selfSigned), forHost: "localhost")
        #expect(throws: PinningError.self) { try evaluator.evaluate(trust(certificates.selfSigned), forHost: "other") }
        #expect(throws: PinningError.self) { try evaluator.evaluate(trust(certificates.valid), forHost: "localhost") }
    }

    @Test func `a public key can be pinned`() throws {
        let keys = try (0...1).map { try #require(try certificates.certificate(certificates.valid, $0).pinning.publicKey) }
        for key in keys {
            try PublicKeysTrustEvaluator(keys: [key]).evaluate(trust(certificates.valid), forHost: "localhost")
            #expect(throws: PinningError.self) {
                try PublicKeysTrustEvaluator(keys: [key]).evaluate(
                    trust(certificates.unknownAuthority), forHost: "localhost"
                )
            }
        }
        // The same key in another chain, with validation turned off.
        let loose = PublicKeysTrustEvaluator(keys: [keys[0]], performDefaultValidation: false, validateHost: false)
        try loose.evaluate(trust(certificates.missingIntermediate), forHost: "localhost")
    }

    @Test func `the samples of the guides work`() throws {
        let own = try certificates.certificate(certificates.valid, 0)
        #expect(PinningSamples.comparesCertificates(try trust(certificates.valid), with: SecCertificateCopyData(own) as Data))
        #expect(!PinningSamples.comparesCertificates(try trust(certificates.valid), with: certificates.root))
        #expect(!PinningSamples.comparesCertificates(try trust(certificates.expired), with: Data(certificates.expired.chain[0])))
        let key = try #require(SecCertificateCopyKey(own))
        #expect(PinningSamples.publicKeyHash(of: own) == certificates.pin(certificates.valid, 0))
        #expect(SecKeyGetBlockSize(key) == 32)
    }

    @Test func `a PKCS 12 file is imported as on Apple's platforms`() throws {
        let file = try certificates.client.pkcs12(password: "pass wörd")
        let (identity, chain) = try #require(PinningSamples.identity(in: file, password: "pass wörd"))
        #expect(chain.map { SecCertificateCopyData($0) as Data } == certificates.client.chain.map { Data($0) })
        var certificate: SecCertificate?
        #expect(SecIdentityCopyCertificate(identity, &certificate) == errSecSuccess)
        #expect(certificate == chain.first)
        #expect(PinningSamples.identity(in: file, password: "other") == nil)
    }
}

extension TestCertificates {
    /// A server's certificates as a trust object, with the test root as the only anchor.
    func trust(_ identity: Identity, host: String?) throws -> SecTrust {
        let chain = try identity.chain.indices.map { try certificate(identity, $0) }
        var made: SecTrust?
        let policy = SecPolicyCreateSSL(true, host.map { $0 as CFString })
        guard SecTrustCreateWithCertificates(chain as CFArray, policy, &made) == errSecSuccess, let made,
            let root = SecCertificateCreateWithData(kCFAllocatorDefault, root as CFData),
            SecTrustSetAnchorCertificates(made, [root] as CFArray) == errSecSuccess
        else { throw CocoaError(.featureUnsupported) }
        return made
    }

    func certificate(_ identity: Identity, _ index: Int) throws -> SecCertificate {
        guard let certificate = SecCertificateCreateWithData(nil, Data(identity.chain[index]) as CFData) else {
            throw CocoaError(.coderReadCorrupt)
        }
        return certificate
    }

    /// The hash that `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum` computes for a P-256 key, in base64.
    ///
    /// The first bytes of such a SubjectPublicKeyInfo are constant, and locate it in the certificate.
    func pin(_ identity: Identity, _ index: Int) -> String? {
        let der = Data(identity.chain[index])
        let start = Data([0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D])
        guard let range = der.range(of: start) else { return nil }
        return Self.sha256(der[range.lowerBound..<(range.lowerBound + 91)]).base64EncodedString()
    }
}
