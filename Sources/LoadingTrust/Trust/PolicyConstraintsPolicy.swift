// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// Checks that a chain complies with the policies that its CAs require (RFC 5280, section 6.1).
///
/// The user accepts all policies (the initial set is any-policy), and no requirement applies at the start. Only a CA can require
/// that all certificates below it share a policy. Therefore, the only property of the RFC's policy tree that matters is whether its
/// lowest level is empty; other levels are not stored.
struct PolicyConstraintsPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        CertificatePolicies.Name.policies, CertificatePolicies.Name.mappings, CertificatePolicies.Name.constraints,
        CertificatePolicies.Name.inhibitAny,
    ]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        do {
            return try Self.satisfiesPolicies(chain.dropLast().reversed())
                ? .meetsPolicy : .failsToMeetPolicy(reason: "it has none of the policies that a CA requires")
        } catch {
            return .failsToMeetPolicy(reason: "the policies of a certificate are malformed")
        }
    }

    /// Whether a path, from below the root to the server's certificate, has the policies that it requires.
    private static func satisfiesPolicies(_ path: [Certificate]) throws -> Bool {
        let any = CertificatePolicies.Name.any
        /// Section 6.1.2: the number of certificates before a policy is required, and before mappings and any-policy are ignored.
        var (explicitPolicy, policyMapping, anyPolicy) = (path.count + 1, path.count + 1, path.count + 1)
        /// The expected policies of all nodes at the lowest level of the valid policy tree.
        var expected: Set = [any]
        for (index, certificate) in path.enumerated() {
            let isLast = index == path.count - 1
            let isSelfIssued = certificate.issuer == certificate.subject
            let said = try CertificatePolicies(certificate.extensions)
            // Section 6.1.3, (d) to (f).
            var valid = expected.contains(any) ? said.policies.subtracting([any]) : said.policies.intersection(expected)
            if said.policies.contains(any), anyPolicy > 0 || (isSelfIssued && !isLast) { valid.formUnion(expected) }
            if explicitPolicy == 0, valid.isEmpty { return false }
            // Section 6.1.5, (a), (b) and (g).
            if isLast { return !valid.isEmpty || (explicitPolicy > 1 && said.requireExplicitPolicy != 0) }
            // Section 6.1.4, (b), (h), (i) and (j).
            expected = policyMapping > 0 ? mapped(valid, said.mappings) : valid.subtracting(said.mappings.keys)
            let step = isSelfIssued ? 0 : 1
            explicitPolicy = min(max(explicitPolicy - step, 0), said.requireExplicitPolicy ?? .max)
            policyMapping = min(max(policyMapping - step, 0), said.inhibitPolicyMapping ?? .max)
            anyPolicy = min(max(anyPolicy - step, 0), said.inhibitAnyPolicy ?? .max)
        }
        return true
    }

    private static func mapped(
        _ valid: Set<ASN1ObjectIdentifier>, _ mappings: [ASN1ObjectIdentifier: Set<ASN1ObjectIdentifier>]
    ) -> Set<ASN1ObjectIdentifier> {
        let isAny = valid.contains(CertificatePolicies.Name.any)
        var expected = valid.subtracting(mappings.keys)
        for (policy, others) in mappings where isAny || valid.contains(policy) { expected.formUnion(others) }
        return expected
    }
}
