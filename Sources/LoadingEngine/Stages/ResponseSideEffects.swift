// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// Stores what a response asks a session to remember: cookies, the requirement to use TLS, and alternative services.
///
/// Every response from the network is processed here, including informational ones and those that are followed up.
enum ResponseSideEffects {
    /// Processes the fields.
    ///
    /// `isForApp` means that the app stores the cookies itself.
    static func keep(_ headers: HeaderBlock, of hop: Hop, _ exchange: Exchange, in session: SessionFacts, isForApp: Bool) {
        if headers.contains(.setCookie) { keepCookies(headers, of: hop, exchange, in: session, isForApp: isForApp) }
        if headers.contains(.strictTransportSecurity) { keepSecurity(headers, of: hop, exchange, in: session) }
        if headers.contains(.altSvc) { keepAlternatives(headers, of: hop, exchange, in: session) }
    }

    @inline(never)
    private static func keepCookies(
        _ headers: HeaderBlock, of hop: Hop, _ exchange: Exchange, in session: SessionFacts, isForApp: Bool
    ) {
        // `httpShouldSetCookies` only concerns sending; the acceptance policy decides which cookies are stored.
        guard hop.request.handlesCookies else { return }
        if isForApp {
            hop.cookiesForApp += headers.octetTexts(of: "Set-Cookie")
            return
        }
        guard let store = session.stores.cookies, let request = request(of: hop) else { return }
        store.store(
            headers.octetTexts(of: "Set-Cookie"), from: request, policy: policy(session.policy.cookieAcceptance),
            now: session.seconds(exchange.control.lastProgress)
        )
    }

    private static func request(of hop: Hop) -> CookieRequest? {
        guard let url = hop.request.url else { return nil }
        return CookieRequest(
            url: url, mainDocumentURL: hop.request.mainDocumentURL, method: hop.request.method,
            partition: hop.request.cookiePartition
        )
    }

    private static func policy(_ acceptance: SessionPolicy.CookieAcceptance) -> CookieAcceptPolicy {
        switch acceptance {
        case .always: .always
        case .never: .never
        case .onlyFromMainDocumentDomain: .onlyFromMainDocumentDomain
        }
    }

    /// Stores the HSTS policy of the first `Strict-Transport-Security` field, if "there are no underlying secure transport errors
    /// or warnings" (RFC 6797, section 8.1): the app's approval of a certificate is not enough.
    ///
    /// A policy from a server that only the session's own roots trust applies only to this session.
    @inline(never)
    private static func keepSecurity(
        _ headers: HeaderBlock, of hop: Hop, _ exchange: Exchange, in session: SessionFacts
    ) {
        guard session.policy.usesStrictTransportSecurity, let shared = session.stores.strictTransportSecurity,
            let field = headers.first(.strictTransportSecurity), let url = hop.request.url, let origin = Origin(url),
            origin.isSecure, exchange.facts.isVerified
        else { return }
        let isForEveryone = ResponseTrust.isForEveryone(exchange.facts, hop.request, in: session)
        let store = isForEveryone ? shared : session.makeOwnSecurityIfNeeded()
        store.note(
            field, host: origin.host, isVerified: exchange.facts.isVerified, now: session.seconds(exchange.control.lastProgress)
        )
    }

    /// Stores the origin's alternative services.
    ///
    /// "An Alt-Svc header field in a 421 (Misdirected Request) response MUST be ignored" (RFC 7838, section 6).
    @inline(never)
    private static func keepAlternatives(
        _ headers: HeaderBlock, of hop: Hop, _ exchange: Exchange, in session: SessionFacts
    ) {
        guard exchange.head?.status != 421, let origin = hop.request.url.flatMap(Origin.init) else { return }
        session.http3.directory.alternatives.note(
            headers, origin: origin, isVerified: exchange.facts.isVerified, now: session.seconds(exchange.control.lastProgress)
        )
    }

    /// Returns the `Set-Cookie` fields for an app that stores the cookies itself; nil if there is no such field, or if the app
    /// does not accept the cookies.
    static func cookiesForApp(_ hop: Hop, acceptance: SessionPolicy.CookieAcceptance) -> [String]? {
        let fields = hop.cookiesForApp
        hop.cookiesForApp = []
        guard !fields.isEmpty, acceptance != .never else { return nil }
        if acceptance == .onlyFromMainDocumentDomain, request(of: hop)?.isThirdParty ?? true { return nil }
        return fields
    }
}
