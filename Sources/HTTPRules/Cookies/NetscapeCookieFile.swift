// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Reads and writes the `cookies.txt` format of curl: one cookie per line, with seven tab-separated fields.
///
/// The fields are: the domain, `TRUE` if the cookie is also for subdomains, the path, `TRUE` for `Secure`, the expiry date in
/// seconds since 1970 or 0 for a session cookie, the name, and the value. The prefix `#HttpOnly_` before the domain marks an
/// `HttpOnly` cookie. The format supports neither `SameSite` nor partitions.
package enum NetscapeCookieFile {
    private static let httpOnlyPrefix = "#HttpOnly_"
    /// Seconds from 1970 to the reference date.
    private static let epoch: Double = 978_307_200

    /// Returns the cookies of a file.
    ///
    /// Comments, invalid lines and expired cookies are skipped.
    package static func parse(_ text: String, now: Double) -> [Cookie] {
        text.utf8.split { $0 == 0x0A || $0 == 0x0D }.compactMap { line in
            cookie(line, now).flatMap { $0.isWellFormed && !$0.isExpired(now) ? $0 : nil }
        }
    }

    private static func cookie(_ line: Substring.UTF8View, _ now: Double) -> Cookie? {
        var line = line
        let isHTTPOnly = line.starts(with: httpOnlyPrefix.utf8)
        if isHTTPOnly { line = line.dropFirst(httpOnlyPrefix.utf8.count) }
        guard line.first != UInt8(ascii: "#") else { return nil }
        var fields = line.split(separator: 0x09, omittingEmptySubsequences: false).map { String(Substring($0)) }
        // The tab before an empty value may be missing.
        if fields.count == 6 { fields.append("") }
        guard fields.count == 7, let includesSubdomains = flag(fields[1]), let isSecure = flag(fields[3]),
            let seconds = seconds(fields[4])
        else { return nil }
        let domain = fields[0].utf8.map(ASCII.lowercased)
        return Cookie(
            name: fields[5],
            value: fields[6],
            domain: String(decoding: domain.drop { $0 == UInt8(ascii: ".") }, as: UTF8.self),
            isHostOnly: !includesSubdomains,
            path: fields[2],
            expires: seconds == 0 ? nil : Double(seconds) - epoch,
            creation: now,
            isSecure: isSecure,
            isHTTPOnly: isHTTPOnly
        )
    }

    private static func flag(_ field: String) -> Bool? {
        switch field.utf8.map(ASCII.lowercased) {
        case Array("true".utf8): true
        case Array("false".utf8): false
        default: nil
        }
    }

    /// Parses a number of seconds; returns nil for text that is not a number.
    ///
    /// A number that is too large is clamped.
    private static func seconds(_ field: String) -> Int64? {
        let isNegative = field.utf8.first == UInt8(ascii: "-")
        let digits = isNegative ? field.utf8.dropFirst() : field.utf8[...]
        guard !digits.isEmpty, digits.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else { return nil }
        return isNegative ? -1 : min(Int64(String(Substring(digits))) ?? latest, latest)
    }

    /// The end of the year 9999.
    private static let latest: Int64 = 253_402_300_799

    /// Formats cookies as a file.
    ///
    /// Omits cookies that the format does not support, such as cookies with a tab in the value or with an unusual domain set by the
    /// app.
    package static func text(_ cookies: [Cookie]) -> String {
        var text = "# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n\n"
        for cookie in cookies where isWritable(cookie) {
            let domain = (cookie.isHTTPOnly ? httpOnlyPrefix : "") + (cookie.isHostOnly ? "" : ".") + cookie.domain
            let expires = cookie.expires.map { max(1, min($0 + epoch, Double(latest))) } ?? 0
            text += "\(domain)\t\(word(!cookie.isHostOnly))\t\(cookie.path)\t\(word(cookie.isSecure))\t\(Int64(expires))\t"
            text += "\(OctetText.shown(cookie.name))\t\(OctetText.shown(cookie.value))\n"
        }
        return text
    }

    private static func isWritable(_ cookie: Cookie) -> Bool {
        cookie.isWellFormed && cookie.partition == nil
            && cookie.domain.utf8.first != UInt8(ascii: "#") && cookie.domain.utf8.first != UInt8(ascii: ".")
            && ![cookie.name, cookie.path, cookie.value].contains { $0.utf8.contains(0x09) }
    }

    private static func word(_ flag: Bool) -> String { flag ? "TRUE" : "FALSE" }
}
