// SPDX-License-Identifier: Apache-2.0

/// Decides how a load responds to the challenges of one origin or proxy: which scheme to use and when to stop.
///
/// The strongest scheme is tried first. If the server rejects the credentials, the app is asked again for the same scheme, and is
/// told how many attempts in this protection space have failed. If the app rejects the protection space, the next offered scheme is
/// tried. When no scheme is left, the response is delivered.
///
/// **No downgrade.** Over an insecure connection, Basic would reveal the password that a stronger scheme protects. If the server
/// ever offered a stronger scheme that this process supports, the app must therefore reject the protection spaces of all stronger
/// schemes before it is asked for Basic credentials, as on Apple's platforms. An app that calls `rejectProtectionSpace` and then
/// provides a credential for Basic has decided to use Basic. Neither a rejection by the server nor a change in the offered schemes
/// counts as such a decision.
package struct AuthenticationFlow: Sendable {
    package enum Step: Sendable, Hashable {
        /// Credentials are needed: from the app, a credential store, or the URL.
        case ask(AuthenticationScheme, AuthenticateHeader.Challenge, previousFailureCount: Int)
        /// Send the same credentials again: the nonce was stale or may have been used up, or the next NTLM or Negotiate message is due.
        case again(AuthenticationScheme, AuthenticateHeader.Challenge)
    }

    /// A protection space of the server or proxy.
    private struct Space: Sendable, Hashable {
        let scheme: AuthenticationScheme
        let realm: String?

        init(_ scheme: AuthenticationScheme, _ realm: String?) {
            self.scheme = scheme
            self.realm = scheme.isMultiStep ? nil : realm
        }
    }

    /// The credentials in the request that the server responded to.
    private struct Attempt: Sendable {
        let scheme: AuthenticationScheme
        let realm: String?
        /// Whether the credentials were sent preemptively.
        var isPreemptive = false
        /// Whether the nonce of a Digest response may have been used before; a server whose nonces serve once refuses that, whatever
        /// the password.
        var hasOldNonce = false
        var legs = 1
        var renewals = 0
    }

    /// The maximum number of attempts: a user may mistype a few times, but a program that keeps sending the wrong password must
    /// stop.
    package static let maximumAttempts = 20
    /// The maximum number of steps of a whole load, regardless of how often credentials were accepted in between.
    package static let maximumSteps = 100
    /// The maximum number of consecutive challenges that are answered with the same credentials and a new nonce.
    ///
    /// With many concurrent requests, the next nonce may be used up as well, but a server that calls every nonce stale is broken.
    static let maximumRenewals = 3

    /// The user of the last credentials, proposed for the next challenge.
    package private(set) var user: String?

    private let allowed: Set<AuthenticationScheme>
    private let isSecure: Bool
    private var offered: Set<AuthenticationScheme> = []
    /// Schemes that the app rejected or that are unavailable.
    private var excluded: Set<AuthenticationScheme> = []
    private var asked: (scheme: AuthenticationScheme, realm: String?)?
    private var attempt: Attempt?
    private var failures: [Space: Int] = [:]
    private var attempts = 0
    private var steps = 0

    /// Starts without an attempt; `isSecure` says whether challenges and credentials are sent over TLS.
    package init(allowed: Set<AuthenticationScheme> = Set(AuthenticationScheme.allCases), isSecure: Bool = false) {
        self.allowed = allowed
        self.isSecure = isSecure
    }

    /// Decides how to respond to a 401 or 407 with these offers, which are sorted with the strongest scheme first.
    ///
    /// Returns nil if the response is to be delivered.
    package mutating func next(_ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)]) -> Step? {
        let offers = offers.filter { allowed.contains($0.0) }
        offered.formUnion(offers.map(\.0))
        // A scheme whose credentials were sent preemptively has been offered for this space before.
        if let attempt, attempt.isPreemptive, offers.contains(where: { $0.1.realm == attempt.realm }) {
            offered.insert(attempt.scheme)
        }
        asked = nil
        guard attempts < Self.maximumAttempts, steps < Self.maximumSteps else { return nil }
        if let step = proceed(offers) { return counted(step) }
        noteRejection(offers)
        guard let (scheme, challenge) = offers.first(where: { mayUse($0.0) }) else { return nil }
        asked = (scheme, challenge.realm)
        return counted(.ask(scheme, challenge, previousFailureCount: failures[Space(scheme, challenge.realm), default: 0]))
    }

    /// Records that the next request carries credentials for the challenge of the last ``Step/ask(_:_:previousFailureCount:)``.
    ///
    /// Later messages of the same NTLM or Negotiate handshake need not be reported.
    package mutating func answered(_ scheme: AuthenticationScheme, with user: String?) {
        guard let asked, asked.scheme == scheme else { return }
        attempt = Attempt(scheme: scheme, realm: asked.realm)
        self.user = user
        self.asked = nil
    }

    /// Records that the next request carries credentials preemptively; see ``AuthenticationScopes``.
    ///
    /// A challenge for another realm does not count as a failure of these credentials.
    package mutating func sentPreemptively(_ scheme: AuthenticationScheme, realm: String?, user: String?) {
        attempt = Attempt(scheme: scheme, realm: realm, isPreemptive: true, hasOldNonce: true)
        self.user = user
        asked = nil
    }

    /// Records that the next request carries a Digest response whose nonce was used before, although the load itself was challenged.
    package mutating func reusesNonce(realm: String?, user: String?) {
        if attempt == nil {
            attempt = Attempt(scheme: .digest, realm: realm)
            self.user = user
            asked = nil
        }
        attempt?.hasOldNonce = true
    }

    /// Forgets the last credentials, because the response does not reject them: the request did not carry the credentials, or was
    /// sent on a connection to which the credentials do not apply.
    package mutating func forgetAttempt() {
        attempt = nil
    }

    /// Records that the app rejected the protection space.
    ///
    /// Call ``next(_:)`` with the same offers to continue.
    package mutating func rejected(_ scheme: AuthenticationScheme) {
        exclude(scheme)
    }

    /// Records that the scheme is unavailable: its library or the Kerberos ticket is missing, or the scheme does not support the
    /// user name.
    ///
    /// The scheme counts as not offered, so it does not prevent the use of Basic.
    package mutating func unavailable(_ scheme: AuthenticationScheme) {
        exclude(scheme)
    }

    /// Records that a message from the server is invalid or is a rejection.
    ///
    /// Call ``next(_:)`` with the same offers to ask again.
    package mutating func failAttempt() {
        guard let attempt else { return }
        failures[Space(attempt.scheme, attempt.realm), default: 0] += 1
        self.attempt = nil
    }

    /// Records that the server's response was not a challenge, and restarts the counts of attempts and failures.
    package mutating func accepted() {
        attempt = nil
        asked = nil
        failures = [:]
        attempts = 0
    }

    private mutating func proceed(_ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)]) -> Step? {
        guard var attempt, let (scheme, challenge) = offers.first(where: { $0.0 == attempt.scheme }), !excluded.contains(scheme)
        else { return nil }
        switch scheme {
        case .basic: return nil
        case .digest:
            guard let session = DigestSession(challenge), session.isStale || attempt.hasOldNonce,
                session.realm == attempt.realm ?? "", attempt.renewals < Self.maximumRenewals
            else { return nil }
            attempt.renewals += 1
            attempt.hasOldNonce = false
        case .ntlm, .negotiate:
            // A challenge without a token, in response to a message with a token, is a rejection.
            guard AuthenticationOffer.token(of: challenge) != nil, attempt.legs < (scheme == .ntlm ? 2 : 8) else { return nil }
            attempt.legs += 1
        }
        self.attempt = attempt
        return .again(scheme, challenge)
    }

    private mutating func noteRejection(_ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)]) {
        guard let attempt else { return }
        let isOfAnotherSpace = attempt.isPreemptive && offers.first { $0.0 == attempt.scheme }?.1.realm != attempt.realm
        if isOfAnotherSpace { self.attempt = nil } else { failAttempt() }
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
