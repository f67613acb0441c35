// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTrust
import URLLoading

/// Describes a server's certificates, and why they are not trusted.
enum DoctorTrust {
    static func step(_ url: URL, _ outcome: DoctorLoad.Outcome, _ failure: ToolFailure?, isChecked: Bool) -> DoctorReport.Step {
        let chain = outcome.chain
        let secure = outcome.metrics?.transactionMetrics.last { $0.negotiatedTLSProtocolVersion != nil }
        guard url.scheme?.lowercased() == "https" || !chain.isEmpty else {
            return .init(.tls, .none, ["http does not use TLS"])
        }
        var lines: [String] = []
        var facts: [String: [String]] = [:]
        if let secure, let version = secure.negotiatedTLSProtocolVersion?.rawValue {
            let name = secure.networkProtocolName ?? "nothing"
            lines.append("\(SecurityText.version(version)), with \(name) by ALPN")
            facts["version"] = [SecurityText.version(version)]
        }
        for (index, certificate) in chain.enumerated() {
            lines.append((index == 0 ? "the server's certificate: " : "and its issuer's: ") + certificate.subject)
            lines.append("  issued by \(certificate.isSelfIssued ? "itself" : certificate.issuer), \(kind(certificate.key))")
            lines.append("  valid from \(day(certificate.notBefore)) to \(day(certificate.notAfter))")
            if index == 0 {
                lines.append("  for \(outcome.names.isEmpty ? "no host" : outcome.names.joined(separator: ", "))")
            }
        }
        facts["names"] = chain.isEmpty ? nil : outcome.names
        facts["subjects"] = chain.map(\.subject)
        facts["issuers"] = chain.map(\.issuer)
        facts["until"] = chain.map { day($0.notAfter) }
        let fetched = secure?.intermediateCertificateURLs.map(\.absoluteString) ?? []
        if !fetched.isEmpty {
            facts["fetched"] = fetched
            lines.append("the server does not send all of its issuers' certificates; fetched: \(fetched.joined(separator: ", "))")
        }
        let isBad = [35, 58, 60, 90].contains(failure?.code ?? 0)
        if isBad {
            let reasons = objections(outcome)
            facts["objections"] = reasons
            lines += reasons.isEmpty ? [failure?.message ?? ""] : reasons
        } else if !isChecked, !chain.isEmpty {
            lines.append("the certificate is not checked (--insecure)")
        }
        if lines.isEmpty { return .init(.tls, failure == nil ? .good : .none, ["the load did not get that far"]) }
        return .init(.tls, isBad ? .bad : isChecked && fetched.isEmpty ? .good : .note, lines, facts)
    }

    /// Returns the problems that are visible from the certificates themselves.
    static func objections(_ outcome: DoctorLoad.Outcome, now: Date = Date()) -> [String] {
        let chain = outcome.chain
        guard let leaf = chain.first, let last = chain.last else { return [] }
        var reasons: [String] = []
        if !outcome.isCertificateForHost { reasons.append("the certificate is not for \(outcome.host)") }
        for (index, certificate) in chain.enumerated() {
            let whose = index == 0 ? "the certificate" : "an issuer's certificate"
            let (begin, end) = (certificate.notBefore, certificate.notAfter)
            if end < now { reasons.append("\(whose) expired on \(day(end))") }
            if begin > now { reasons.append("\(whose) is not valid before \(day(begin))") }
        }
        if (outcome.error as? URLError)?.code == .serverCertificateHasUnknownRoot || reasons.isEmpty {
            if leaf.isSelfIssued {
                reasons.append("the certificate is self-signed")
            } else if last.isSelfIssued {
                reasons.append("its root is not trusted here: \(last.subject)")
            } else {
                reasons.append("no trusted certificate of its issuer is known: \(last.issuer)")
            }
        }
        return reasons
    }

    static func advice(_ outcome: DoctorLoad.Outcome) -> String {
        let chain = outcome.chain
        guard let leaf = chain.first else { return "The server sent no readable certificate." }
        let now = Date()
        if !outcome.isCertificateForHost {
            return "Use one of the certificate's names, or have a certificate issued for \(outcome.host)."
        }
        if chain.contains(where: { $0.notAfter < now }) {
            return "The server's administrator has to renew the certificate."
        }
        if chain.contains(where: { $0.notBefore > now }) {
            return "Check this machine's clock; if it is right, wait, or have a new certificate issued."
        }
        if leaf.isSelfIssued { return "If it is yours, trust it with --cacert FILE, or pin its key with --pin." }
        if chain.last?.isSelfIssued == true { return "If you trust that root, give it with --cacert FILE." }
        return "The server should also send its issuer's certificates; otherwise, give the root with --cacert FILE."
    }

    private static func kind(_ key: KeyFacts?) -> String {
        guard let key else { return "a key of another kind" }
        return "\([.rsa: "RSA", .ec: "EC", .ed25519: "Ed25519"][key.kind] ?? "a key") of \(key.bits) bits"
    }

    private static func day(_ date: Date) -> String { date.formatted(.iso8601.year().month().day()) }
}

extension DoctorLoad.Outcome {
    /// The certificates that the server sent, up to the first that cannot be parsed.
    fileprivate var chain: [CertificateFacts] {
        certificates.prefix(10).map { CertificateFacts(der: SecCertificateCopyData($0) as Data) }.prefix { $0 != nil }.compactMap
        { $0 }
    }

    /// The names that the server's own certificate is for.
    fileprivate var names: [String] {
        certificates.first.map { Array(CertificateFacts.names(in: SecCertificateCopyData($0) as Data).prefix(100)) } ?? []
    }

    /// Whether one of the names matches the host (RFC 9525, section 6.3).
    fileprivate var isCertificateForHost: Bool {
        let host = host.lowercased()
        return names.contains { name in
            let name = name.lowercased()
            guard name.hasPrefix("*.") else { return name == host }
            return host.firstIndex(of: ".").map { host[$0...] == name.dropFirst() } ?? false
        }
    }
}

extension CertificateFacts {
    /// Whether the subject and the issuer are the same.
    fileprivate var isSelfIssued: Bool { subjectDER == issuerDER }
}
