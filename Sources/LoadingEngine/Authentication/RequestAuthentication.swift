//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// What a message carries of who sends it, and by whose connections it goes.
enum RequestAuthentication {
    struct HopPart {
        /// Which proxy the request's own `Proxy-Authorization` is for.
        private enum Addressee {
            /// Whichever the hop turns to first.
            case first
            /// That of the hop before; nil where that was not sent through one.
            case proxy(of: RouteDetails?)
            /// None any more: the load turned to another, or to none, and what was for the first does not come back.
            case none
        }

        private var addressee = Addressee.first
        /// How the load authenticates with the server, and with a proxy, once one of them asked or is known to ask.
        fileprivate(set) var server: Authenticator?
        fileprivate(set) var proxy: Authenticator?
        /// The way the message takes, where it is not the plain one to its server.
        fileprivate(set) var route: Route?

        /// Whether the load authenticates with anybody.
        var isUsed: Bool { server != nil || proxy != nil }

        /// Whether the load answers a challenge of the server, be it one of an earlier load: no other `Authorization` is sent then.
        var isAnswered: Bool { server?.proof != nil }

        /// Whether there is something to make that takes waiting, by ``prepare(_:in:)``.
        var mustWait: Bool { server?.mustBeginNegotiate ?? false || proxy?.mustBeginNegotiate ?? false }

        /// Whether the load turned to another proxy than its first, or to none.
        var leftFirstProxy: Bool { if case .none = addressee { true } else { false } }

        /// Whether the request's own `Proxy-Authorization` is sent: its proxy is the one that it was for, and has not refused it.
        var mayShowOwn: Bool { !leftFirstProxy && proxy?.proof == nil }

        /// The hop goes another way: what was for the proxy stays with it.
        mutating func leftProxy() {
            proxy = nil
            addressee = .none
        }

        /// The hop goes through this proxy: what was for another is not said to it.
        fileprivate mutating func turn(to server: ProxyServer?) {
            if case .proxy(let earlier) = addressee {
                let isSame = server.flatMap { earlier?.proxy?.isSame(as: $0) } ?? false
                if !isSame { addressee = .none }
            }
            let place = server.flatMap { $0.isSOCKS ? nil : ChallengeDesk.place(of: $0, kind: "http") }
            if let proxy, place != proxy.place { self.proxy = nil }
        }

        /// The app gave the hop a `Proxy-Authorization` that the hop before did not have.
        mutating func saysAnew() {
            proxy = nil
            addressee = .first
        }

        /// What holds for the hop that a redirect leads to.
        var afterRedirect: HopPart {
            var part = HopPart()
            part.proxy = proxy
            // Without a route the hop was sent nowhere.
            part.addressee = leftFirstProxy ? .none : route.map { .proxy(of: $0.details) } ?? addressee
            return part
        }
    }

    /// Makes what takes waiting: the first token of Negotiate.
    static func prepare(_ hop: Hop, in control: LoadControl) async throws(LoadError) {
        let mustBegin = hop.authentication.mustWait
        for authenticator in [hop.authentication.server, hop.authentication.proxy] {
            guard let authenticator, authenticator.bodyHash == nil, authenticator.proof?.digest?.needsBody == true else {
                continue
            }
            _ = try await hashBody(of: hop, for: authenticator, in: control)
        }
        guard mustBegin else { return }
        // Where it fails the request goes without, and is asked.
        if let server = hop.authentication.server, server.mustBeginNegotiate {
            _ = try await server.beginNegotiate(nil, in: control)
        }
        if let proxy = hop.authentication.proxy, proxy.mustBeginNegotiate { _ = try await proxy.beginNegotiate(nil, in: control) }
    }

    /// Finds what goes with a hop before it is asked for.
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
            let place = AuthenticationScopes.Place(target.origin)
            if let proof = credentials.proof(for: place, path: target.path) {
                hop.authentication.server = Authenticator(place)
                hop.authentication.server?.use(proof)
            }
        }
        // The request's own comes first, until it is refused.
        let hasOwn = hop.request.hasField(.proxyAuthorization) && hop.authentication.mayShowOwn
        if hop.authentication.proxy == nil, !hasOwn, !target.origin.isSecure,
            let proxy = try ProxyChoice.server(for: target, hop, proxies),
            proxy.isSentWhole(isSecure: false)
        {
            let place = ChallengeDesk.place(of: proxy, kind: "http")
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

    /// Whom the server takes a request for, as a cache needs to know it.
    @inline(__always)
    static func credential(of hop: Hop) -> SentFields.Credential {
        hop.authentication.server == nil ? .field : answered(hop)
    }

    @inline(never)
    private static func answered(_ hop: Hop) -> SentFields.Credential {
        guard let proof = hop.authentication.server?.proof else { return .field }
        // Basic sends the same value each time, as a request with its own field would.
        if proof.scheme == .basic { return .field }
        guard let user = proof.credential?.user, let password = proof.credential?.password else { return .unknown }
        return .text("\(user)\0\(password)")
    }

    /// Whether the credential of a hop is one that the server has just asked for, so that it is not known yet whether it is right.
    static func isUntried(_ hop: Hop) -> Bool { hop.authentication.server?.wasAsked ?? false }

    @inline(__always)
    static func route(
        to target: RequestTarget, _ hop: Hop, _ pool: ConnectionPool, in load: Load
    ) throws(LoadError) -> Route {
        let origin = target.origin
        let switches = load.asksToSwitch(hop)
        let plain = Route(isSecure: origin.isSecure, host: origin.host, port: origin.port)
        if load.session.proxies == nil, hop.authentication.server == nil, load.order.connectionHolder == nil,
            hop.request.needs == .none, load.session.http1Origins.isEmpty, !switches
        {
            return plain
        }
        // A forwarding proxy switches no protocol: what is switched to goes through a tunnel (RFC 6455, section 4.1).
        let proxy = try ProxyChoice.server(for: target, hop, load.proxies).map {
            switches && $0.isSentWhole(isSecure: origin.isSecure) ? $0.tunnelling : $0
        }
        var requiresHTTP1 = plain.isSecure && load.session.http1Origins.contains(origin)
        if let socket = load.webSocket, !requiresHTTP1, hop.authentication.server == nil, hop.authentication.proxy == nil {
            // A stream of a connection that stands and allows it (RFC 8441); none is made for that.
            let shared = special(
                plain, hop, pool, by: proxy, judge: load.order.connectionHolder, requiresHTTP1: false, load.session.policy)
            if !socket.needsHTTP1, pool.allowsExtendedConnect(shared) { return shared }
        }
        if switches { requiresHTTP1 = true }
        return special(
            plain, hop, pool, by: proxy, judge: load.order.connectionHolder, requiresHTTP1: requiresHTTP1, load.session.policy)
    }

    @inline(never)
    private static func special(
        _ plain: Route, _ hop: Hop, _ pool: ConnectionPool, by proxy: ProxyServer?, judge: ConnectionHolder?,
        requiresHTTP1: Bool, _ policy: SessionPolicy
    ) -> Route {
        var route = plain
        let isForwarded = proxy?.isSentWhole(isSecure: plain.isSecure) ?? false
        if let proxy, isForwarded { route = Route(isSecure: false, host: proxy.host, port: proxy.port) }
        let judge = plain.isSecure ? judge : nil
        let session = policy.needs
        let needs = hop.request.needs.joined(with: session)
        if proxy != nil || judge != nil || needs != session || requiresHTTP1 {
            route.details = RouteDetails(
                proxy: proxy, isForwarded: isForwarded, judge: judge, needs: needs == session ? nil : needs,
                tunnelCredential: tunnelCredential(of: hop, for: proxy, isForwarded: isForwarded), requiresHTTP1: requiresHTTP1,
                hasAlternatives: hop.proxies.hasAlternatives
            )
        }
        let limit = policy.maximumConnectionsPerHost
        let holder =
            hop.authentication.server?.chooseHolder(for: route, in: pool, limit: limit)
            ?? hop.authentication.proxy?.chooseHolder(for: route, in: pool, limit: limit)
        if let holder { route = route.held(by: holder) }
        hop.authentication.route = route
        return route
    }

    /// The credential that the request itself gives to the proxy that makes its tunnel.
    private static func tunnelCredential(of hop: Hop, for proxy: ProxyServer?, isForwarded: Bool) -> TunnelCredential? {
        guard let proxy, !isForwarded, !proxy.isSOCKS, hop.authentication.mayShowOwn,
            let own = hop.request.headers.first(.proxyAuthorization)
        else { return nil }
        return TunnelCredential(own)
    }

    // MARK: Answers

    /// The next request to make of a 401 or 407; false where it is to be delivered.
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
                hop.authentication.proxy ?? Authenticator(ChallengeDesk.place(of: proxy, kind: "http"))
            hop.authentication.proxy = authenticator
            context = ChallengeDesk.Context(
                authenticator: authenticator, challenges: head.headers.all("Proxy-Authenticate"), path: "/",
                given: proxy.credential
            )
        } else {
            let authenticator =
                hop.authentication.server ?? Authenticator(AuthenticationScopes.Place(target.origin))
            hop.authentication.server = authenticator
            context = ChallengeDesk.Context(
                authenticator: authenticator, challenges: head.headers.all("WWW-Authenticate"), path: target.path
            )
            if let user = target.user {
                context.given = LoadCredential(.password(user: user, password: target.password ?? ""), persistence: .forSession)
            }
        }
        context.response = answer.response
        context.facts = answer.transaction.exchange?.facts
        let goesOn = try await ChallengeDesk.answer(context, in: load)
        guard goesOn, context.authenticator.proof?.digest?.needsBody == true else { return goesOn }
        return try await hashBody(of: hop, for: context.authenticator, in: load.control)
    }

    /// With `auth-int` Digest covers the body; that of a stream cannot be known before it is sent.
    private static func hashBody(
        of hop: Hop, for authenticator: Authenticator, in control: LoadControl
    ) async throws(LoadError) -> Bool {
        switch hop.request.body {
        case .none, .data: return true
        case .stream, .streamOnDemand: return false
        case .file(let path):
            guard let algorithm = authenticator.proof?.digest?.algorithm else { return false }
            guard let hash = try await BodyHash.ofFile(path, hop.upload?.part, algorithm, in: control) else { return false }
            authenticator.bodyHash = { _ in hash }
            return true
        }
    }

    /// The server answered with something else than a challenge: checks what it says of itself, and remembers what it accepted.
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
        // What a stored response says of itself belongs to the exchange that it came by.
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
    /// As it stands on the request line to a proxy (RFC 9112, section 3.2.2).
    var absoluteForm: String { "\(origin.scheme)://\(hostHeader)\(path)" }
}
