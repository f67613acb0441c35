//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import SwiftASN1
import X509

/// What a server's certificate and its issuers must be like, beyond RFC 5280 and the name: as Apple's systems demand it.
struct ServerCertificatePolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        .X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage, .X509ExtensionID.extendedKeyUsage,
    ]

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        let leaf = chain.leaf
        // A certificate that is itself among the roots was trusted as it is; openssl makes such ones with CA:TRUE.
        let isItsOwnRoot = chain.count == 1
        if !isItsOwnRoot, case .isCertificateAuthority = try? leaf.extensions.basicConstraints {
            return .failsToMeetPolicy(reason: "it is the certificate of an authority, not of a server")
        }
        guard let names = try? leaf.extensions.subjectAlternativeNames, !names.isEmpty else {
            return .failsToMeetPolicy(reason: "it names its host only in the common name, not as a subject alternative name")
        }
        if names.contains(.dnsName("*")) { return .failsToMeetPolicy(reason: "it claims every host (*)") }
        for certificate in chain.dropLast(isItsOwnRoot ? 0 : 1) {
            if let fault = Self.fault(of: certificate, isRoot: isItsOwnRoot) { return .failsToMeetPolicy(reason: fault) }
        }
        return .meetsPolicy
    }

    private static func fault(of certificate: Certificate, isRoot: Bool) -> String? {
        do {
            if let usages = try certificate.extensions.extendedKeyUsage,
                !usages.contains(.serverAuth), !usages.contains(.any)
            {
                return "it may not be used for servers (extended key usage)"
            }
        } catch {
            return "its extended key usage is malformed"
        }
        if let size = rsaModulusSize(certificate.publicKey), size < 2_048 { return "its RSA key has only \(size) bits" }
        if !isRoot, certificate.signatureAlgorithm == .sha1WithRSAEncryption { return "it is signed with SHA-1" }
        return nil
    }

    /// The size in bits if the key is an RSA key: the only kind that is a sequence of two integers (RFC 8017, appendix A.1.1).
    private static func rsaModulusSize(_ key: Certificate.PublicKey) -> Int? {
        guard let node = try? DER.parse(key.subjectPublicKeyInfoBytes), node.identifier == .sequence else { return nil }
        let modulus = try? DER.sequence(node, identifier: .sequence) { nodes in
            let modulus = try ArraySlice<UInt8>(derEncoded: &nodes)
            _ = try ArraySlice<UInt8>(derEncoded: &nodes)
            return modulus
        }
        guard let significant = modulus?.drop(while: { $0 == 0 }), let first = significant.first else { return nil }
        return significant.count * 8 - first.leadingZeroBitCount
    }
}
