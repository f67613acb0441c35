// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import SeededNumbers
import Testing

/// The parsing of `Set-Cookie` (RFC 6265bis, section 5.6).
@Suite struct SetCookieTests {
    @Test func `name and value are split as section 5-6 requires`() throws {
        let rows = [
            ("SID=31d4d96e407aad42", "SID", "31d4d96e407aad42", "section 3.1's example"),
            ("a=b; Path=/", "a", "b", "up to the first ;"),
            ("  a \t= b c\t", "a", "b c", "leading and trailing WSP go, inner ones stay"),
            ("a=b=c", "a", "b=c", "the value is what follows the first ="),
            ("a=", "a", "", "a possibly empty value"),
            ("=b", "", "b", "a possibly empty name"),
            ("b", "", "b", "lacks =: the name string is empty, and the value string is the value of name-value-pair"),
            ("=a=b", "", "a=b", "the first = is the separator"),
            ("a=\"b; c\"", "a", "\"b", "quotes mean nothing"),
            ("a=b,c", "a", "b,c", "a comma is part of the value"),
            ("a=\u{e9}\u{4e2d}", "a", "\u{e9}\u{4e2d}", "octets beyond ASCII stay"),
            ("a=%20%3B", "a", "%20%3B", "percent-encoding is not decoded"),
            ("a=b\tc", "a", "b\tc", "HTAB is not among the forbidden controls"),
        ]
        for (text, name, value, why) in rows {
            let cookie = try #require(SetCookie(text), "\(text): \(why)")
            #expect(cookie.name == name && cookie.value == value, "\(text): \(why)")
        }
    }

    @Test func `an invalid cookie is ignored entirely`() {
        // RFC 6265bis, section 5.6, steps 1 and 6; section 5.7, step 2.
        for control in (0...0x1F).filter({ $0 != 9 }) + [0x7F] {
            let text = String(UnicodeScalar(UInt8(control)))
            #expect(SetCookie("a=b\(text)c") == nil && SetCookie("a=b; Path=/\(text)") == nil, "control \(control)")
        }
        for text in ["", "=", " = ", ";", "; Path=/", "\t"] { #expect(SetCookie(text) == nil, "\(text)") }
        let long = String(repeating: "v", count: 4095)
        #expect(SetCookie("n=" + long)?.value == long)
        #expect(SetCookie("nn=" + long) == nil)
        #expect(SetCookie("n=" + String(repeating: "v", count: 4095) + "; Path=/" + long)?.path == nil)
    }

    @Test func `attribute names are case-insensitive, and the last attribute wins`() throws {
        let cookie = try #require(
            SetCookie(
                "a=b; EXPIRES=Wed, 09 Jun 2021 10:18:14 GMT; max-age=60;domain=.EXAMPLE.com ; pAth=/x; SECURE;httponly=no;"
                    + "samesite=LAX;Partitioned; Foo=1;;=;"
            )
        )
        #expect(cookie.expires == 644_926_694.0)
        #expect(cookie.maxAge == 60 && cookie.domain == "example.com" && cookie.path == "/x")
        #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.isPartitioned && cookie.sameSite == .lax)
        let plain = try #require(SetCookie("a=b"))
        #expect(plain.expires == nil && plain.maxAge == nil && plain.domain == nil && plain.path == nil && plain.sameSite == nil)
        #expect(!plain.isSecure && !plain.isHTTPOnly && !plain.isPartitioned)
    }

    @Test func `max-age is an integer or ignored`() {
        let rows: [(String, Int?)] = [
            ("0", 0), ("-1", -1), ("60", 60), ("", nil), ("-", nil), ("+1", nil), ("1.5", nil), ("1s", nil), ("\"1\"", nil),
            ("99999999999999999999", .max), ("-99999999999999999999", -.max), ("007", 7),
        ]
        for (text, seconds) in rows { #expect(SetCookie("a=b; Max-Age=\(text)")?.maxAge == seconds, "\(text)") }
        // Section 5.6.2: "ignore the cookie-av", so that an earlier attribute counts.
        #expect(SetCookie("a=b; Max-Age=5; Max-Age=x")?.maxAge == 5)
        #expect(SetCookie("a=b; Max-Age=5; Max-Age=6")?.maxAge == 6)
    }

    @Test func `the last domain, path and samesite attribute wins, even if it means the default`() {
        #expect(SetCookie("a=b; Domain=x.com; Domain=")?.domain == nil)
        #expect(SetCookie("a=b; Domain=..x.com")?.domain == ".x.com")
        #expect(SetCookie("a=b; Path=/x; Path=")?.path == nil)
        #expect(SetCookie("a=b; Path=x")?.path == nil)
        #expect(SetCookie("a=b; SameSite=Strict; SameSite=Foo")?.sameSite == nil)
        #expect(SetCookie("a=b; SameSite=none")?.sameSite == SetCookie.SameSite.none)
        // An attribute value longer than 1024 octets: "ignore the cookie-av string".
        let long = String(repeating: "x", count: 1024)
        #expect(SetCookie("a=b; Path=/y; Path=/\(long)")?.path == "/y")
        #expect(SetCookie("a=b; Domain=y; Domain=\(long)x")?.domain == "y")
    }

    @Test func `cookies joined by commas are split, and nothing else is`() {
        let date = "Expires=Wed, 09 Jun 2021 10:18:14 GMT"
        let rows: [(String, [String])] = [
            ("a=b", ["a=b"]), ("", []), (" , ", [","]),
            ("a=b, c=d", ["a=b", "c=d"]), ("a=b,c=d,e=f", ["a=b", "c=d", "e=f"]),
            ("a=b; \(date), c=d; Path=/, e=f", ["a=b; \(date)", "c=d; Path=/", "e=f"]),
            ("a=b; \(date); Path=/, c=d; \(date)", ["a=b; \(date); Path=/", "c=d; \(date)"]),
            ("a=b; expires=Wednesday, 09-Jun-21 10:18:14 GMT,c=d", ["a=b; expires=Wednesday, 09-Jun-21 10:18:14 GMT", "c=d"]),
            ("a=1,2,3, b=4", ["a=1,2,3", "b=4"]), ("a=\"x, y=z\"; Path=/, b=c", ["a=\"x, y=z\"; Path=/", "b=c"]),
            ("a=b; Comment=by, me@here=1; Path=/", ["a=b; Comment=by, me@here=1; Path=/"]),
            ("a=see, http://x/?y=z, c=d", ["a=see, http://x/?y=z", "c=d"]), ("a=b, {c}=d", ["a=b, {c}=d"]),
            ("a=\"x, b=c", ["a=\"x", "b=c"]), ("a[b]=c, d[e] = f", ["a[b]=c", "d[e] = f"]), ("a=b, ", ["a=b,"]),
            ("a=b; Port=\"80,8080\"; Version=1, c=d", ["a=b; Port=\"80,8080\"; Version=1", "c=d"]),
        ]
        for (joined, cookies) in rows { #expect(SetCookie.split(joined) == cookies, "\(joined)") }
    }

    @Test func `joined cookies are split into the original ones`() {
        let values = ["b", "", "b c", "%2C", "1,2", "\"q\""]
        let attributes = [
            "", "; Path=/", "; Expires=Wed, 09 Jun 2021 10:18:14 GMT", "; Expires=Wednesday, 09-Jun-21 10:18:14 GMT; Secure",
        ]
        for seed in 0..<200 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let cookies = (0..<Int.random(in: 1...6, using: &random)).map { number in
                "n\(number)=\(values[Int.random(in: 0..<values.count, using: &random)])"
                    + attributes[Int.random(in: 0..<attributes.count, using: &random)]
            }
            #expect(SetCookie.split(cookies.joined(separator: ", ")) == cookies, "seed \(seed)")
        }
    }
}
