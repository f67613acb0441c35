// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// Answers the challenges of servers and proxies: with the URL's user info, a Kerberos ticket, a credential of the session or its
/// storage, or the app's answer.
enum ChallengeDesk {
    private enum Choice {
        /// Nil stands for the Kerberos ticket of the user who runs the process.
        case use(LoadCredential?)
        case another
        /// There is no credential that the scheme could use.
        case unavailable
        case nothing
    }

    /// The source of a challenge, and the request that was challenged.
    struct Context {
        var authenticator: Authenticator
        /// The fields of the challenge, as texts that preserve their octets (`OctetText`).
        var challenges: [String]
        var response: LoadResponse?
        var path: String
        /// The credential from the URL or from the proxy settings.
        var given: LoadCredential?
        var facts: ConnectionFacts?
        /// The number of challenges that the authenticator had answered before this challenge arrived.
        private let answers: Int

        init(
            authenticator: Authenticator, challenges: [String], response: LoadResponse? = nil, path: String,
            given: LoadCredential? = nil, facts: ConnectionFacts? = nil
        ) {
            self.authenticator = authenticator
            self.challenges = challenges
            self.response = response
            self.path = path
            self.given = given
            self.facts = facts
            answers = authenticator.answers
        }

        /// Whether another load has answered the challenge meanwhile.
        ///
        /// If a load stops waiting for a tunnel, a second load is asked for the proxy's credential; the first load's answer can
        /// still arrive.
        var isAnswered: Bool { authenticator.answers != answers }
    }

    /// Prepares the authenticator for another request; returns false if the response is to be delivered to the app.
    static func answer(_ context: Context, in load: Load) async throws(LoadError) -> Bool {
        let authenticator = context.authenticator
        if context.isAnswered { return true }
        load.session.credentials.close(authenticator)
        let offers = AuthenticationOffer.strongestFirst(AuthenticateHeader.challenges(in: context.challenges))
        try await authenticator.checkNegotiateAvailability(offers, in: load.control)
        let sent = authenticator.proof
        var startsOver = authenticator.mustStartOver
        // Starting over uses the same scheme, even if others are offered.
        var first = startsOver ? offers.filter { sent?.isFor($0.0, $0.1) == true } : []
        if startsOver { authenticator.startOver() }
        if let sent, sent.scheme == .basic, authenticator.isOnTrial, offers.contains(where: { sent.isFor($0.0, $0.1) }) {
            load.session.credentials.forget(sent, for: authenticator.place)
        }
        while let step = authenticator.flow.next(first.isEmpty ? offers : first) {
            first = []
            switch step {
            case .again(let scheme, let challenge):
                let credentials = load.session.credentials
                let shared = credentials.proof(for: authenticator.place, scheme: scheme, realm: challenge.realm)
                if try await authenticator.proceed(
                    scheme, challenge, shared: shared, facts: context.facts, in: load.control
                ) {
                    // Other loads get the new nonce, too.
                    if scheme == .digest, shared != nil, let proof = authenticator.proof {
                        credentials.remember(proof, for: authenticator.place, path: context.path)
                    }
                    return true
                }
                authenticator.flow.failAttempt()
            case .ask(let scheme, let challenge, let failures):
                // A challenge for another protection space or another scheme says nothing about the credential that was sent, and
                // that credential must not be sent for this challenge.
                var refused = sent.flatMap { $0.isFor(scheme, challenge) ? $0 : nil }
                authenticator.refused()
                if startsOver, let again = refused {
                    startsOver = false
                    refused = nil
                    if try await authenticator.answer(
                        scheme, challenge, with: again.credential, as: again, facts: context.facts, in: load.control
                    ) {
                        return true
                    }
                    load.session.credentials.forget(again, for: authenticator.place)
                } else if failures > 0, let refused {
                    load.session.credentials.forget(refused, for: authenticator.place)
                }
                switch try await choose(scheme, challenge, failures, refused?.credential, context, in: load) {
                case .nothing: return false
                case .another: authenticator.flow.rejected(scheme)
                case .unavailable: authenticator.flow.unavailable(scheme)
                case .use(let credential):
                    if try await authenticator.answer(
                        scheme, challenge, with: credential, facts: context.facts, in: load.control
                    ) {
                        return true
                    }
                    // Without a ticket, Negotiate may still work with a password; the app is asked for a password next.
                    if scheme == .negotiate, credential == nil { continue }
                    authenticator.flow.unavailable(scheme)
                }
            }
        }
        return false
    }

    private static func choose(
        _ scheme: AuthenticationScheme, _ challenge: AuthenticateHeader.Challenge, _ failures: Int, _ refused: LoadCredential?,
        _ context: Context, in load: Load
    ) async throws(LoadError) -> Choice {
        let authenticator = context.authenticator
        let realm = scheme.isMultiStep ? nil : challenge.realm
        let place = authenticator.place
        // Use the session's credential, if there is one: another load may have answered the challenge meanwhile.
        if failures == 0 || !authenticator.hasOwnAnswer,
            let proof = load.session.credentials.proof(for: place, scheme: scheme, realm: realm), proof.credential != refused
        {
            authenticator.hasOwnAnswer = false
            return .use(proof.credential)
        }
        if let given = context.given, authenticator.triedGiven.insert(scheme).inserted { return .use(given) }
        if scheme == .negotiate, load.session.policy.usesKerberosTickets, !authenticator.hasTriedTicket {
            authenticator.hasTriedTicket = true
            return .use(nil)
        }
        let space = space(place, scheme, realm: realm)
        let id = AuthenticationScopes.ID(place: place, scheme: scheme, realm: realm)
        let asksApp = load.wants(.challenges)
        var kept = refused == nil || !asksApp ? try await stored(for: space, in: load) : nil
        guard asksApp else { return byDefault(id, kept, refused, authenticator) }
        var question = ChallengeQuestion(space)
        question.previousFailureCount = failures
        question.proposed = refused ?? kept
        question.response = context.response
        let answer: ChallengeAnswer
        switch try await ask(question, about: id, refused, for: authenticator, in: load) {
        case .shared(let credential):
            authenticator.hasOwnAnswer = false
            return .use(credential)
        case .own(let own):
            authenticator.hasOwnAnswer = true
            answer = own
        case .none: return .nothing
        }
        switch answer {
        case .useCredential(let credential):
            guard let credential, case .password = credential.kind else { return .nothing }
            return .use(credential)
        case .performDefaultHandling:
            if refused != nil { kept = try await stored(for: space, in: load) }
            return byDefault(id, kept, refused, authenticator)
        case .rejectProtectionSpace: return .another
        case .cancel:
            let kind: LoadError.Kind = place.isProxy ? .userCancelledAuthentication : .cancelled
            throw LoadError(kind, "the authentication challenge was cancelled")
        }
    }

    /// Asks the app, or waits for another load that asks the same question.
    ///
    /// Returns nil if the client cannot answer the question.
    private static func ask(
        _ question: ChallengeQuestion, about id: AuthenticationScopes.ID, _ refused: LoadCredential?, for asker: Authenticator,
        in load: Load
    ) async throws(LoadError) -> OpenQuestion.Outcome? {
        func askApp() async throws(LoadError) -> ChallengeAnswer? {
            guard case .credential(let answer) = try await load.ask(.challenge(question)) else { return nil }
            return answer
        }
        let credentials = load.session.credentials
        let subject = OpenQuestion.Subject(id: id, refused: refused)
        if let open = credentials.question(about: subject) {
            if let shared = try await open.wait(in: load.control) { return .shared(shared) }
            return try await askApp().map { .own($0) }
        }
        let open = OpenQuestion(subject, asker)
        credentials.open(open)
        do throws(LoadError) {
            let answer = try await askApp()
            open.answer(answer)
            if open.credential == nil { credentials.close(open) }
            return answer.map { .own($0) }
        } catch {
            open.answer(nil)
            credentials.close(open)
            throw error
        }
    }

    /// Uses the stored credential, once, unless it is the one that was refused.
    private static func byDefault(
        _ id: AuthenticationScopes.ID, _ kept: LoadCredential?, _ refused: LoadCredential?, _ authenticator: Authenticator
    ) -> Choice {
        if let kept, kept.kind != refused?.kind, authenticator.triedStored.insert(id).inserted { return .use(kept) }
        // Without a ticket, or if the ticket is not accepted, other schemes may be used.
        return id.scheme == .negotiate && kept == nil && refused == nil ? .unavailable : .nothing
    }

    /// Returns the protection space under which the app and its storage know a challenge's credentials.
    ///
    /// RFC 7617, section 2, does not allow a Basic challenge without a realm. If a server sends one, the host serves as its
    /// realm, as in Apple's implementation.
    private static func space(
        _ place: AuthenticationScopes.Peer, _ scheme: AuthenticationScheme, realm: String?
    ) -> ProtectionSpace {
        let realm = realm.map { OctetText.shown($0) }
        return ProtectionSpace(
            host: place.origin.host, port: place.origin.port, kind: place.origin.scheme, isProxy: place.isProxy,
            realm: scheme == .basic ? realm ?? place.origin.host : realm, method: scheme.method
        )
    }

    /// Returns the storage's credential for a space: the default credential, or the only one.
    static func stored(for space: ProtectionSpace, in load: Load) async throws(LoadError) -> LoadCredential? {
        if load.wants(.credentials) {
            guard case .credential(.useCredential(let credential)) = try await load.ask(.storedCredential(space)) else {
                return nil
            }
            return credential
        }
        guard let store = load.session.stores.credentials else { return nil }
        if !store.isMemoryOnly { try await LoopSlot.run(in: load.control, by: store.prepareOnQueue) {} }
        return store.lookup(space)
    }

    /// Records that a credential was accepted: later requests of the session carry the credential, and the storage keeps it if
    /// the credential's persistence allows that.
    static func accepted(_ authenticator: Authenticator, path: String, in load: Load) {
        load.session.credentials.close(authenticator)
        guard let proof = authenticator.proof else { return }
        let persistence = proof.credential?.persistence ?? .forSession
        guard persistence != .none else { return }
        load.session.credentials.remember(proof, for: authenticator.place, path: path)
        guard persistence != .forSession, let credential = proof.credential else { return }
        store(credential, for: space(authenticator.place, proof.scheme, realm: proof.realm), in: load)
    }

    /// Stores a credential in the credential storage.
    static func store(_ credential: LoadCredential, for space: ProtectionSpace, in load: Load) {
        if load.wants(.credentials) {
            load.client.ask(.storeCredential(credential, space)) { _ in }
        } else if let store = load.session.stores.credentials, store.lookup(space) != credential {
            store.set(credential, for: space)
        }
    }
}

extension AuthenticationScheme {
    var method: AuthenticationMethod {
        switch self {
        case .basic: .basic
        case .digest: .digest
        case .ntlm: .ntlm
        case .negotiate: .negotiate
        }
    }
}
