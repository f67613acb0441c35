// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct NetscapeCookieFileTests {
    private static let now: Double = 800_000_000

    @Test func `a cookie file of curl is read`() {
        let text = """
            # Netscape HTTP Cookie File
            # a comment

            example.com\tFALSE\t/\tFALSE\t0\ta\tb\r
            .Example.com\tTRUE\t/foo\tTRUE\t4102444800\tc\td e
            #HttpOnly_.example.org\tTRUE\t/\tTRUE\t4102444800\tname\t
            example.com\tFALSE\t/\tFALSE\t4102444800\tempty
            """
        let cookies = NetscapeCookieFile.parse(text, now: Self.now)
        #expect(cookies.map(\.name) == ["a", "c", "name", "empty"])
        #expect(cookies.map(\.value) == ["b", "d e", "", ""])
        #expect(cookies.map(\.domain) == ["example.com", "example.com", "example.org", "example.com"])
        #expect(cookies.map(\.isHostOnly) == [true, false, false, true])
        #expect(cookies.map(\.isSecure) == [false, true, true, false])
        #expect(cookies.map(\.isHTTPOnly) == [false, false, true, false])
        #expect(cookies.map(\.path) == ["/", "/foo", "/", "/"])
        #expect(cookies.map(\.expires) == [nil, 4_102_444_800 - 978_307_200, 4_102_444_800 - 978_307_200, 3_124_137_600])
        #expect(cookies.allSatisfy { $0.creation == Self.now && $0.lastAccess == Self.now })
    }

    @Test func `an invalid line is skipped`() {
        let lines = [
            "example.com", "example.com\tFALSE\t/\tFALSE\t0", "example.com\tMAYBE\t/\tFALSE\t0\ta\tb",
            "example.com\tFALSE\t/\tFALSE\tnever\ta\tb", "example.com\tFALSE\t/\tFALSE\t1\ta\tpast",
            "example.com\tFALSE\t/\tFALSE\t-5\ta\tpast", "\tFALSE\t/\tFALSE\t0\ta\tb", "example.com\tFALSE\tx\tFALSE\t0\ta\tb",
            "example.com\tFALSE\t/\tFALSE\t0\t\t", "example.com\tFALSE\t/\tFALSE\t0\ta;c\tb", "a\tFALSE\t/\tFALSE\t0\ta\tb\tc",
            "a\tFALSE\t/\tFALSE\t0\ta\tb\u{0}", "##HttpOnly_a\tFALSE\t/\tFALSE\t0\ta\tb",
        ]
        for line in lines { #expect(NetscapeCookieFile.parse(line, now: Self.now).isEmpty, "\(line)") }
        let far = NetscapeCookieFile.parse("a\tFALSE\t/\tFALSE\t99999999999999999999\ta\tb", now: Self.now)
        #expect(far.first?.expires == 252_423_993_599.0)
    }

    @Test func `a written file is read back, and cookies that cannot be written are left out`() {
        let cookies = [
            Cookie(name: "a", value: "b c", domain: "example.com", creation: Self.now),
            Cookie(
                name: "", value: "x", domain: "example.com", isHostOnly: false, path: "/y", creation: Self.now, isHTTPOnly: true),
            Cookie(name: "e", value: "", domain: "::1", expires: Self.now + 10, creation: Self.now, isSecure: true),
        ]
        let odd = [
            Cookie(name: "t", value: "a\tb", domain: "example.com"), Cookie(name: "t", value: "a\nb", domain: "example.com"),
            Cookie(name: "t", value: "a", domain: "#example.com"), Cookie(name: "t", value: "a", domain: "h", path: "/\n#"),
            Cookie(name: "t", value: "a", domain: "h", partition: "p"),
        ]
        let text = NetscapeCookieFile.text(cookies + odd)
        #expect(text.hasPrefix("# Netscape HTTP Cookie File\n"))
        #expect(text.contains("\nexample.com\tFALSE\t/\tFALSE\t0\ta\tb c\n#HttpOnly_.example.com\tTRUE\t/y\tFALSE\t0\t\tx\n"))
        #expect(NetscapeCookieFile.parse(text, now: Self.now) == cookies)
    }
}
