// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// Turns a request into the message that is sent: target, fields, body.
final class PrepareStage: LoadStage {
    let pool: ConnectionPool

    init(pool: ConnectionPool) { self.pool = pool }

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        if !load.session.storesAreReady { try await LoopSlot.run(in: load.control, by: load.session.stores.prepare) {} }
        if load.wants(.cookies), Self.usesCookies(hop, in: load.session),
            case .cookies(let cookies) = try await load.ask(.cookies(hop.request))
        {
            hop.preparation.cookies = cookies
        }
        if let proxies = load.proxies {
            let target = try Self.target(of: hop, in: load)
            try await ProxyChoice.prepare(hop, to: target, by: proxies, pool, in: load)
        }
        try RequestAuthentication.adopt(hop, in: load)
        try await RequestAuthentication.prepare(hop, in: load.control)
        try prepare(hop, try await body(of: hop, in: load), in: load)
        return try await next.answer(hop, in: load)
    }

    /// Returns the body to send with the hop's message.
    ///
    /// If the message was never sent, for example because a proxy was unreachable, the message's stream is still unread and is
    /// reused.
    private func body(of hop: Hop, in load: Load) async throws(LoadError) -> OutgoingBody {
        if let unsent = hop.preparation.message?.outgoing.body, case .stream = unsent { return unsent }
        return try await UploadBody.open(hop.request.body, of: hop, in: load)
    }

    /// Composes the message if that is possible without waiting: there is no body to open and no question to ask the app.
    @inline(never)
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep {
        try Self.refuseContent(of: hop.request)
        guard load.session.storesAreReady, !load.wants(.cookies) || !Self.usesCookies(hop, in: load.session) else {
            return .needsTask
        }
        if let proxies = load.proxies {
            guard try !ProxyChoice.mustWait(hop, to: Self.target(of: hop, in: load), by: proxies) else { return .needsTask }
        }
        try RequestAuthentication.adopt(hop, in: load)
        guard !hop.authentication.mustWait else { return .needsTask }
        switch hop.request.body {
        case .none: try prepare(hop, .none, in: load)
        case .data(let data): try prepare(hop, UploadBody.part(.data(data), of: hop), in: load)
        case .file, .stream, .streamOnDemand: return .needsTask
        }
        return .proceed
    }

    /// Rejects a GET with a body, as Apple's system does (RFC 9110, section 9.3.1, only advises against it).
    private static func refuseContent(of request: LoadRequest) throws(LoadError) {
        switch request.body {
        case .none: return
        case .data(let data) where data.isEmpty: return
        case .data, .file, .stream, .streamOnDemand:
            guard request.method == "GET", request.url != nil else { return }
            throw LoadError(.dataLengthExceedsMaximum, "a GET request cannot have a body", url: request.url)
        }
    }

    private func prepare(_ hop: Hop, _ body: OutgoingBody, in load: Load) throws(LoadError) {
        let known = try Self.known(hop, in: load)
        let target = known.target
        let length = body.length
        var extra: [(String, String)] = []
        if let cookies = Self.cookies(for: target, hop, in: load.session, at: load.control.lastProgress) {
            extra.append(("Cookie", cookies))
        }
        let route = try RequestAuthentication.route(to: target, hop, pool, in: load)
        let isForwarded = route.details?.isForwarded ?? false
        var method = hop.request.method
        if let kind = load.kind {
            try kind.addFields(to: &extra, for: hop, body, by: route)
            method = kind.method(of: hop.request)
        }
        let switches = load.asksToSwitch(hop)
        if switches, !load.switchesProtocols {
            extra += hop.request.headers.all("Upgrade").map { ("Upgrade", $0) } + [("Connection", "Upgrade")]
        }
        if hop.authentication.isUsed {
            RequestAuthentication.addFields(to: &extra, hop, target, body, isForwarded: isForwarded)
        }
        let headers: HeaderBlock
        if length == nil, extra.isEmpty, !hop.request.hasFields, hop.request.method == "GET",
            !load.session.headers.hasCredentials || !hop.followUp.leftOrigin && !hop.authentication.isAnswered,
            let plain = known.plainFields(by: load.session.headers)
        {
            headers = plain
        } else {
            headers = Self.compose(hop, target, length, extra, isForwarded: isForwarded, in: load)
        }
        var body = body
        if case .file(var file) = body {
            file.usesSendfile = !target.isSecure && route.proxy?.kind != .https
            body = .file(file)
        }
        hop.preparation.message = PreparedMessage(
            OutgoingMessage(
                head: RequestHead(
                    method: method, target: isForwarded ? target.absoluteForm : target.path, headers: headers),
                // Only an `Expect` field that the app itself set delays the body.
                body: body, expectsContinue: (length ?? 0) != 0 && headers.hasToken("100-continue", in: .expect),
                priority: load.order.priority, asksToSwitch: switches
            ),
            target: target,
            route: route
        )
    }

    private static func compose(
        _ hop: Hop, _ target: RequestTarget, _ length: Int64?, _ extra: [(String, String)], isForwarded: Bool,
        in load: Load
    ) -> HeaderBlock {
        var headers = load.session.headers.compose(
            request: hop.request.headers, target: target, method: hop.request.method, bodyLength: length, extra: extra,
            leftOrigin: hop.followUp.leftOrigin, isAnswered: hop.authentication.isAnswered,
            isForProxy: isForwarded && hop.authentication.maySendOwnField
        )
        if hop.followUp.withoutExpectation { headers.remove("Expect") }
        // If the app set handshake fields itself, the server could choose an option that the library does not handle.
        load.kind?.removeForeignFields(from: &headers)
        return headers
    }

    /// Returns the hop's target, upgraded to TLS if its host requires that (RFC 6797).
    ///
    /// Throws if App Transport Security forbids the target.
    static func target(of hop: Hop, in load: Load) throws(LoadError) -> RequestTarget { try known(hop, in: load).target }

    private static func known(_ hop: Hop, in load: Load) throws(LoadError) -> ParsedTarget {
        var known = try known(hop, by: load.session)
        if let kind = load.kind {
            try kind.check(known.target, of: hop)
        } else {
            try LoadKind.refuseWebSocket(known.target, of: hop)
        }
        if !known.target.isSecure, load.session.policy.usesStrictTransportSecurity,
            let store = load.session.stores.strictTransportSecurity,
            store.requiresUpgrade(host: known.target.origin.host, now: load.now)
                || load.session.ownSecurity?.requiresUpgrade(host: known.target.origin.host, now: load.now) ?? false
        {
            try SecureUpgrade.upgrade(hop, in: load)
            known = try self.known(hop, by: load.session)
        }
        // PAC scripts are exempt from ATS: on Apple's platforms, the system fetches them, and they only choose a route.
        if let reason = known.refusal, !load.order.isForProxies {
            throw LoadError(.appTransportSecurityRequiresSecureConnection, reason, url: hop.request.url)
        }
        return known
    }

    private static func known(_ hop: Hop, by session: SessionFacts) throws(LoadError) -> ParsedTarget {
        guard let url = hop.request.url else { throw LoadError(.unsupportedURL, "the request has no URL") }
        let text = url.absoluteString
        if let last = session.lastTarget, last.text == text { return last }
        do {
            let target = try RequestTarget(text: text)
            var refusal: String?
            if case .refused(let reason) = session.security.verdict(isSecure: target.origin.isSecure, host: target.origin.host) {
                refusal = reason
            }
            let known = ParsedTarget(text, target, refusal: refusal)
            if target.user == nil, target.password == nil { session.lastTarget = known }
            return known
        } catch {
            throw Self.error(error, url)
        }
    }

    // MARK: Cookies

    private static func usesCookies(_ hop: Hop, in session: SessionFacts) -> Bool {
        session.policy.usesCookies && hop.request.handlesCookies
    }

    /// Returns the `Cookie` field: cookies that the app set itself, then those of the session's storage.
    static func cookies(
        for target: RequestTarget, _ hop: Hop, in session: SessionFacts, at instant: NIODeadline
    ) -> String? {
        guard usesCookies(hop, in: session) else { return nil }
        let kept: String?
        if let store = session.stores.cookies {
            kept = store.header(
                for: CookieRequest(
                    target: target, mainDocumentURL: hop.request.mainDocumentURL, method: hop.request.method,
                    partition: hop.request.cookiePartition
                ),
                now: session.seconds(instant)
            )
        } else {
            kept = hop.preparation.cookies
        }
        guard let kept else { return nil }
        // The `Cookie` in `httpAdditionalHeaders` applies to requests that do not set the field.
        let own =
            hop.request.headers.octetText(.cookie) ?? (hop.followUp.leftOrigin ? nil : session.headers.sessionValue("Cookie"))
        guard let own, !own.isEmpty else { return kept }
        return own + "; " + kept
    }

    private static func error(_ error: RequestTarget.Malformed, _ url: URL) -> LoadError {
        switch error {
        case .unsupportedScheme: LoadError(.unsupportedURL, "the scheme of \(PrintableURL.text(url)) is not supported", url: url)
        default: LoadError(.badURL, "\(PrintableURL.text(url)) is not a URL that can be loaded: \(error.message)", url: url)
        }
    }
}
