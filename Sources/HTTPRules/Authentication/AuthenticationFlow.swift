//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Decides how a load answers the challenges of one origin or proxy: with which scheme, and when to stop.
///
/// The strongest scheme goes first. A refusal asks for the same scheme again, counting the failures of its protection space; when the
/// app rejects the space the next one offered follows. Where nothing is left, the response is delivered.
///
/// **No downgrade.** Over an insecure connection Basic would hand out the very password that a stronger scheme keeps. So where a
/// stronger scheme that this process can carry out was ever offered, Basic is asked for only after the app itself has rejected the
/// protection spaces of all of them, as Apple's does: an explicit `rejectProtectionSpace` followed by a credential for a challenge
/// that says Basic is the app's decision. No refusal by the server, and no change of its offers, leads there.
package struct AuthenticationFlow: Sendable {
    package enum Step: Sendable, Hashable {
        /// Credentials are wanted: from the app, a store, or the URL.
        case ask(AuthenticationScheme, AuthenticateHeader.Challenge, previousFailureCount: Int)
        /// The same credentials go once more: the nonce was stale, or the next leg of NTLM or Negotiate is due.
        case again(AuthenticationScheme, AuthenticateHeader.Challenge)
    }

    /// What credentials are good for, of the one server or proxy.
    private struct Space: Sendable, Hashable {
        let scheme: AuthenticationScheme
        let realm: String?

        init(_ scheme: AuthenticationScheme, _ realm: String?) {
            self.scheme = scheme
            self.realm = scheme.hasLegs ? nil : realm
        }
    }

    /// What the request carried that the server now answers.
    private struct Attempt: Sendable {
        let scheme: AuthenticationScheme
        let realm: String?
        /// Whether it went along before it was asked for.
        var isUnasked = false
        var legs = 1
        var staleAnswers = 0
    }

    /// A person may mistype a few times; a program that gives the same wrong password for ever must end.
    package static let maximumAttempts = 20
    /// Of a whole load, however often something was accepted in between.
    package static let maximumSteps = 100
    /// A nonce may be too old, and the next one too where many requests run at once; a server that calls every one stale lies.
    static let maximumStaleAnswers = 3

    /// Who was answered with last, to be proposed again.
    package private(set) var user: String?

    private let allowed: Set<AuthenticationScheme>
    private let isSecure: Bool
    private var offered: Set<AuthenticationScheme> = []
    /// By the app, or because they cannot be carried out.
    private var excluded: Set<AuthenticationScheme> = []
    private var asked: (scheme: AuthenticationScheme, realm: String?)?
    private var attempt: Attempt?
    private var failures: [Space: Int] = [:]
    private var attempts = 0
    private var steps = 0

    /// `isSecure` says whether the challenges come, and the credentials go, over TLS.
    package init(allowed: Set<AuthenticationScheme> = Set(AuthenticationScheme.allCases), isSecure: Bool = false) {
        self.allowed = allowed
        self.isSecure = isSecure
    }

    /// What to do about a 401 or 407 with these offers, the strongest first; nil: deliver it.
    package mutating func next(_ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)]) -> Step? {
        let offers = offers.filter { allowed.contains($0.0) }
        offered.formUnion(offers.map(\.0))
        // What was sent unasked was offered before, for this space.
        if let attempt, attempt.isUnasked, offers.contains(where: { $0.1.realm == attempt.realm }) {
            offered.insert(attempt.scheme)
        }
        asked = nil
        guard attempts < Self.maximumAttempts, steps < Self.maximumSteps else { return nil }
        if let step = goOn(offers) { return counted(step) }
        noteRefusal(offers)
        guard let (scheme, challenge) = offers.first(where: { mayUse($0.0) }) else { return nil }
        asked = (scheme, challenge.realm)
        return counted(.ask(scheme, challenge, previousFailureCount: failures[Space(scheme, challenge.realm), default: 0]))
    }

    /// The next request carries credentials for what was asked.
    ///
    /// Further legs with them need not be reported.
    package mutating func answered(_ scheme: AuthenticationScheme, with user: String?) {
        guard let asked, asked.scheme == scheme else { return }
        attempt = Attempt(scheme: scheme, realm: asked.realm)
        self.user = user
        self.asked = nil
    }

    /// The next request carries credentials before it was challenged; see ``AuthenticationScopes``.
    ///
    /// That the server asks for those of another realm then is no failure.
    package mutating func sentUnasked(_ scheme: AuthenticationScheme, realm: String?, user: String?) {
        attempt = Attempt(scheme: scheme, realm: realm, isUnasked: true)
        self.user = user
        asked = nil
    }

    /// What the server answers was not refused: the request did not carry it, or not over the connection that it is for.
    package mutating func startsOver() {
        attempt = nil
    }

    /// The app rejected the protection space: ``next(_:)`` with the same offers moves on.
    package mutating func rejected(_ scheme: AuthenticationScheme) {
        exclude(scheme)
    }

    /// The scheme cannot be carried out here: no library, no ticket, a user that it cannot name.
    ///
    /// It counts as not offered, so that Basic is not held back for it.
    package mutating func unavailable(_ scheme: AuthenticationScheme) {
        exclude(scheme)
    }

    /// A leg that the server sent makes no sense, or is its refusal: ``next(_:)`` with the same offers asks again.
    package mutating func broke() {
        guard let attempt else { return }
        failures[Space(attempt.scheme, attempt.realm), default: 0] += 1
        self.attempt = nil
    }

    /// The server answered with something else than a challenge: what comes later begins anew.
    package mutating func accepted() {
        attempt = nil
        asked = nil
        failures = [:]
        attempts = 0
    }

    private mutating func goOn(_ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)]) -> Step? {
        guard var attempt, let (scheme, challenge) = offers.first(where: { $0.0 == attempt.scheme }), !excluded.contains(scheme)
        else { return nil }
        switch scheme {
        case .basic: return nil
        case .digest:
            guard let session = DigestSession(challenge), session.isStale, session.realm == attempt.realm ?? "",
                attempt.staleAnswers < Self.maximumStaleAnswers
            else { return nil }
            attempt.staleAnswers += 1
        case .ntlm, .negotiate:
            // A bare scheme behind the last leg is the refusal.
            guard AuthenticationOffer.token(of: challenge) != nil, attempt.legs < (scheme == .ntlm ? 2 : 8) else { return nil }
            attempt.legs += 1
        }
        self.attempt = attempt
        return .again(scheme, challenge)
    }

    private mutating func noteRefusal(_ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)]) {
        guard let attempt else { return }
        let isOfAnotherSpace = attempt.isUnasked && offers.first { $0.0 == attempt.scheme }?.1.realm != attempt.realm
        if isOfAnotherSpace { self.attempt = nil } else { broke() }
    }

    private mutating func exclude(_ scheme: AuthenticationScheme) {
        excluded.insert(scheme)
        if attempt?.scheme == scheme { attempt = nil }
    }

    private func mayUse(_ scheme: AuthenticationScheme) -> Bool {
        guard !excluded.contains(scheme) else { return false }
        guard scheme == .basic, !isSecure else { return true }
        return offered.allSatisfy { $0 == .basic || excluded.contains($0) }
    }

    private mutating func counted(_ step: Step) -> Step {
        attempts += 1
        steps += 1
        return step
    }
}
