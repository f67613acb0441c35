//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials
import LoadingModel
import SwiftASN1
import X509

/// Decides whether a chain of certificates proves that a server is who the URL says (RFC 5280, RFC 9525), and if not, why not.
package enum TrustCheck {
    /// - Parameters:
    ///   - chain: DER, as the server sent it, its own certificate first.
    ///   - host: The name or address that the certificate must be for.
    ///   - roots: DER; empty for the system's.
    /// - Returns: Nil if the server is to be trusted.
    @concurrent
    package static func failure(of chain: [[UInt8]], host: String, roots: [Data]) async -> TrustFailure? {
        let certificates = chain.compactMap { try? Certificate(derEncoded: $0) }
        guard certificates.count == chain.count, let leaf = certificates.first else {
            return TrustFailure(kind: .serverCertificateUntrusted, message: "the certificate of \(host) is malformed")
        }
        if TrustRoots.isNamed(leaf, in: roots) { return await failure(ofNamed: leaf, host) }
        var verifier = Verifier(rootCertificates: TrustRoots.store(of: roots)) {
            RFC5280Policy()
            identityPolicy(host)
            ServerCertificatePolicy()
        }
        let issuers = CertificateStore(certificates.dropFirst())
        guard case .couldNotValidate(let rejected) = await verifier.validate(leaf: leaf, intermediates: issuers) else {
            return nil
        }
        if let failure = rejected.first {
            return explain(failure.chain, "\(failure.policyFailureReason)", leaf, host)
        }
        if TrustRoots.containsUnreadable(roots) {
            return TrustFailure(
                kind: .secureConnectionFailed,
                message: "a certificate that the session is to trust cannot be read, and the others do not vouch for \(host)"
            )
        }
        return explainUnanchored(certificates, leaf, host)
    }

    /// The server's own certificate was named as trusted: only its name, its dates and its use are left to check.
    ///
    /// `RFC5280Policy` would take it for a root, and refuse it unless it were that of an authority, which a server's should
    /// not be.
    private static func failure(ofNamed leaf: Certificate, _ host: String) async -> TrustFailure? {
        if let failure = dateFailure(of: leaf, "the certificate of \(host)", now: Date()) { return failure }
        var verifier = Verifier(rootCertificates: CertificateStore([leaf])) {
            identityPolicy(host)
            ServerCertificatePolicy()
        }
        guard case .couldNotValidate(let rejected) = await verifier.validate(leaf: leaf, intermediates: CertificateStore())
        else { return nil }
        let reason = rejected.first.map { "\($0.policyFailureReason)" }
        return untrusted(host, reason ?? "it has critical extensions that are not understood")
    }

    private static func identityPolicy(_ host: String) -> ServerIdentityPolicy {
        let name = HostName.unbracketed(host)
        return HostName.isAddress(host)
            ? ServerIdentityPolicy(serverHostname: nil, serverIP: name)
            : ServerIdentityPolicy(serverHostname: name, serverIP: nil)
    }

    /// The chain leads to a trusted root, but something in it is not as it should be.
    private static func explain(
        _ chain: UnverifiedCertificateChain, _ reason: String, _ leaf: Certificate, _ host: String
    ) -> TrustFailure {
        let now = Date()
        for certificate in chain {
            let subject = certificate == leaf ? "the certificate of \(host)" : "the certificate of \(host)'s issuer"
            if let failure = dateFailure(of: certificate, subject, now: now) { return failure }
        }
        return untrusted(host, reason)
    }

    private static func untrusted(_ host: String, _ reason: String) -> TrustFailure {
        TrustFailure(kind: .serverCertificateUntrusted, message: "the certificate of \(host) is not to be trusted: \(reason)")
    }

    private static func dateFailure(of certificate: Certificate, _ subject: String, now: Date) -> TrustFailure? {
        if certificate.notValidAfter < now {
            let message = "\(subject) expired on \(certificate.notValidAfter.formatted(.iso8601))"
            return TrustFailure(kind: .serverCertificateHasBadDate, message: message)
        }
        if certificate.notValidBefore > now {
            let message = "\(subject) is not valid before \(certificate.notValidBefore.formatted(.iso8601)); is the clock right?"
            return TrustFailure(kind: .serverCertificateNotYetValid, message: message)
        }
        return nil
    }

    /// No chain leads to a trusted root.
    private static func explainUnanchored(_ sent: [Certificate], _ leaf: Certificate, _ host: String) -> TrustFailure {
        if leaf.issuer == leaf.subject {
            return TrustFailure(
                kind: .serverCertificateUntrusted,
                message: "the certificate of \(host) is signed by itself, and is not among the trusted roots"
            )
        }
        var path = [leaf]
        while let tip = path.last, tip.issuer != tip.subject,
            let issuer = sent.first(where: { $0.subject == tip.issuer && !path.contains($0) })
        {
            path.append(issuer)
        }
        guard path.count > 1, let end = path.last else {
            return TrustFailure(
                kind: .serverCertificateUntrusted,
                message: "the server sent its certificate without that of its issuer, \(leaf.issuer), which is not known"
            )
        }
        return TrustFailure(
            kind: .serverCertificateHasUnknownRoot,
            message: "the certificate of \(host) leads to \(end.issuer), which is not a trusted root; "
                + "SSL_CERT_FILE names a file of roots"
        )
    }
}
