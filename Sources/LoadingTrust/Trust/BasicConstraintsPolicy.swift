// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// Checks that each issuer in a chain is a CA that may sign certificates (RFC 5280, sections 4.2.1.3, 4.2.1.9 and 6.1.4, (k) to (n)).
///
/// The last certificate may be that of a CA as well: these rules are for issuers.
struct BasicConstraintsPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        let certificates = Array(chain)
        if certificates.count == 1, let root = certificates.first, root.version != .v1, !root.isMarkedAsCA {
            return .failsToMeetPolicy(reason: "it is a root, but not marked as that of a CA")
        }
        var count = 0
        for (index, issuer) in certificates.enumerated().dropFirst() {
            if let fault = Self.fault(of: issuer, above: count, isRoot: index == certificates.count - 1) {
                return .failsToMeetPolicy(reason: fault)
            }
            if !issuer.isSelfIssued { count += 1 }
        }
        return .meetsPolicy
    }

    /// Returns why a certificate may not be the issuer of another one.
    ///
    /// - Parameters:
    ///   - issuer: The certificate.
    ///   - count: The number of CAs below it, without those that are self-issued.
    ///   - isRoot: Whether the chain ends with it.
    /// - Returns: The reason; nil if it may be.
    static func fault(of issuer: Certificate, above count: Int, isRoot: Bool) -> String? {
        // Section 4.1.2.6: "the subject field MUST be populated with a non-empty distinguished name" in the certificate of a CA.
        if issuer.subject.isEmpty { return "an issuer has no name" }
        // Without extensions, only the user's trust in a root says that it is a CA.
        if issuer.version == .v1 { return isRoot ? nil : "an issuer's certificate has version 1, which only a root may have" }
        guard let constraints = try? issuer.extensions.basicConstraints, case .isCertificateAuthority(let most) = constraints
        else { return "an issuer is not a CA" }
        if let most, most < count { return "an issuer has \(count) CAs below it, but may only have \(most)" }
        return issuer.maySignCertificates ? nil : "an issuer's key is not for signing certificates (key usage)"
    }
}

extension Certificate {
    /// Whether the subject and the issuer are the same (RFC 5280, section 3.2), as they are when a CA renews its key.
    var isSelfIssued: Bool { subject == issuer }

    fileprivate var isMarkedAsCA: Bool {
        if case .isCertificateAuthority = try? extensions.basicConstraints { true } else { false }
    }

    /// Whether the key usage, if there is one, includes keyCertSign, its sixth bit.
    fileprivate var maySignCertificates: Bool {
        guard let usage = extensions[oid: .X509ExtensionID.keyUsage] else { return true }
        return (try? ASN1BitString(derEncoded: usage.value))?.bytes.first.map { $0 & 0x04 != 0 } ?? false
    }
}
