// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules

extension HTTPCookie {
    /// Parses the cookies of a `cookies.txt` file, as written by curl and browser extensions, in order.
    ///
    /// Not in Apple's API. Comments, malformed lines, and expired cookies are skipped; a line that begins with `#HttpOnly_` is a
    /// cookie, not a comment. When the cookies are stored, the storage still decides which of them it accepts.
    ///
    /// - Returns: The cookies; lines without a cookie are skipped.
    public static func cookies(netscapeFile text: String) -> [HTTPCookie] {
        NetscapeCookieFile.parse(text, now: Date().timeIntervalSinceReferenceDate).map { cookie in
            var cookie = cookie
            // Converts the domain to A-labels; for an IP address, the cookie is host-only.
            let domain = domain(named: (cookie.isHostOnly ? "" : ".") + cookie.domain)
            (cookie.domain, cookie.isHostOnly) = (domain.name, domain.isHostOnly)
            return HTTPCookie(cookie)
        }
    }

    /// Returns the text of a `cookies.txt` file, which curl can read, with one of the given cookies per line.
    ///
    /// Not in Apple's API. The format cannot represent same-site policies, cookies that contain a tab, or partitions: such cookies
    /// are omitted. Session cookies have the expiry time 0.
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
