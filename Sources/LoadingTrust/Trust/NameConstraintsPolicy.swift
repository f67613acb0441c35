// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// Checks that each CA of a chain may issue certificates for the names below it (RFC 5280, sections 4.2.1.10 and 6.1.3, (b) and (c)).
///
/// A peer can send a chain in which every name has to be compared with thousands of constraints, and many paths through such a
/// chain. The total number of comparisons for one verdict is therefore limited.
struct NameConstraintsPolicy: VerifierPolicy {
    /// The maximum number of comparisons of a name with a constraint, as in OpenSSL.
    static let maximumComparisons = 1 << 20

    private struct Refusal: Error {
        var text: String
    }

    /// The names in a certificate, and the constraints for those below it.
    private struct Facts {
        var names: Result<[CertificateName], Refusal>
        var constraints: Result<NameSubtrees, Refusal>?

        init(_ certificate: Certificate) {
            let alternatives = Refusal(text: "the subject alternative names of a certificate are malformed")
            names = Result { try CertificateName.names(of: certificate) }.mapError { _ in alternatives }
            guard certificate.extensions[oid: .X509ExtensionID.nameConstraints] != nil else { return }
            let malformed = Refusal(text: "the name constraints of an issuer are malformed")
            constraints = (try? certificate.extensions.nameConstraints).map { .success(NameSubtrees($0)) } ?? .failure(malformed)
        }
    }

    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.nameConstraints]
    /// The names that the server is used under.
    private let hosts: [CertificateName]
    private var known: [Certificate: Facts] = [:]
    private var comparisonsLeft = maximumComparisons

    init(hosts: [String]) { self.hosts = hosts.compactMap(CertificateName.init(host:)) }

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) -> PolicyEvaluationResult {
        do throws(Refusal) {
            try check(Array(chain))
            return .meetsPolicy
        } catch {
            return .failsToMeetPolicy(reason: error.text)
        }
    }

    private mutating func check(_ chain: [Certificate]) throws(Refusal) {
        guard chain.contains(where: { $0.extensions[oid: .X509ExtensionID.nameConstraints] != nil }) else { return }
        let facts = chain.map { certificate in
            let facts = known[certificate] ?? Facts(certificate)
            known[certificate] = facts
            return facts
        }
        for (index, certificate) in chain.enumerated() {
            // The rules do not apply to a self-issued certificate, with which a CA renews its key, unless it is the last one.
            if index > 0, certificate.isSelfIssued { continue }
            // A root that is itself the server's certificate counts as its own issuer.
            for constraints in facts.dropFirst(chain.count == 1 ? 0 : index + 1).compactMap(\.constraints) {
                let (names, constraints) = (try facts[index].names.get(), try constraints.get())
                comparisonsLeft -= names.count * constraints.count
                if comparisonsLeft < 0 { throw Self.excess }
                if let text = constraints.refusal(of: names) { throw Refusal(text: text) }
                // A certificate for *.example.com may be for a host that is excluded, and for others that are not.
                if index == 0, let text = constraints.exclusion(of: hosts) { throw Refusal(text: text) }
            }
        }
    }

    private static let excess = Refusal(
        text: "its chain has too many names and name constraints: more than \(maximumComparisons) comparisons are necessary"
    )
}

/// The subtrees of names that a CA's certificate permits and excludes.
private struct NameSubtrees {
    private let permitted: [NameSubtree]
    private let excluded: [NameSubtree]

    init(_ constraints: NameConstraints) {
        permitted = constraints.permittedSubtrees.map(NameSubtree.init)
        excluded = constraints.excludedSubtrees.map(NameSubtree.init)
    }

    var count: Int { permitted.count + excluded.count }

    /// Returns why one of the names must not be in a certificate that the CA issues.
    func refusal(of names: [CertificateName]) -> String? {
        for name in names {
            var isConstrained = false
            let isPermitted = permitted.contains { subtree in
                guard let relation = subtree.relation(to: name) else { return false }
                isConstrained = true
                return relation == .inside
            }
            if isConstrained, !isPermitted { return "an issuer may not issue certificates for \(name) (name constraints)" }
        }
        return exclusion(of: names)
    }

    /// Returns why one of the names is excluded, or may be.
    func exclusion(of names: [CertificateName]) -> String? {
        for name in names {
            let relation = excluded.lazy.compactMap { $0.relation(to: name) }.first { $0 != .outside }
            if let relation {
                return relation == .inside
                    ? "an issuer may not issue certificates for \(name), which its name constraints exclude"
                    : "the name constraints of an issuer cannot be applied to \(name)"
            }
        }
        return nil
    }
}
