// SPDX-License-Identifier: Apache-2.0

import HTTPRules

extension CookieRequest {
    /// Whether a response to this request may set a parsed cookie (RFC 6265bis, section 5.7).
    ///
    /// The stored cookies (`others`) matter only if the request is not secure.
    func maySet(_ cookie: Cookie, beside others: [Cookie]) -> Bool {
        guard cookie.matches(domain: host), mayCarry(cookie) else { return false }
        guard cookie.isHostOnly || cookie.domain == host || Cookie.maySetDomain(cookie.domain, from: host) else { return false }
        guard !isSecure else { return true }
        // "Leave secure cookies alone": RFC 6265bis, section 5.7, steps 13 and 16.
        return !cookie.isSecure
            && !others.contains { other in
                other.isSecure && other.name == cookie.name && other.matches(path: cookie.path)
                    && (other.domain == cookie.domain || other.domain.hasSuffix("." + cookie.domain)
                        || cookie.domain.hasSuffix("." + other.domain))
            }
    }

    /// Whether a cookie's same-site policy allows it to be sent with this request, or to be set by the response.
    ///
    /// A request of an app never counts as navigation by a user.
    func mayCarry(_ cookie: Cookie) -> Bool {
        switch (site, cookie.sameSite) {
        case (.sameSite, _), (.crossSite(topLevelNavigation: true), _), (_, .some(.none)), (_, nil): true
        case (.crossSite, .some(.lax)), (.crossSite, .some(.strict)): false
        }
    }
}
