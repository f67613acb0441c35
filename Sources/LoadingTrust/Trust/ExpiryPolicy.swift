// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SwiftASN1
import X509

/// Checks that all certificates of a chain, including its root, are valid at a time (RFC 5280, section 6.1.3, (a)).
struct ExpiryPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = []
    /// A time in whole seconds, as in certificates: a certificate is still valid in the second in which its validity ends.
    let now: Date

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        chain.allSatisfy { $0.notValidBefore <= now && now <= $0.notValidAfter }
            ? .meetsPolicy : .failsToMeetPolicy(reason: "a certificate is not valid at this time")
    }
}
