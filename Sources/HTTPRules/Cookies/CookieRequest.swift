// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The properties of a request that determine which cookies the request sends and its response may set.
package struct CookieRequest: Sendable {
    /// The relation of a request to the site that the user is on (RFC 6265bis, section 5.2).
    package enum Site: Hashable, Sendable {
        case sameSite
        case crossSite(topLevelNavigation: Bool)
    }

    /// The host in lowercase, as A-labels, without brackets.
    package var host: String
    /// The path of the URL without its query; never empty.
    package var path: String
    package var isSecure: Bool
    package var port: Int
    package var method: String
    package var site: Site
    package var partition: String?
    /// Whether the URL has a different registrable domain than the main document.
    package var isThirdParty: Bool

    package init(
        host: String,
        path: String = "/",
        isSecure: Bool,
        port: Int? = nil,
        method: String = "GET",
        site: Site = .sameSite,
        partition: String? = nil,
        isThirdParty: Bool = false
    ) {
        self.host = host
        self.path = path
        self.isSecure = isSecure
        self.port = port ?? (isSecure ? 443 : 80)
        self.method = method
        self.site = site
        self.partition = partition
        self.isThirdParty = isThirdParty
    }

    /// Returns nil if the URL is neither an HTTP nor a WebSocket URL.
    ///
    /// Without a main document the request "has no client" and is same-site. If the main document's URL is not an HTTP URL, the
    /// request is cross-site.
    package init?(url: URL, mainDocumentURL: URL? = nil, method: String = "GET", partition: String? = nil) {
        guard let target = try? RequestTarget(url) else { return nil }
        self.init(target: target, mainDocumentURL: mainDocumentURL, method: method, partition: partition)
    }

    /// Creates the request from a URL that is already parsed.
    package init(target: RequestTarget, mainDocumentURL: URL?, method: String, partition: String?) {
        let end = target.path.utf8.firstIndex(of: UInt8(ascii: "?")) ?? target.path.endIndex
        self.init(
            host: target.origin.host,
            path: end == target.path.endIndex ? target.path : String(target.path[..<end]),
            isSecure: target.origin.isSecure,
            port: target.origin.port,
            method: method,
            partition: partition
        )
        guard let mainDocumentURL else { return }
        let main = Origin(mainDocumentURL)
        isThirdParty = main.map { !Self.haveSameDomain($0.host, host) } ?? true
        // "Same site" includes the scheme, whereas "third party" does not.
        if isThirdParty || main?.isSecure != isSecure { site = .crossSite(topLevelNavigation: false) }
    }

    private static func haveSameDomain(_ one: String, _ other: String) -> Bool {
        if Cookie.areEqual(one, other) { return true }
        guard !HostName.isAddress(one), !HostName.isAddress(other), let domain = PublicSuffixList.registrableDomain(of: one),
            let otherDomain = PublicSuffixList.registrableDomain(of: other)
        else { return false }
        return Cookie.areEqual(domain, otherDomain)
    }

    /// Whether the method is safe (RFC 9110, section 9.2.1).
    private var isSafe: Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// Whether the response may set a cookie with this `SameSite` value (section 5.7, step 18).
    func maySet(_ sameSite: SetCookie.SameSite?, treatsDefaultAsLax: Bool) -> Bool {
        switch (site, sameSite ?? (treatsDefaultAsLax ? .lax : SetCookie.SameSite.none)) {
        case (.sameSite, _), (.crossSite(topLevelNavigation: true), _), (.crossSite, .none): true
        case (.crossSite, .lax), (.crossSite, .strict): false
        }
    }

    /// Whether the request sends a cookie with this `SameSite` value (section 5.8.3, step 1).
    func maySend(_ sameSite: SetCookie.SameSite?, treatsDefaultAsLax: Bool) -> Bool {
        switch (site, sameSite ?? (treatsDefaultAsLax ? .lax : SetCookie.SameSite.none)) {
        case (.sameSite, _), (.crossSite, .none): true
        case (.crossSite(let isNavigation), .lax): isNavigation && isSafe
        case (.crossSite, .strict): false
        }
    }
}
