// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import SwiftASN1
import X509

/// Decides whether a certificate chain proves a server's identity (RFC 5280, RFC 9525), and if not, explains why.
package enum TrustCheck {
    @concurrent
    package static func judge(_ question: TrustQuestion) async -> TrustJudgement {
        var judgement = await judgeChain(question)
        if judgement.failure == nil {
            judgement.failure = question.pins.failure(of: judgement.chain, host: TrustExplanation.name(of: question))
        }
        return judgement
    }

    /// Checks a chain that the app has accepted: App Transport Security still forbids weak keys and signatures, and checks pinned
    /// keys.
    ///
    /// Only the server's own certificate and its issuers are checked, because no chain was validated.
    package static func failure(
        ofTrusted chain: [Data], host: String, requiresStrongKeys: Bool, pins: TrustPins
    ) -> TrustFailure? {
        if !requiresStrongKeys && pins.isEmpty { return nil }
        let path = path(through: chain)
        if requiresStrongKeys {
            let policy = ServerCertificatePolicy(use: .server, requiresStrongKeys: true)
            for bytes in path.map(Array.init) {
                guard let certificate = try? Certificate(derEncoded: bytes) else {
                    // The strength of a signature does not depend on whether it can be verified.
                    if let fields = CertificateFields(bytes), fields.key != nil, fields.signature.isWeak == false { continue }
                    return TrustExplanation.unusable(bytes, host)
                }
                if let fault = policy.weakness(of: certificate, isRoot: certificate.issuer == certificate.subject) {
                    return TrustExplanation.untrusted(fault, host)
                }
            }
        }
        return pins.failure(of: path, host: host)
    }

    /// Returns the presented certificates that form a path, from the server's own to the last known issuer.
    ///
    /// Certificates that did not sign the previous certificate, or must not sign certificates, are left out.
    package static func path(through chain: [Data]) -> [Data] {
        let chain = IssuerCandidates.limited(chain)
        var path = Array(chain.prefix(1))
        var candidates: [(bytes: Data, certificate: Certificate)] = chain.dropFirst().compactMap { bytes in
            (try? Certificate(derEncoded: Array(bytes))).map { (bytes, $0) }
        }
        var tip = path.first.flatMap { try? Certificate(derEncoded: Array($0)) }
        var triesLeft = IssuerCandidates.maximumTries
        while let current = tip, current.issuer != current.subject,
            let next = candidates.firstIndex(where: { _, issuer in
                let isRoot = issuer.isSelfIssued
                guard issuer.subject == current.issuer, triesLeft > 0,
                    BasicConstraintsPolicy.fault(of: issuer, above: path.count - 1, isRoot: isRoot) == nil
                else { return false }
                triesLeft -= 1
                return issuer.publicKey.isValidSignature(current.signature, for: current)
            })
        {
            let issuer = candidates.remove(at: next)
            path.append(issuer.bytes)
            tip = issuer.certificate
        }
        return path
    }

    private static func judgeChain(_ question: TrustQuestion) async -> TrustJudgement {
        let explanation = TrustExplanation(question)
        var certificates: [Certificate] = []
        var unsupported: [UInt8]?
        let limited = IssuerCandidates.limited(question.chain)
        for bytes in limited.map(Array.init) {
            if let certificate = try? Certificate(derEncoded: bytes) {
                certificates.append(certificate)
            } else if !certificates.isEmpty, CertificateFields(bytes) != nil {
                // Its kind of key or signature is not supported; the certificate may be an old root that is not needed.
                unsupported = unsupported ?? bytes
            } else {
                return TrustJudgement(failure: TrustExplanation.unusable(bytes, explanation.host), chain: [])
            }
        }
        guard let leaf = certificates.first else {
            return TrustJudgement(failure: TrustExplanation.unusable([], explanation.host), chain: [])
        }
        if TrustRoots.isConfigured(leaf, for: question) { return await judge(named: leaf, question, explanation) }
        var verifier = Verifier(rootCertificates: TrustRoots.store(for: question)) {
            VersionPolicy()
            ExpiryPolicy(now: explanation.now)
            BasicConstraintsPolicy()
            HostNamesPolicy(hosts: question.hosts)
            ServerCertificatePolicy(use: question.use, requiresStrongKeys: question.requiresStrongKeys)
            PolicyConstraintsPolicy()
            NameConstraintsPolicy(hosts: question.hosts)
        }
        let understood = verifier.policy.verifyingCriticalExtensions
        if !leaf.hasCriticalExtensions(onlyOf: understood) {
            return TrustJudgement(failure: explanation.notUnderstood(isLeaf: true), chain: [])
        }
        let issuers = IssuerCandidates(certificates.dropFirst())
        switch await verifier.validate(leaf: leaf, intermediates: CertificateStore(custom: issuers)) {
        case .validCertificate(let chain): return TrustJudgement(failure: nil, chain: chain.map(der))
        case .couldNotValidate(let rejected):
            if let first = rejected.first {
                return TrustJudgement(failure: explanation.rejected(first.chain, "\(first.policyFailureReason)"), chain: [])
            }
            if let unsupported {
                return TrustJudgement(failure: TrustExplanation.unusable(unsupported, explanation.host), chain: [])
            }
            if issuers.isExhausted { return TrustJudgement(failure: explanation.exceeds(.signatures), chain: []) }
            let isCut = limited.count > IssuerCandidates.maximumCount && Set(question.chain).count > limited.count
            if isCut { return TrustJudgement(failure: explanation.exceeds(.certificates), chain: []) }
            var failure = explanation.noTrustedRoot(certificates, leaf, understood: understood)
            if [.missingIssuer, .unknownRoot].contains(failure.reason) {
                failure.issuerURLs = IssuerAccess.urls(above: path(through: limited))
            }
            return TrustJudgement(failure: failure, chain: [])
        }
    }

    /// Judges a server certificate that is itself configured as trusted: checks only its name, dates and use.
    ///
    /// `BasicConstraintsPolicy` would treat the certificate as a root and reject it unless it is a CA, which a server's certificate
    /// should not be.
    private static func judge(
        named leaf: Certificate, _ question: TrustQuestion, _ explanation: TrustExplanation
    ) async -> TrustJudgement {
        if let failure = explanation.dateFailure(of: leaf, "the certificate of \(explanation.host)") {
            return TrustJudgement(failure: failure, chain: [])
        }
        var verifier = Verifier(rootCertificates: CertificateStore([leaf])) {
            HostNamesPolicy(hosts: question.hosts)
            ServerCertificatePolicy(use: question.use, requiresStrongKeys: question.requiresStrongKeys)
            PolicyConstraintsPolicy()
        }
        guard case .couldNotValidate(let rejected) = await verifier.validate(leaf: leaf, intermediates: CertificateStore())
        else { return TrustJudgement(failure: nil, chain: [der(leaf)]) }
        let failure = rejected.first.map { explanation.rejected($0.chain, "\($0.policyFailureReason)") }
        return TrustJudgement(failure: failure ?? explanation.notUnderstood(isLeaf: true), chain: [])
    }

    private static func der(_ certificate: Certificate) -> Data {
        var serializer = DER.Serializer()
        guard (try? serializer.serialize(certificate)) != nil else { return Data() }
        return Data(serializer.serializedBytes)
    }
}

extension Certificate {
    /// Whether each critical extension, if there are any, is understood.
    ///
    /// If not, the certificate must be rejected (RFC 5280, section 4.2).
    func hasCriticalExtensions(onlyOf understood: [ASN1ObjectIdentifier]) -> Bool {
        extensions.allSatisfy { !$0.critical || understood.contains($0.oid) }
    }
}
