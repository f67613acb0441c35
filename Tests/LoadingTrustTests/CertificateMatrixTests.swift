// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel
import LoadingTestKit
import LoadingTrust
import SwiftASN1
import Testing
import X509

/// Generated certificates, each with a different defect.
@Suite struct CertificateMatrixTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func question(_ identity: TestCertificates.Identity, _ host: String = "localhost") -> TrustQuestion {
        var question = TrustQuestion(identity.chain.map { Data($0) }, hosts: [host])
        question.roots = [certificates.root]
        return question
    }

    @Test func `each bad certificate has its error and reason`() async {
        let rows: [(String, TestCertificates.Identity, LoadError.Kind, TrustFailure.Reason)] = [
            ("expired", certificates.expired, .serverCertificateHasBadDate, .expired),
            ("not yet valid", certificates.notYetValid, .serverCertificateNotYetValid, .notYetValid),
            ("wrong host", certificates.wrongHost, .serverCertificateUntrusted, .wrongHost),
            ("self-signed", certificates.selfSigned, .serverCertificateUntrusted, .selfSigned),
            ("unknown authority", certificates.unknownAuthority, .serverCertificateHasUnknownRoot, .unknownRoot),
            ("missing intermediate", certificates.missingIntermediate, .serverCertificateUntrusted, .missingIssuer),
            ("impostor of the issuer", certificates.impostorIssuer, .serverCertificateHasUnknownRoot, .unknownRoot),
            ("broken name constraint", certificates.nameConstraintViolated, .serverCertificateUntrusted, .rules),
            ("weak key", certificates.weakKey, .serverCertificateUntrusted, .weakKey),
            ("for clients only", certificates.clientOnly, .serverCertificateUntrusted, .wrongUse),
        ]
        for (name, identity, kind, reason) in rows {
            let judgement = await TrustCheck.judge(question(identity))
            #expect(judgement.failure?.kind == kind, "\(name)")
            #expect(judgement.failure?.reason == reason, "\(name): \(judgement.failure?.message ?? "trusted")")
            #expect(judgement.chain.isEmpty, "\(name)")
        }
    }

    @Test func `good certificates are trusted, and the validated chain ends in the root`() async {
        for (identity, host) in [
            (certificates.valid, "localhost"), (certificates.valid, "127.0.0.1"), (certificates.valid, "[::1]"),
            (certificates.nameConstraintSatisfied, "localhost"), (certificates.nameConstraintSatisfied, "127.0.0.1"),
            (certificates.wildcard, "a.example.com"),
        ] {
            let judgement = await TrustCheck.judge(question(identity, host))
            #expect(judgement.failure == nil, "\(host)")
            #expect(judgement.chain == identity.chain.map { Data($0) } + [certificates.root])
        }
    }

    @Test(arguments: ["example.com", "a.b.example.com", "a.example.org", "127.0.0.1"])
    func `a wildcard matches exactly one label`(host: String) async {
        #expect(await TrustCheck.judge(question(certificates.wildcard, host)).failure?.reason == .wrongHost)
    }

    @Test func `the certificate must match every requested host`() async {
        var both = question(certificates.valid)
        both.hosts = ["localhost", "other.example"]
        #expect(await TrustCheck.judge(both).failure?.reason == .wrongHost)
        both.hosts = []
        #expect(await TrustCheck.judge(both).failure == nil)
    }

    @Test func `extra roots are trusted in addition to the system's, or exclusively`() async throws {
        let stranger = Data(try #require(certificates.unknownAuthority.chain.last))
        var strange = question(certificates.unknownAuthority)
        strange.extraRoots = [stranger]
        #expect(await TrustCheck.judge(strange).failure == nil)
        var ours = question(certificates.valid)
        ours.extraRoots = [stranger]
        #expect(await TrustCheck.judge(ours).failure == nil)
        ours.trustsOnlyExtraRoots = true
        #expect(await TrustCheck.judge(ours).failure?.kind == .serverCertificateHasUnknownRoot)
        ours.extraRoots = []
        #expect(await TrustCheck.judge(ours).failure?.kind == .serverCertificateHasUnknownRoot)
        ours.extraRoots = [Data(certificates.valid.chain[0])]
        #expect(await TrustCheck.judge(ours).failure == nil)
    }

    @Test func `an empty exclusive list of roots trusts nothing`() async throws {
        let found = TrustRoots.certificates(inFiles: ["/etc/ssl/certs/ca-certificates.crt"], directories: [])
        for root in found.prefix(3) {
            var serializer = DER.Serializer()
            try serializer.serialize(root)
            var question = TrustQuestion([Data(serializer.serializedBytes)], hosts: [])
            question.use = .anything
            question.date = root.notValidAfter.addingTimeInterval(-86_400)
            #expect(await TrustCheck.judge(question).failure == nil)
            question.trustsOnlyExtraRoots = true
            #expect(await TrustCheck.judge(question).failure?.reason == .selfSigned)
        }
    }

    @Test func `a certificate is evaluated at the given date`() async {
        var past = question(certificates.expired)
        past.date = Date(timeIntervalSinceNow: -7 * 86_400)
        #expect(await TrustCheck.judge(past).failure == nil)
        var future = question(certificates.valid)
        future.date = Date(timeIntervalSinceNow: 3 * 365 * 86_400)
        #expect(await TrustCheck.judge(future).failure?.reason == .expired)
    }

    @Test func `a client certificate is evaluated for client use`() async {
        var question = question(certificates.client)
        question.hosts = []
        question.use = .client
        #expect(await TrustCheck.judge(question).failure == nil)
        question.use = .server
        #expect(await TrustCheck.judge(question).failure?.kind == .serverCertificateUntrusted)
        question.use = .anything
        #expect(await TrustCheck.judge(question).failure == nil)
    }

    @Test func `pins are compared with the validated chain`() async throws {
        let chain = certificates.valid.chain.map { Data($0) } + [certificates.root]
        let keys = try chain.map { try #require(CertificateFacts(der: $0)).spkiSHA256 }
        let foreign = Data(repeating: 7, count: 32)
        let rows: [(TrustPins, Bool)] = [
            (TrustPins(leaf: [keys[0]]), true), (TrustPins(leaf: [foreign, keys[0]]), true), (TrustPins(leaf: [foreign]), false),
            (TrustPins(leaf: [keys[1]]), false), (TrustPins(ca: [keys[1]]), true), (TrustPins(ca: [keys[2]]), true),
            (TrustPins(ca: [keys[0]]), false), (TrustPins(leaf: [keys[0]], ca: [keys[2]]), true),
            (TrustPins(leaf: [keys[0]], ca: [foreign]), false), (TrustPins(leaf: [foreign], ca: [keys[2]]), false),
        ]
        for (pins, isMet) in rows {
            let failure = await TrustCheck.failure(
                of: certificates.valid.chain, host: "localhost", roots: [certificates.root], pins: pins
            )
            #expect(failure?.reason == (isMet ? nil : .pins), "\(pins)")
            // The server did not present the root.
            let presented = TrustCheck.failure(
                ofTrusted: certificates.valid.chain, host: "localhost", requiresStrongKeys: true, pins: pins
            )
            #expect((presented == nil) == (isMet && pins.ca != [keys[2]]), "\(pins)")
        }
    }

    @Test func `a pinned certificate outside the validated chain does not count`() async throws {
        let pinned = certificates.unknownAuthority.chain[1]
        let pins = TrustPins(ca: [try #require(CertificateFacts(der: Data(pinned))).spkiSHA256])
        let padded = certificates.valid.chain + [pinned]
        #expect(TrustCheck.path(through: padded.map { Data($0) }) == certificates.valid.chain.map { Data($0) })
        let forged = certificates.impostorIssuer.chain.map { Data($0) }
        #expect(TrustCheck.path(through: forged) == [forged[0]])
        #expect(TrustCheck.path(through: [Data([1])]) == [Data([1])])
        #expect(TrustCheck.path(through: []) == [])
        #expect(TrustCheck.failure(ofTrusted: padded, host: "h", requiresStrongKeys: false, pins: pins)?.reason == .pins)
        let failure = await TrustCheck.failure(of: padded, host: "localhost", roots: [certificates.root], pins: pins)
        #expect(failure?.reason == .pins)
    }

    @Test func `App Transport Security refuses weak keys even if the app trusts the certificate`() {
        let chain = certificates.weakKey.chain
        #expect(TrustCheck.failure(ofTrusted: chain, host: "h", requiresStrongKeys: true, pins: .none)?.reason == .weakKey)
        #expect(TrustCheck.failure(ofTrusted: chain, host: "h", requiresStrongKeys: false, pins: .none) == nil)
        let strong = certificates.selfSigned.chain
        #expect(TrustCheck.failure(ofTrusted: strong, host: "h", requiresStrongKeys: true, pins: .none) == nil)
    }
}
