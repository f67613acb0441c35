// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingTrust

/// Authenticates one load to one server or proxy.
///
/// Tracks the offered schemes, the attempts, and what the next request carries.
///
/// Confined to the session's event loop.
final class Authenticator {
    let place: AuthenticationScopes.Peer
    var flow: AuthenticationFlow
    /// The schemes with which the URL's credential was tried.
    ///
    /// The credential is tried once per scheme, and a Kerberos ticket once.
    var triedGiven: Set<AuthenticationScheme> = []
    var hasTriedTicket = false
    /// The protection spaces whose stored credential was tried.
    ///
    /// If the app is not asked, a stored credential is tried once.
    var triedStored: Set<AuthenticationScopes.ID> = []
    /// The proof for the next request; nil before the first challenge is answered.
    private(set) var proof: Proof?
    /// The NTLM or Negotiate token to send, once.
    private var token: [UInt8]?
    private var negotiate: NegotiateContext?
    /// The holder of the handshake's own connection; set for handshakes with several legs.
    private(set) var holder: ConnectionHolder?
    /// Whether the handshake still needs a connection.
    private var wantsConnection = false
    /// Whether the app answered this load's challenge; false if the credential came from the session or another load.
    var hasOwnAnswer = false
    /// The number of answered challenges.
    private(set) var answers = 0
    /// Computes the hash of the request's body, for Digest's `auth-int`.
    var bodyHash: (@Sendable (DigestAlgorithm) -> String)?
    /// Whether the last request carried a credential that the server has not accepted yet.
    private(set) var isOnTrial = false
    /// Whether the server asked this load for the credential and has not accepted it yet.
    var wasAsked: Bool { isOnTrial && answers > 0 }
    /// Whether the last request carried a credential that the server could refuse.
    private var wasCarried = false
    private var hasCheckedNegotiate = false
    /// The proof of this load's last request.
    ///
    /// Kept for each load, because other loads also increase the count of the same nonce.
    private var digestProof: DigestProof?

    init(_ place: AuthenticationScopes.Peer) {
        self.place = place
        flow = AuthenticationFlow(isSecure: place.isSecure)
    }

    // MARK: What to send

    /// Uses a proof that the session remembers: the next request carries it before any challenge.
    func use(_ proof: Proof) {
        self.proof = proof
        hasOwnAnswer = false
        isOnTrial = true
        flow.sentPreemptively(proof.scheme, realm: proof.realm, user: proof.credential?.user)
    }

    /// Answers a challenge with a credential, or with a proof that was accepted before.
    ///
    /// Returns false if the scheme cannot carry the credential.
    func answer(
        _ scheme: AuthenticationScheme, _ challenge: AuthenticateHeader.Challenge, with credential: LoadCredential?,
        as known: Proof? = nil, facts: ConnectionFacts?, in control: LoadControl
    ) async throws(LoadError) -> Bool {
        token = nil
        switch scheme {
        case .basic:
            guard let user = credential?.user, let password = credential?.password,
                BasicCredentials.headerValue(user: user, password: password) != nil
            else { return false }
            proof = Proof(scheme: scheme, realm: challenge.realm, credential: credential)
        case .digest:
            guard let digest = DigestSession(challenge) else { return false }
            proof = Proof(scheme: scheme, realm: challenge.realm, credential: credential, digest: digest)
        case .ntlm:
            proof = known ?? Proof(scheme: scheme, realm: nil, credential: credential, holder: ConnectionHolder())
            beginNTLM()
        case .negotiate:
            proof = known ?? Proof(scheme: scheme, realm: nil, credential: credential, holder: ConnectionHolder())
            beginHandshake()
            guard try await beginNegotiate(facts, in: control) else { return false }
        }
        flow.answered(scheme, with: credential?.user)
        answers += 1
        isOnTrial = true
        return true
    }

    /// Continues with the same credential, with a new nonce or the next leg of the handshake; returns false if that is
    /// impossible.
    ///
    /// `shared` is the proof that the session remembers for the protection space.
    func proceed(
        _ scheme: AuthenticationScheme, _ challenge: AuthenticateHeader.Challenge, shared: Proof?, facts: ConnectionFacts?,
        in control: LoadControl
    ) async throws(LoadError) -> Bool {
        switch scheme {
        case .basic: return false
        case .digest: return renew(challenge, shared)
        case .ntlm:
            guard let bytes = AuthenticationOffer.token(of: challenge), let message = NTLM.Challenge(bytes),
                let user = proof?.credential?.user, let password = proof?.credential?.password
            else { return false }
            var random = SystemRandomNumberGenerator()
            token = NTLM.authenticateMessage(
                challenge: message, user: user, password: password, workstation: "",
                clientChallenge: (0..<8).map { _ in UInt8.random(in: 0...255, using: &random) }, timestamp: Self.fileTime(),
                channelBinding: Self.binding(facts)?.ntlmHash, servicePrincipal: "HTTP/\(place.origin.host)",
                negotiate: NTLM.negotiateMessage()
            )
            return true
        case .negotiate:
            guard let negotiate, let bytes = AuthenticationOffer.token(of: challenge) else { return false }
            token = try await negotiate.step(bytes, in: control)
            return token != nil
        }
    }

    /// Continues with the nonce of a Digest challenge; returns false if the server refused the response to this very nonce.
    ///
    /// The load has the nonce for itself, because a nonce may serve only once. If another load got the same nonce, its count continues.
    private func renew(_ challenge: AuthenticateHeader.Challenge, _ shared: Proof?) -> Bool {
        guard let proof, let next = DigestSession(challenge), next.mayRenew(after: digestProof) else { return false }
        for known in [shared, proof].compactMap({ $0 }) where known.credential == proof.credential {
            guard known.digest?.continues(with: next) == true else { continue }
            self.proof = known
            return true
        }
        self.proof = Proof(scheme: .digest, realm: proof.realm, credential: proof.credential, digest: next)
        return true
    }

    /// Creates the initial Negotiate token; returns false if there is no ticket, or if the password is wrong.
    ///
    /// If there is no connection yet, the server is assumed to present the same certificate as last time.
    func beginNegotiate(_ facts: ConnectionFacts?, in control: LoadControl) async throws(LoadError) -> Bool {
        if !place.isProxy, let binding = Self.binding(facts) { proof?.binding = binding }
        let context = NegotiateContext(
            host: place.origin.host, user: proof?.credential?.user, password: proof?.credential?.password,
            binding: proof?.binding?.applicationData
        )
        negotiate = context
        if holder == nil { holder = proof?.holder }
        token = try await context.step(nil, in: control)
        isOnTrial = token != nil
        return token != nil
    }

    /// Begins an NTLM handshake on a separate connection, even if other connections are already authenticated.
    func beginNTLM() {
        guard let proof, proof.scheme == .ntlm else { return }
        beginHandshake()
        token = NTLM.negotiateMessage()
    }

    private func beginHandshake() {
        holder = ConnectionHolder()
        wantsConnection = true
    }

    /// Whether a challenge says nothing about the credential: the request did not carry the credential, or carried it preemptively
    /// on one of the credential's connections, where the handshake cannot continue.
    ///
    /// Such a connection may be new and not authenticated yet. It is also possible that the server no longer considers it
    /// authenticated or requires a channel binding, or that the server's response was lost.
    var mustStartOver: Bool {
        guard let proof, proof.scheme.isMultiStep else { return false }
        return !wasCarried || holder == nil || holder == proof.holder
    }

    /// Forgets the handshake, but not the credential: the next answer tries the credential first.
    func startOver() {
        refused()
        flow.forgetAttempt()
    }

    /// Checks for the GSSAPI library if Negotiate is offered.
    func checkNegotiateAvailability(
        _ offers: [(AuthenticationScheme, AuthenticateHeader.Challenge)], in control: LoadControl
    ) async throws(LoadError) {
        guard !hasCheckedNegotiate, offers.contains(where: { $0.0 == .negotiate }) else { return }
        hasCheckedNegotiate = true
        if try await !NegotiateContext.isAvailable(in: control) { flow.unavailable(.negotiate) }
    }

    /// Whether Negotiate still has to create its first token, which happens off the loop.
    var mustBeginNegotiate: Bool { proof?.scheme == .negotiate && token == nil }

    /// Returns the value of `Authorization` or `Proxy-Authorization`; nil if the connection is already authenticated.
    func field(method: String, uri: String) -> String? {
        guard let proof else { return nil }
        let value = value(of: proof, method: method, uri: uri)
        isOnTrial = true
        wasCarried = value != nil
        return value
    }

    private func value(of proof: Proof, method: String, uri: String) -> String? {
        switch proof.scheme {
        case .basic:
            return BasicCredentials.headerValue(user: proof.credential?.user ?? "", password: proof.credential?.password ?? "")
        case .digest:
            var random = SystemRandomNumberGenerator()
            let nonce = String(random.next(), radix: 16) + String(random.next(), radix: 16)
            let value = proof.digest?.authorization(
                user: proof.credential?.user ?? "", password: proof.credential?.password ?? "", method: method, uri: uri,
                bodyHash: bodyHash, cnonce: nonce
            )
            digestProof = proof.digest?.proof
            if proof.digest?.hasUsedNonce == true { flow.reusesNonce(realm: proof.realm, user: proof.credential?.user) }
            return value
        case .ntlm, .negotiate:
            guard let token else { return nil }
            self.token = nil
            return "\(proof.scheme.name) \(Data(token).base64EncodedString())"
        }
    }

    // MARK: Results

    /// Handles a response other than a challenge; throws if the server's part of the mutual authentication is wrong.
    func accepted(_ headers: HeaderBlock, in control: LoadControl) async throws(LoadError) {
        guard let token = try accepted(headers), let negotiate else { return }
        self.negotiate = nil
        _ = try await negotiate.step(token, in: control)
        if negotiate.hasFailed { throw missingProofError }
    }

    /// Performs the part of ``accepted(_:in:)`` that does not wait; returns the Negotiate token that remains to be checked.
    func accepted(_ headers: HeaderBlock) throws(LoadError) -> [UInt8]? {
        isOnTrial = false
        flow.accepted()
        guard let proof else { return nil }
        switch proof.scheme {
        case .basic, .ntlm: return nil
        case .digest:
            guard let sent = digestProof,
                let info = headers.octetTexts(of: place.isProxy ? "Proxy-Authentication-Info" : "Authentication-Info").first,
                proof.digest?.read(authenticationInfo: info, proof: sent) == false
            else { return nil }
            throw missingProofError
        case .negotiate:
            let fields = headers.all(place.isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
            guard negotiate != nil, !fields.isEmpty,
                let challenge = AuthenticateHeader.challenges(in: fields).first(where: { $0.isScheme("Negotiate") })
            else { return nil }
            return AuthenticationOffer.token(of: challenge)
        }
    }

    private var missingProofError: LoadError {
        LoadError(
            .badServerResponse,
            "\(place.origin.host) accepted the credential, but did not prove that it knows it (mutual authentication)"
        )
    }

    /// Returns the holder whose connection carries the next request: the handshake's holder, or that of an authenticated
    /// connection; nil if any connection may carry it.
    func chooseHolder(for route: Route, in pool: ConnectionPool, limit: Int) -> ConnectionHolder? {
        guard let proof, let shared = proof.holder else { return nil }
        if holder == nil || holder == shared {
            let ready = route.held(by: shared)
            if pool.hasIdle(ready) || pool.count(ready) >= limit { return shared }
            beginNTLM()
        }
        guard let holder else { return shared }
        // The most recently used connection is probably the one that is not, or no longer, authenticated.
        if wantsConnection { pool.moveIdle(route.held(by: shared), to: route.held(by: holder)) }
        wantsConnection = false
        return holder
    }

    /// Completes the handshake: its connection joins those that the credential has authenticated.
    func settle(_ route: Route, in pool: ConnectionPool) {
        guard let own = holder, let shared = proof?.holder, own != shared else { return }
        pool.move(route.held(by: own), to: route.held(by: shared))
        holder = shared
    }

    /// Handles the refusal of the credential.
    func refused() {
        token = nil
        holder = nil
        negotiate = nil
        isOnTrial = false
    }

    private static func binding(_ facts: ConnectionFacts?) -> ChannelBinding? {
        guard let der = facts?.serverCertificate, let certificate = CertificateFacts(der: der) else { return nil }
        return .tlsServerEndPoint(hash: certificate.tlsServerEndPointHash)
    }

    /// Returns the current time in units of 100 ns since 1601.
    private static func fileTime() -> UInt64 { UInt64(max(0, Date().timeIntervalSince1970 + 11_644_473_600) * 10_000_000) }
}

extension Route {
    /// Returns the same route, limited to a holder's connections.
    func held(by holder: ConnectionHolder?) -> Route {
        guard holder != nil || details != nil else { return self }
        var route = self
        route.details = RouteDetails(
            proxy: proxy, isForwarded: details?.isForwarded ?? false, judge: details?.judge, holder: holder,
            needs: details?.needs, tunnelCredential: details?.tunnelCredential,
            versions: details?.versions ?? .all, hasAlternatives: details?.hasAlternatives ?? false
        )
        return route
    }
}
