// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Upgrades a request to TLS because its host requires that (RFC 6797, section 8.3), before anything is sent.
///
/// The metrics show the upgrade as a transaction that used no network: its response is a 307 with `Non-Authoritative-Reason: HSTS`,
/// as in browsers. The upgrade is not a redirect for the app: the delegate is not asked, and the upgrade does not count as a
/// redirect.
enum SecureUpgrade {
    @inline(never)
    static func upgrade(_ hop: Hop, in load: Load) throws(LoadError) {
        guard let url = hop.request.url, let secure = secure(url) else {
            throw LoadError(
                .appTransportSecurityRequiresSecureConnection, "the host requires TLS (RFC 6797), but the URL cannot be upgraded",
                url: hop.request.url
            )
        }
        let transaction = Transaction(request: hop.request, now: load.control.lastProgress)
        let headers = HeaderBlock([
            (name: "Location", value: secure.absoluteString), (name: "Non-Authoritative-Reason", value: "HSTS"),
        ])
        transaction.response = LoadResponse(
            url: url, kind: .http(ResponseHead(status: 307, reason: "Internal Redirect", headers: headers)), expectedLength: 0
        )
        transaction.source = .localCache
        transaction.end = load.control.lastProgress
        load.begin(transaction)
        // A main document on the same host is upgraded, too, so that the request remains a same-site request.
        var document = hop.request.mainDocumentURL
        if let known = document, known.scheme?.lowercased() == "http", known.host() == url.host() {
            document = self.secure(known) ?? known
        }
        hop.upgrade(to: secure, mainDocumentURL: document)
        load.tell(.requestChanged(hop.request))
    }

    /// Returns the URL with the secure scheme.
    ///
    /// "The UA MUST replace the URI scheme with https … If the URI contains an explicit port component of 80, the UA MUST convert
    /// the port component to be 443 … otherwise the port component MUST be preserved".
    ///
    /// A WebSocket's scheme becomes `wss`.
    private static func secure(_ url: URL) -> URL? {
        guard var parts = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true) else { return nil }
        parts.scheme = parts.scheme?.lowercased() == "ws" ? "wss" : "https"
        if parts.port == 80 { parts.port = nil }
        return parts.url
    }
}
