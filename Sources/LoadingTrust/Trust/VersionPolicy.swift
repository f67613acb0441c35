// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// Checks that no certificate of version 1 has extensions (RFC 5280, section 4.1.2.9).
struct VersionPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = []

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        chain.allSatisfy { $0.version != .v1 || $0.extensions.isEmpty }
            ? .meetsPolicy : .failsToMeetPolicy(reason: "a certificate of version 1 has extensions")
    }
}
