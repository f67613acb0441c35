//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import Synchronization
import X509

/// What was sent along with a certificate, as the issuers that a verifier tries.
///
/// A verifier goes every way from one certificate to the next, and whoever sent them decides how many ways there are: authorities
/// of one name and one key, each signed by the next, make more than can ever be tried. So only so many of them count, and only so
/// many are given out in all, each of which costs one check of a signature; the verifier that gets no more comes to its end.
final class IssuerCandidates: CustomCertificateStore {
    /// How many certificates count besides the one in question.
    static let maximumCount = 32
    /// How many signatures of theirs are checked for one chain.
    static let maximumTries = 128

    private struct State {
        var certificates: [DistinguishedName: [Certificate]] = [:]
        var triesLeft = maximumTries
        var isExhausted = false
    }

    private let state: Mutex<State>

    init(_ certificates: some Sequence<Certificate>) {
        state = Mutex(State(certificates: Dictionary(grouping: certificates, by: \.subject)))
    }

    /// The certificates of a chain that count, each once, that in question first.
    static func counted(_ chain: [Data]) -> [Data] {
        var seen: Set<Data> = []
        return Array(chain.filter { seen.insert($0).inserted }.prefix(1 + maximumCount))
    }

    /// Whether there were more than were given out.
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
