// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// Apple's requirements for server certificates and their issuers, beyond RFC 5280 and the name.
struct ServerCertificatePolicy: VerifierPolicy {
    struct Fault: Error {
        var reason: TrustFailure.Reason
        var text: String
    }

    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        .X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage, .X509ExtensionID.extendedKeyUsage,
    ]
    let use: TrustQuestion.Use
    let requiresStrongKeys: Bool

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        if let fault = fault(of: Array(chain)) { return .failsToMeetPolicy(reason: fault.text) }
        return .meetsPolicy
    }

    /// Returns the first fault of a chain.
    ///
    /// The chain leads from the certificate in question to a root, or consists of a single certificate that is itself a root.
    func fault(of chain: [Certificate]) -> Fault? {
        guard let leaf = chain.first else { return Fault(reason: .malformed, text: "there is no certificate") }
        let isItsOwnRoot = chain.count == 1
        if use == .server, let fault = nameFault(of: leaf) { return fault }
        for certificate in chain.dropLast(isItsOwnRoot ? 0 : 1) {
            if let fault = useFault(of: certificate) { return fault }
            if let fault = weakness(of: certificate, isRoot: isItsOwnRoot) { return fault }
        }
        return nil
    }

    private func nameFault(of leaf: Certificate) -> Fault? {
        guard let names = try? leaf.extensions.subjectAlternativeNames, !names.isEmpty else {
            return Fault(
                reason: .wrongHost, text: "it names its host only in the common name, not as a subject alternative name"
            )
        }
        return names.contains(.dnsName("*")) ? Fault(reason: .wrongHost, text: "it claims every host (*)") : nil
    }

    private func useFault(of certificate: Certificate) -> Fault? {
        do {
            guard let usages = try certificate.extensions.extendedKeyUsage else { return nil }
            switch use {
            case .anything: return nil
            case .server where usages.contains(.serverAuth) || usages.contains(.any): return nil
            case .client where usages.contains(.clientAuth) || usages.contains(.any): return nil
            case .server: return Fault(reason: .wrongUse, text: "it may not be used for servers (extended key usage)")
            case .client: return Fault(reason: .wrongUse, text: "it may not be used for clients (extended key usage)")
            }
        } catch {
            return Fault(reason: .wrongUse, text: "its extended key usage is malformed")
        }
    }

    /// Returns the weakness of a certificate's key or signature, or nil if both are strong enough.
    ///
    /// A root's own signature only matters if strong keys are required.
    func weakness(of certificate: Certificate, isRoot: Bool) -> Fault? {
        let key = KeyFacts(certificate.publicKey)
        switch key.kind {
        case .rsa where key.bits < 2_048: return Fault(reason: .weakKey, text: "its RSA key has only \(key.bits) bits")
        case .ec where requiresStrongKeys && key.bits < 256:
            return Fault(reason: .weakKey, text: "its key has only \(key.bits) bits")
        case .rsa, .ec, .ed25519: break
        }
        if !isRoot || requiresStrongKeys, certificate.signatureAlgorithm == .sha1WithRSAEncryption {
            return Fault(reason: .weakSignature, text: "it is signed with SHA-1")
        }
        return nil
    }
}
