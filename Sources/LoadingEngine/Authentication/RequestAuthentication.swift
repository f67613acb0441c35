// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// The authentication of a message: the fields that it carries, and the connections that it may use.
enum RequestAuthentication {
    /// Prepares what takes time: the body's hash for Digest, and Negotiate's first token.
    static func prepare(_ hop: Hop, in control: LoadControl) async throws(LoadError) {
        let mustBegin = hop.authentication.mustWait
        for authenticator in [hop.authentication.server, hop.authentication.proxy] {
            guard let authenticator, authenticator.bodyHash == nil, authenticator.proof?.digest?.needsBody == true else {
                continue
            }
            _ = try await hashBody(of: hop, for: authenticator, in: control)
        }
        guard mustBegin else { return }
        // If this fails, the request is sent without a token, and the server responds with a challenge.
        if let server = hop.authentication.server, server.mustBeginNegotiate {
            _ = try await server.beginNegotiate(nil, in: control)
        }
        if let proxy = hop.authentication.proxy, proxy.mustBeginNegotiate { _ = try await proxy.beginNegotiate(nil, in: control) }
    }

    /// Chooses the credentials that a hop carries preemptively.
    @inline(__always)
    static func adopt(_ hop: Hop, in load: Load) throws(LoadError) {
        if let proxies = load.proxies, hop.authentication.proxy != nil || hop.request.hasField(.proxyAuthorization) {
            try turn(hop, by: proxies, in: load)
        }
        guard !load.session.credentials.isEmpty else { return }
        try adopt(load.session.credentials, for: hop, to: PrepareStage.target(of: hop, in: load), by: load.proxies)
    }

    @inline(never)
    private static func turn(_ hop: Hop, by proxies: SessionProxies, in load: Load) throws(LoadError) {
        hop.authentication.turn(to: try ProxyChoice.server(for: PrepareStage.target(of: hop, in: load), hop, proxies))
    }

    @inline(never)
    private static func adopt(
        _ credentials: SessionCredentials, for hop: Hop, to target: RequestTarget, by proxies: SessionProxies?
    ) throws(LoadError) {
        if hop.authentication.server == nil, !hop.request.hasField(.authorization) {
            let place = AuthenticationScopes.Peer(target.origin)
            if let proof = credentials.proof(for: place, path: target.path) {
                hop.authentication.server = Authenticator(place)
                hop.authentication.server?.use(proof)
            }
        }
        // The request's own field takes precedence until it is refused.
        let hasOwn = hop.request.hasField(.proxyAuthorization) && hop.authentication.maySendOwnField
        if hop.authentication.proxy == nil, !hasOwn, !target.origin.isSecure,
            let proxy = try ProxyChoice.server(for: target, hop, proxies),
            proxy.forwardsRequests(isSecure: false)
        {
            let place = AuthenticationScopes.Peer(of: proxy, kind: "http")
            if let proof = credentials.proof(for: place, path: "/") {
                hop.authentication.proxy = Authenticator(place)
                hop.authentication.proxy?.use(proof)
            }
        }
    }

    /// Adds `Authorization` and `Proxy-Authorization`.
    @inline(never)
    static func addFields(
        to fields: inout [(String, String)], _ hop: Hop, _ target: RequestTarget, _ body: OutgoingBody, isForwarded: Bool
    ) {
        if case .data(let data) = body {
            let hash: @Sendable (DigestAlgorithm) -> String = { $0.hash(Array(data)) }
            hop.authentication.server?.bodyHash = hash
            hop.authentication.proxy?.bodyHash = hash
        }
        if let value = hop.authentication.server?.field(method: hop.request.method, uri: target.path) {
            fields.append(("Authorization", value))
        }
        if isForwarded, let value = hop.authentication.proxy?.field(method: hop.request.method, uri: target.absoluteForm) {
            fields.append(("Proxy-Authorization", value))
        }
    }

    /// Returns the credential that a request carries, in the form in which a cache stores it.
    @inline(__always)
    static func credential(of hop: Hop) -> SentFields.Credential {
        hop.authentication.server == nil ? .field : answered(hop)
    }

    @inline(never)
    private static func answered(_ hop: Hop) -> SentFields.Credential {
        guard let proof = hop.authentication.server?.proof else { return .field }
        // Basic sends the same value with each request, so the value can be compared like a field that the app set.
        if proof.scheme == .basic { return .field }
        guard let user = proof.credential?.user, let password = proof.credential?.password else { return .unknown }
        return .text("\(user)\0\(password)")
    }

    /// Whether the server has just asked for the hop's credential and has not accepted or refused it yet.
    static func isUntried(_ hop: Hop) -> Bool { hop.authentication.server?.wasAsked ?? false }

    @inline(__always)
    static func route(
        to target: RequestTarget, _ hop: Hop, _ pool: ConnectionPool, in load: Load
    ) throws(LoadError) -> Route {
        let origin = target.origin
        let switches = load.asksToSwitch(hop)
        let plain = Route(isSecure: origin.isSecure, host: origin.host, port: origin.port)
        if load.session.proxies == nil, hop.authentication.server == nil, load.order.connectionHolder == nil,
            hop.request.needs == .none, load.session.narrowedOrigins.isEmpty, !switches, hop.authentication.renegotiating == nil,
            !bindsConnection(hop, isForwarded: false, in: load)
        {
            return plain
        }
        // A forwarding proxy does not switch protocols: the handshake goes through a tunnel (RFC 6455, section 4.1).
        let proxy = try ProxyChoice.server(for: target, hop, load.proxies).map {
            switches && $0.forwardsRequests(isSecure: origin.isSecure) ? $0.tunnelling : $0
        }
        let known = plain.isSecure ? load.session.narrowedOrigins[origin] ?? .all : .all
        if known.mayShare, load.kind?.mayUseExtendedConnect == true, hop.authentication.server == nil,
            hop.authentication.proxy == nil
        {
            // An established connection that supports extended CONNECT (RFC 8441) provides a stream; no connection is made for this
            // purpose.
            let shared = special(plain, hop, pool, by: proxy, .all, in: load)
            if pool.allowsExtendedConnect(shared) { return shared }
        }
        return special(plain, hop, pool, by: proxy, switches ? .http1 : known, in: load)
    }

    @inline(never)
    private static func special(
        _ plain: Route, _ hop: Hop, _ pool: ConnectionPool, by proxy: ProxyServer?, _ versions: HTTPVersions, in load: Load
    ) -> Route {
        var route = plain
        let isForwarded = proxy?.forwardsRequests(isSecure: plain.isSecure) ?? false
        if let proxy, isForwarded { route = Route(isSecure: false, host: proxy.host, port: proxy.port) }
        let judge = plain.isSecure ? load.order.connectionHolder : nil
        let session = load.session.policy.needs
        let needs = hop.request.needs.joined(with: session)
        if proxy != nil || judge != nil || needs != session || versions != .all {
            route.details = RouteDetails(
                proxy: proxy, isForwarded: isForwarded, judge: judge, needs: needs == session ? nil : needs,
                tunnelCredential: tunnelCredential(of: hop, for: proxy, isForwarded: isForwarded), versions: versions,
                hasAlternatives: hop.proxies.hasAlternatives
            )
        }
        let limit = load.session.policy.maximumConnectionsPerHost
        var holder =
            hop.authentication.renegotiating
            ?? hop.authentication.server?.chooseHolder(for: route, in: pool, limit: limit)
            ?? hop.authentication.proxy?.chooseHolder(for: route, in: pool, limit: limit)
        if holder == nil, bindsConnection(hop, isForwarded: isForwarded, in: load) {
            holder = load.order.connectionHolder ?? load.session.ownFieldHolder
        }
        if let holder { route = route.held(by: holder) }
        hop.authentication.route = route
        return route
    }

    /// Whether the message carries a field of the app's own that may authenticate its connection (NTLM, Negotiate).
    ///
    /// Only the messages of the same delegate that carry such a field, too, then use the connection.
    @inline(__always)
    private static func bindsConnection(_ hop: Hop, isForwarded: Bool, in load: Load) -> Bool {
        (hop.request.hasFields || load.session.headers.hasCredentials) && hasBindingField(hop, isForwarded: isForwarded, in: load)
    }

    @inline(never)
    private static func hasBindingField(_ hop: Hop, isForwarded: Bool, in load: Load) -> Bool {
        if !hop.authentication.isAnswered {
            let sessions = hop.followUp.leftOrigin ? nil : load.session.headers.sessionValue("Authorization")
            if let own = hop.request.headers.first(.authorization) ?? sessions, AuthenticationScheme.bindsConnection(own) {
                return true
            }
        }
        guard isForwarded, hop.authentication.maySendOwnField, let own = hop.request.headers.first(.proxyAuthorization) else {
            return false
        }
        return AuthenticationScheme.bindsConnection(own)
    }

    /// Returns the request's own credential for the proxy that opens its tunnel.
    private static func tunnelCredential(of hop: Hop, for proxy: ProxyServer?, isForwarded: Bool) -> TunnelCredential? {
        guard let proxy, !isForwarded, !proxy.isSOCKS, hop.authentication.maySendOwnField,
            let own = hop.request.headers.first(.proxyAuthorization)
        else { return nil }
        return TunnelCredential(own)
    }

    // MARK: Responses

    /// Prepares the next request after a 401 or 407; returns false if the response is to be delivered.
    @inline(never)
    static func answerChallenge(
        _ head: ResponseHead, _ answer: Answer, _ hop: Hop, _ url: URL, in load: Load
    ) async throws(LoadError) -> Bool {
        guard let target = try? RequestTarget(url) else { return false }
        var context: ChallengeDesk.Context
        if head.status == 407 {
            guard let route = hop.authentication.route, let proxy = route.proxy, route.details?.isForwarded == true else {
                return false
            }
            let authenticator =
                hop.authentication.proxy ?? Authenticator(AuthenticationScopes.Peer(of: proxy, kind: "http"))
            hop.authentication.proxy = authenticator
            context = ChallengeDesk.Context(
                authenticator: authenticator, challenges: head.headers.octetTexts(of: "Proxy-Authenticate"), path: "/",
                given: proxy.credential
            )
        } else {
            let authenticator =
                hop.authentication.server ?? Authenticator(AuthenticationScopes.Peer(target.origin))
            hop.authentication.server = authenticator
            context = ChallengeDesk.Context(
                authenticator: authenticator, challenges: head.headers.octetTexts(of: "WWW-Authenticate"), path: target.path
            )
            if let user = target.user {
                context.given = LoadCredential(.password(user: user, password: target.password ?? ""), persistence: .forSession)
            }
        }
        context.response = answer.response
        context.facts = answer.transaction.exchange?.facts
        let willRetry = try await ChallengeDesk.answer(context, in: load)
        guard willRetry, context.authenticator.proof?.digest?.needsBody == true else { return willRetry }
        return try await hashBody(of: hop, for: context.authenticator, in: load.control)
    }

    /// Provides the hash of the body for Digest's `auth-int`; returns false if the body cannot be hashed.
    ///
    /// A stream cannot be hashed before it is sent.
    private static func hashBody(
        of hop: Hop, for authenticator: Authenticator, in control: LoadControl
    ) async throws(LoadError) -> Bool {
        switch hop.request.body {
        case .none, .data: return true
        case .stream, .streamOnDemand: return false
        case .file(let path):
            guard let algorithm = authenticator.proof?.digest?.algorithm else { return false }
            guard let hash = try await BodyHash.ofFile(path, hop.errand?.part, algorithm, in: control) else { return false }
            authenticator.bodyHash = { _ in hash }
            return true
        }
    }

    /// Handles a response other than a challenge: completes mutual authentication, and remembers the accepted credential.
    @inline(never)
    static func settle(_ answer: Answer, _ hop: Hop, _ pool: ConnectionPool, in load: Load) async throws(LoadError) {
        guard let head = answer.response.head else { return }
        if let proxy = hop.authentication.proxy, proxy.isOnTrial, head.status != 407 {
            try await settle(proxy, head, answer, hop, path: "/", pool, in: load)
        }
        if let server = hop.authentication.server, server.isOnTrial, head.status != 401, head.status != 407 {
            let path = hop.request.url.flatMap { try? RequestTarget($0) }?.path ?? "/"
            try await settle(server, head, answer, hop, path: path, pool, in: load)
        }
    }

    private static func settle(
        _ authenticator: Authenticator, _ head: ResponseHead, _ answer: Answer, _ hop: Hop, path: String, _ pool: ConnectionPool,
        in load: Load
    ) async throws(LoadError) {
        // The authentication fields of a stored response belong to the exchange that produced it.
        let headers = answer.transaction.exchange == nil ? HeaderBlock() : head.headers
        do {
            try await authenticator.accepted(headers, in: load.control)
        } catch {
            answer.body.cancel()
            var error = error
            if error.url == nil { error.url = hop.request.url }
            throw error
        }
        ChallengeDesk.accepted(authenticator, path: path, in: load)
        if let route = hop.authentication.route { authenticator.settle(route, in: pool) }
    }
}

extension RequestTarget {
    /// The URL in absolute form, as on the request line to a proxy (RFC 9112, section 3.2.2).
    var absoluteForm: String { "\(origin.scheme)://\(hostHeader)\(path)" }
}
