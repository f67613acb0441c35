// SPDX-License-Identifier: Apache-2.0

import URLLoading

/// The cookies that the user selects: by domain, including subdomains, by name, or by both.
struct CookieSelection {
    private let domain: String?
    private let name: String?

    /// Nil matches any domain or name.
    init(domain: String?, name: String?) {
        self.domain = domain.map { domain in
            let bare = domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
            // The domain is normalized as in cookies: in lower case, and with A-labels.
            let cookie = HTTPCookie(properties: [.name: "name", .value: "", .path: "/", .domain: bare])
            return cookie?.domain ?? bare
        }
        self.name = name
    }

    func cookies(of storage: HTTPCookieStorage) -> [HTTPCookie] {
        (storage.cookies ?? []).filter { cookie in
            (name == nil || cookie.name == name) && (domain.map { isIn($0, cookie.domain) } ?? true)
        }
    }

    private func isIn(_ domain: String, _ cookieDomain: String) -> Bool {
        cookieDomain == domain || cookieDomain.hasSuffix("." + domain)
    }
}
