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
    ///   - roots: DER; empty for the system's.
    /// - Returns: Nil if the server is to be trusted.
    @concurrent
    package static func failure(of chain: [[UInt8]], host: String, roots: [Data]) async -> TrustFailure? {
        let certificates = chain.compactMap { try? Certificate(derEncoded: $0) }
        guard certificates.count == chain.count, let leaf = certificates.first else {
            return TrustFailure(kind: .serverCertificateUntrusted, message: "the certificate of \(host) is malformed")
        }
        let store = TrustRoots.store(of: roots)
        let isAddress = HostName.isAddress(host)
        let name = HostName.unbracketed(host)
        var verifier = Verifier(rootCertificates: store) {
            RFC5280Policy()
            ServerIdentityPolicy(serverHostname: isAddress ? nil : name, serverIP: isAddress ? name : nil)
            ServerCertificatePolicy()
        }
        let issuers = CertificateStore(certificates.dropFirst())
        guard case .couldNotValidate(let rejected) = await verifier.validate(leaf: leaf, intermediates: issuers) else {
            return nil
        }
        if let failure = rejected.first {
            return explain(failure.chain, "\(failure.policyFailureReason)", leaf, host)
        }
        return explainUnanchored(certificates, leaf, host)
    }

    /// The chain leads to a trusted root, but something in it is not as it should be.
    private static func explain(
        _ chain: UnverifiedCertificateChain, _ reason: String, _ leaf: Certificate, _ host: String
    ) -> TrustFailure {
        let now = Date()
        for certificate in chain {
            let subject = certificate == leaf ? "the certificate of \(host)" : "the certificate of \(host)'s issuer"
            if certificate.notValidAfter < now {
                return TrustFailure(
                    kind: .serverCertificateHasBadDate,
                    message: "\(subject) expired on \(certificate.notValidAfter.formatted(.iso8601))"
                )
            }
            if certificate.notValidBefore > now {
                return TrustFailure(
                    kind: .serverCertificateNotYetValid,
                    message: "\(subject) is not valid before \(certificate.notValidBefore.formatted(.iso8601)); is the clock right?"
                )
            }
        }
        return TrustFailure(
            kind: .serverCertificateUntrusted, message: "the certificate of \(host) is not to be trusted: \(reason)"
        )
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
            message: "the certificate of \(host) leads to \(end.issuer), which is not a trusted root; SSL_CERT_FILE names a file of roots"
        )
    }
}
