// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import SwiftASN1
import X509

/// Explains why a chain is not trusted, in terms that the user can act upon.
struct TrustExplanation {
    let question: TrustQuestion
    let host: String
    let now: Date

    init(_ question: TrustQuestion) {
        self.question = question
        host = Self.name(of: question)
        now = Date(timeIntervalSince1970: (question.date ?? Date()).timeIntervalSince1970.rounded(.down))
    }

    static func name(of question: TrustQuestion) -> String {
        if question.hosts.isEmpty { return question.use == .client ? "this client" : "this server" }
        return question.hosts.joined(separator: " and ")
    }

    /// Explains why a certificate cannot be used: it is malformed, or has a kind of key or signature that is not supported.
    static func unusable(_ bytes: [UInt8], _ host: String) -> TrustFailure {
        if let fault = CertificateFields(bytes)?.obstacle {
            return TrustFailure(fault.reason, "a certificate of \(host) is not trusted: \(fault.text)")
        }
        return TrustFailure(.malformed, "a certificate of \(host) is malformed")
    }

    static func untrusted(_ fault: ServerCertificatePolicy.Fault, _ host: String) -> TrustFailure {
        TrustFailure(fault.reason, "the certificate of \(host) is not trusted: \(fault.text)")
    }

    /// Explains the failure of a chain that leads to a trusted root but violates a policy.
    func rejected(_ chain: UnverifiedCertificateChain, _ reason: String) -> TrustFailure {
        for (index, certificate) in chain.enumerated() {
            let subject = "the certificate of \(host)" + (index == 0 ? "" : "'s issuer")
            if let failure = dateFailure(of: certificate, subject) { return failure }
        }
        let policy = ServerCertificatePolicy(use: question.use, requiresStrongKeys: question.requiresStrongKeys)
        if let fault = policy.fault(of: Array(chain)) { return Self.untrusted(fault, host) }
        if !HostNamesPolicy(hosts: question.hosts).isMet(by: chain) { return wrongHost(chain.leaf) }
        return Self.untrusted(ServerCertificatePolicy.Fault(reason: .rules, text: reason), host)
    }

    private func wrongHost(_ leaf: Certificate) -> TrustFailure {
        let names = (try? leaf.extensions.subjectAlternativeNames).map { names in
            names.prefix(8).map(Self.text(of:))
        }
        let others = names.flatMap { $0.isEmpty ? nil : $0.joined(separator: ", ") } ?? "no host"
        return TrustFailure(.wrongHost, "the certificate is not for \(host), but for \(others)")
    }

    /// Returns a name in its usual notation.
    static func text(of name: GeneralName) -> String {
        switch name {
        case .dnsName(let name), .rfc822Name(let name), .uniformResourceIdentifier(let name): name
        case .ipAddress(let address): text(ofAddress: Array(address.bytes))
        case .directoryName(let name): "\(name)"
        case .otherName, .x400Address, .ediPartyName, .registeredID: "a name of another kind"
        }
    }

    private static func text(ofAddress bytes: [UInt8]) -> String {
        if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
        guard bytes.count == 16 else { return "an address of \(bytes.count) bytes" }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        // RFC 5952, section 4.2: "::" stands for the first of the longest runs of more than one zero.
        var (longest, run) = (groups.startIndex..<groups.startIndex, groups.startIndex..<groups.startIndex)
        for (index, group) in groups.enumerated() {
            run = group == 0 ? (run.upperBound == index ? run.lowerBound : index)..<index + 1 : index + 1..<index + 1
            if run.count > longest.count { longest = run }
        }
        func text(_ part: ArraySlice<UInt16>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
        guard longest.count > 1 else { return text(groups[...]) }
        return text(groups[..<longest.lowerBound]) + "::" + text(groups[longest.upperBound...])
    }

    func dateFailure(of certificate: Certificate, _ subject: String) -> TrustFailure? {
        if certificate.notValidAfter < now {
            let message = "\(subject) expired on \(certificate.notValidAfter.formatted(.iso8601))"
            return TrustFailure(.expired, message, kind: .serverCertificateHasBadDate)
        }
        if certificate.notValidBefore > now {
            let message = "\(subject) is not valid before \(certificate.notValidBefore.formatted(.iso8601)); is the clock right?"
            return TrustFailure(.notYetValid, message, kind: .serverCertificateNotYetValid)
        }
        return nil
    }

    func notUnderstood(isLeaf: Bool) -> TrustFailure {
        let whose = isLeaf ? "the certificate of \(host)" : "the certificate of \(host)'s issuer"
        return TrustFailure(.rules, "\(whose) has critical extensions that are not understood")
    }

    /// The failure if no path within a limit leads to a trusted root.
    func exceeds(_ limit: IssuerCandidates.Limit) -> TrustFailure {
        let what =
            switch limit {
            case .certificates: "only the first \(IssuerCandidates.maximumCount) certificates after its own are considered"
            case .signatures: "only \(IssuerCandidates.maximumTries) signatures are checked"
            }
        return TrustFailure(.rules, "\(host) sent too many certificates, and no path to a trusted root was found: \(what)")
    }

    /// Explains the failure if no chain leads to a trusted root.
    func noTrustedRoot(_ sent: [Certificate], _ leaf: Certificate, understood: [ASN1ObjectIdentifier]) -> TrustFailure {
        if let absence = TrustRoots.absence(for: question) {
            return TrustFailure(
                .noRoots, "\(absence), so no server can be verified, including \(host): \(TrustRoots.remedy)",
                kind: .secureConnectionFailed)
        }
        if TrustRoots.containsUnreadable(question.roots + question.extraRoots) {
            return TrustFailure(
                .unreadableRoot,
                "a certificate that the session is configured to trust cannot be read, and no other one verifies \(host)",
                kind: .secureConnectionFailed
            )
        }
        if leaf.issuer == leaf.subject {
            return TrustFailure(
                .selfSigned, "the certificate of \(host) is self-signed, and is not among the trusted roots"
            )
        }
        var path = [leaf]
        while let tip = path.last, tip.issuer != tip.subject,
            let issuer = sent.first(where: { $0.subject == tip.issuer && !path.contains($0) })
        {
            path.append(issuer)
        }
        if !path.allSatisfy({ $0.hasCriticalExtensions(onlyOf: understood) }) { return notUnderstood(isLeaf: false) }
        if let name = path.last?.issuer, let fault = TrustRoots.obstacle(inRootNamed: name, for: question) {
            return TrustFailure(fault.reason, "the root of \(host)'s certificate, \(name), cannot be used: \(fault.text)")
        }
        guard path.count > 1, let end = path.last else {
            return TrustFailure(
                .missingIssuer,
                "the server sent its certificate without that of its issuer, \(leaf.issuer), which is unknown"
            )
        }
        return TrustFailure(
            .unknownRoot,
            "the certificate of \(host) leads to \(end.issuer), which is not a trusted root; SSL_CERT_FILE names a file of roots",
            kind: .serverCertificateHasUnknownRoot
        )
    }
}
