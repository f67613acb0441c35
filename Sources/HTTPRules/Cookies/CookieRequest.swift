//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// Who asks: what a lookup or a store needs to know of a request.
package struct CookieRequest: Sendable {
    /// How a request stands to the site the user is on (RFC 6265bis, section 5.2).
    package enum Site: Hashable, Sendable {
        case sameSite
        case crossSite(topLevelNavigation: Bool)
    }

    /// In lower case, as A-labels, without brackets.
    package var host: String
    /// Of the URL, without its query; never empty.
    package var path: String
    package var isSecure: Bool
    package var port: Int
    package var method: String
    package var site: Site
    package var partition: String?
    /// Whether the URL is of another registrable domain than the main document.
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

    /// Nil where the URL is none of HTTP's or WebSocket's.
    ///
    /// Without a main document the request "has no client", and is of its own site. One whose URL is no web page's is another site.
    package init?(url: URL, mainDocumentURL: URL? = nil, method: String = "GET", partition: String? = nil) {
        guard let target = try? RequestTarget(url) else { return nil }
        self.init(target: target, mainDocumentURL: mainDocumentURL, method: method, partition: partition)
    }

    /// The same, of a URL that was read already.
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
        isThirdParty = main.map { !Self.areOneDomain($0.host, host) } ?? true
        // "Same site" regards the scheme, "third party" does not.
        if isThirdParty || main?.isSecure != isSecure { site = .crossSite(topLevelNavigation: false) }
    }

    private static func areOneDomain(_ one: String, _ other: String) -> Bool {
        if Cookie.areSame(one, other) { return true }
        guard !Cookie.isAddress(one), !Cookie.isAddress(other), let domain = PublicSuffixList.registrableDomain(of: one),
            let otherDomain = PublicSuffixList.registrableDomain(of: other)
        else { return false }
        return Cookie.areSame(domain, otherDomain)
    }

    /// RFC 9110, section 9.2.1.
    private var isSafe: Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// Whether the answer may set a cookie of this kind (section 5.7, step 18).
    func maySet(_ sameSite: SetCookie.SameSite?, treatsDefaultAsLax: Bool) -> Bool {
        switch (site, sameSite ?? (treatsDefaultAsLax ? .lax : SetCookie.SameSite.none)) {
        case (.sameSite, _), (.crossSite(topLevelNavigation: true), _), (.crossSite, .none): true
        case (.crossSite, .lax), (.crossSite, .strict): false
        }
    }

    /// Whether a cookie of this kind goes along (section 5.8.3, step 1).
    func maySend(_ sameSite: SetCookie.SameSite?, treatsDefaultAsLax: Bool) -> Bool {
        switch (site, sameSite ?? (treatsDefaultAsLax ? .lax : SetCookie.SameSite.none)) {
        case (.sameSite, _), (.crossSite, .none): true
        case (.crossSite(let isNavigation), .lax): isNavigation && isSafe
        case (.crossSite, .strict): false
        }
    }
}
