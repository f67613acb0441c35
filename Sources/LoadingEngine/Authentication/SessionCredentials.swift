// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import LoadingModel

/// The credentials that servers and proxies accepted from a session, and the client certificates it chose.
///
/// Confined to the session's loop.
final class SessionCredentials {
    private var scopes = AuthenticationScopes()
    private var proofs: [AuthenticationScopes.ID: Proof] = [:]
    /// The answers to requests for a client certificate, which stay in effect for the session.
    private var identities: [IdentityScope: ClientIdentity] = [:]

    /// The scope of an answer to a request for a client certificate.
    private struct IdentityScope: Hashable {
        var server: ServerName
        /// Set if a task's own delegate answered: only tasks with that delegate then use the identity.
        var judge: ConnectionHolder?
    }

    private static let maximumLogins = 256
    /// The credentials that FTP servers accepted.
    private var logins: [Origin: LoadCredential] = [:]

    /// The questions that the app is being asked, and those whose answers are being tried.
    private var questions: [OpenQuestion.Subject: OpenQuestion] = [:]

    /// Whether nothing is remembered, as in most sessions.
    private(set) var isEmpty = true

    /// Returns the credential that a request carries before any challenge.
    func proof(for place: AuthenticationScopes.Peer, path: String) -> Proof? {
        scopes.scope(for: place, path: path).flatMap { proofs[$0] }
    }

    /// Returns the credential that another load of this session has used for a protection space.
    func proof(for place: AuthenticationScopes.Peer, scheme: AuthenticationScheme, realm: String?) -> Proof? {
        proofs[AuthenticationScopes.ID(place: place, scheme: scheme, realm: realm)]
    }

    func remember(_ proof: Proof, for place: AuthenticationScopes.Peer, path: String) {
        isEmpty = false
        let id = scopes.add(place, path: path, scheme: proof.scheme, realm: proof.realm, domain: proof.digest?.domain ?? [])
        proofs[id] = proof
        if proofs.count > 2 * AuthenticationScopes.maximumSpaces { proofs = proofs.filter { scopes.contains($0.key) } }
    }

    /// Forgets a proof that was refused.
    func forget(_ proof: Proof, for place: AuthenticationScopes.Peer) {
        let id = AuthenticationScopes.ID(place: place, scheme: proof.scheme, realm: proof.realm)
        guard proofs[id] === proof else { return }
        scopes.remove(id)
        proofs[id] = nil
    }

    // MARK: FTP

    /// Returns the credential that an FTP server accepted from the session.
    func login(to server: Origin) -> LoadCredential? { logins[server] }

    func remember(_ login: LoadCredential, to server: Origin) {
        if logins.count >= Self.maximumLogins { logins = [:] }
        logins[server] = login
    }

    /// Forgets a login that was refused.
    func forget(_ login: LoadCredential, to server: Origin) {
        if logins[server] == login { logins[server] = nil }
    }

    // MARK: Client certificates

    func identity(for server: ServerName, judge: ConnectionHolder?) -> ClientIdentity? {
        identities[IdentityScope(server: server, judge: judge)]
    }

    func remember(_ identity: ClientIdentity, for server: ServerName, judge: ConnectionHolder?) {
        // The number is limited, because an app may create a delegate for each task.
        if identities.count >= 256 { identities = identities.filter { $0.key.judge == nil } }
        identities[IdentityScope(server: server, judge: judge)] = identity
    }

    func forgetIdentity(for server: ServerName, judge: ConnectionHolder?) {
        identities[IdentityScope(server: server, judge: judge)] = nil
    }

    // MARK: Questions

    func question(about subject: OpenQuestion.Subject) -> OpenQuestion? {
        guard let question = questions[subject] else { return nil }
        if question.isOpen { return question }
        questions[subject] = nil
        return nil
    }

    func open(_ question: OpenQuestion) {
        if questions.count >= 64 { questions = questions.filter { $0.value.isOpen } }
        questions[question.subject] = question
    }

    func close(_ question: OpenQuestion) {
        if questions[question.subject] === question { questions[question.subject] = nil }
    }

    /// Closes the question of a load whose answer was accepted or refused.
    func close(_ authenticator: Authenticator) {
        guard !questions.isEmpty,
            let question = questions.values.first(where: { $0.asker === authenticator && $0.isAnswered })
        else { return }
        close(question)
    }

    func removeAll() {
        questions = [:]
        scopes.removeAll()
        proofs = [:]
        identities = [:]
        logins = [:]
        isEmpty = true
    }
}
