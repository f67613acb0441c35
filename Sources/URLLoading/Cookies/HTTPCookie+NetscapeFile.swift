//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import HTTPRules

extension HTTPCookie {
    /// The cookies of a `cookies.txt` file, as curl and browsers' add-ons write it, in its order.
    ///
    /// Not in Apple's API. Comments, lines that are no cookies, and cookies that have expired are left out; `#HttpOnly_` lines are
    /// cookies. Whether a storage takes them is up to the storage.
    ///
    /// - Returns: The cookies; lines that say none are left out.
    public static func cookies(netscapeFile text: String) -> [HTTPCookie] {
        NetscapeCookieFile.parse(text, now: Date().timeIntervalSinceReferenceDate).map { cookie in
            var cookie = cookie
            // As A-labels; and an address has no hosts in it.
            let domain = domain(named: (cookie.isHostOnly ? "" : ".") + cookie.domain)
            (cookie.domain, cookie.isHostOnly) = (domain.name, domain.isHostOnly)
            return HTTPCookie(cookie)
        }
    }

    /// The `cookies.txt` file of some cookies, as curl reads it, a line for each.
    ///
    /// Not in Apple's API. The format has no place for same-site policies, and none for cookies with a tab in them or with a
    /// partition: these cookies are left out. Cookies that end with the session expire at 0.
    ///
    /// - Returns: The text of the file.
    public static func netscapeFile(_ cookies: [HTTPCookie]) -> String {
        NetscapeCookieFile.text(
            cookies.map { cookie in
                var content = cookie.cookie
                if cookie.isSessionOnly { content.expires = nil }
                return content
            }
        )
    }
}
