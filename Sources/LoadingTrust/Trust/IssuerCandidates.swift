// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import X509

/// The certificates that were sent with a leaf certificate, as issuer candidates for a verifier.
///
/// A verifier tries every path from one certificate to the next, and the peer controls the number of paths: CAs with the same name
/// and key, each signed by the next, form more paths than can ever be tried. The number of candidates is therefore limited. The
/// total number of candidates handed to the verifier is limited as well, because each one costs a signature check. The verifier
/// stops when it gets no more candidates.
final class IssuerCandidates: CustomCertificateStore {
    /// The maximum number of certificates besides the leaf.
    static let maximumCount = 32
    /// The maximum number of candidates whose signatures are checked for one chain.
    static let maximumTries = 128

    /// A limit that can prevent a verifier from finding a path.
    enum Limit { case certificates, signatures }

    private struct State {
        var certificates: [DistinguishedName: [Certificate]] = [:]
        var triesLeft = maximumTries
        var isExhausted = false
    }

    private let state: Mutex<State>

    init(_ certificates: some Sequence<Certificate>) {
        state = Mutex(State(certificates: Dictionary(grouping: certificates, by: \.subject)))
    }

    /// Returns the certificates of a chain without duplicates and within the limit, starting with the leaf.
    static func limited(_ chain: [Data]) -> [Data] {
        var seen: Set<Data> = []
        return Array(chain.filter { seen.insert($0).inserted }.prefix(1 + maximumCount))
    }

    /// Whether candidates were withheld from the verifier because the limit was reached.
    var isExhausted: Bool { state.withLock(\.isExhausted) }

    subscript(subject: DistinguishedName) -> [Certificate]? {
        get async {
            state.withLock { state in
                guard let all = state.certificates[subject] else { return nil }
                let given = all.prefix(state.triesLeft)
                state.triesLeft -= given.count
                if given.count < all.count { state.isExhausted = true }
                return given.isEmpty ? nil : Array(given)
            }
        }
    }

    func contains(_ certificate: Certificate) async -> Bool {
        state.withLock { $0.certificates[certificate.subject]?.contains(certificate) ?? false }
    }

    func append(contentsOf certificates: some Sequence<Certificate>) {
        let more = Dictionary(grouping: certificates, by: \.subject)
        state.withLock { $0.certificates.merge(more) { $0 + $1 } }
    }

    static func == (lhs: IssuerCandidates, rhs: IssuerCandidates) -> Bool { lhs === rhs }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
