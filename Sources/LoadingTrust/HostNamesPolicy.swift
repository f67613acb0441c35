//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPRules
import SwiftASN1
import X509

/// Whether a certificate is for each of some hosts (RFC 9525, section 6).
struct HostNamesPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.subjectAlternativeName]
    let hosts: [String]

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        for host in hosts {
            var policy = Self.policy(host)
            let result = policy.chainMeetsPolicyRequirements(chain: chain)
            if case .failsToMeetPolicy = result { return result }
        }
        return .meetsPolicy
    }

    func isMet(by chain: UnverifiedCertificateChain) -> Bool {
        var policy = self
        if case .meetsPolicy = policy.chainMeetsPolicyRequirements(chain: chain) { return true }
        return false
    }

    private static func policy(_ host: String) -> ServerIdentityPolicy {
        let name = HostName.unbracketed(host)
        return HostName.isAddress(host)
            ? ServerIdentityPolicy(serverHostname: nil, serverIP: name)
            : ServerIdentityPolicy(serverHostname: name, serverIP: nil)
    }
}
