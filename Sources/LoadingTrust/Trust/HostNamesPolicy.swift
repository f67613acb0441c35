// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import SwiftASN1
import X509

/// Checks that a certificate is valid for each of the hosts (RFC 9525, section 6).
struct HostNamesPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.subjectAlternativeName]
    let hosts: [String]

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        isMet(by: chain) ? .meetsPolicy : .failsToMeetPolicy(reason: "it is for another host")
    }

    func isMet(by chain: UnverifiedCertificateChain) -> Bool { hosts.allSatisfy { Self.isNamed($0, by: chain) } }

    private static func isNamed(_ host: String, by chain: UnverifiedCertificateChain) -> Bool {
        if HostName.isAddress(host) {
            // A zone (RFC 6874) names an interface of this machine and is not part of the address.
            let address = HostName.unbracketed(host).prefix { $0 != "%" }
            var policy = ServerIdentityPolicy(serverHostname: nil, serverIP: String(address))
            if case .meetsPolicy = policy.chainMeetsPolicyRequirements(chain: chain) { return true }
            return false
        }
        let name = lowercased(host)
        guard !name.isEmpty, name.allSatisfy({ $0 == UInt8(ascii: ".") || DomainName.isNameCharacter($0) }),
            let presented = try? chain.leaf.extensions.subjectAlternativeNames
        else { return false }
        return presented.contains { if case .dnsName(let other) = $0 { matches(lowercased(other), name) } else { false } }
    }

    /// Whether the names match (RFC 9525, section 6.3): they are the same, or they only differ in the first label and the
    /// certificate's first label is `*`.
    ///
    /// X509's implementation is not used, because it rejects underscores: some host names contain underscores, although RFC 1123
    /// does not permit them.
    private static func matches(_ presented: ArraySlice<UInt8>, _ host: ArraySlice<UInt8>) -> Bool {
        if presented == host { return true }
        guard presented.starts(with: "*.".utf8), let dot = host.firstIndex(of: UInt8(ascii: ".")), dot > host.startIndex
        else { return false }
        return presented.dropFirst() == host[dot...]
    }

    private static func lowercased(_ name: String) -> ArraySlice<UInt8> {
        DomainName.lowercased(DomainName.rootless(name.utf8[...]))[...]
    }
}
