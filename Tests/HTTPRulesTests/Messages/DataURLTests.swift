// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct DataURLTests {
    @Test func `type and data are read`() throws {
        let rows: [(String, String, String?, String)] = [
            // RFC 2397, sections 2 and 4.
            ("data:,A%20brief%20note", "text/plain", "us-ascii", "A brief note"),
            ("data:text/plain;charset=iso-8859-7,%41", "text/plain", "iso-8859-7", "A"),
            ("data:;charset=UTF-8,x", "text/plain", "utf-8", "x"), ("data:text/html,<b>", "text/html", nil, "<b>"),
            ("data:text/html;base64,SGk=", "text/html", nil, "Hi"), ("data:;base64,SGVsbG8", "text/plain", "us-ascii", "Hello"),
            ("data:base64,SGk=", "text/plain", "us-ascii", "SGk="),
            // WHATWG Fetch, section 6: case, spaces, percent-encoded and unpadded base64, fragments, invalid types.
            ("DATA:Text/HTML ; BASE64,SGk=", "text/html", nil, "Hi"), ("data:a/b;base64,S%47k%3D", "a/b", nil, "Hi"),
            ("data:a/b;base64, S G\tk =", "a/b", nil, "Hi"), ("data:,a#b", "text/plain", "us-ascii", "a"),
            ("data:,a,b;c", "text/plain", "us-ascii", "a,b;c"),
            ("data:nonsense,x", "text/plain", "us-ascii", "x"), ("data:a/b/c,x", "text/plain", "us-ascii", "x"),
            ("data:a/,x", "text/plain", "us-ascii", "x"),
            // The type is not percent-decoded.
            ("data:text%2Fhtml,x", "text/plain", "us-ascii", "x"), ("data:text/plain%20,x", "text/plain%20", nil, "x"),
            ("data:text/html%3Bcharset=x,x", "text/plain", "us-ascii", "x"),
            ("data:text/html;charset=%75tf-8,x", "text/html", "%75tf-8", "x"),
            ("data:text/html;%62ase64,SGk=", "text/html", nil, "SGk="),
            // A space, as `URL` encodes it.
            ("data:text/html; charset=utf-8,x", "text/html", "utf-8", "x"),
            ("data:text/html;%20charset=utf-8,x", "text/html", "utf-8", "x"),
            ("data:text/html;%20%20base64,SGk=", "text/html", nil, "Hi"),
            ("data:,", "text/plain", "us-ascii", ""), ("data:;base64,", "text/plain", "us-ascii", ""),
            ("data:a/b;base64,++//", "a/b", nil, "\u{FB}\u{EF}\u{FF}"),
        ]
        for (url, type, charset, text) in rows {
            let data = try #require(DataURL(url), "\(url)")
            #expect(data.mimeType == type && data.charset == charset, "\(url)")
            #expect(
                data.bytes
                    == (text.unicodeScalars.allSatisfy(\.isASCII)
                        ? Array(text.utf8) : text.unicodeScalars.map { UInt8($0.value) }),
                "\(url)")
        }
    }

    @Test func `an invalid data URL is refused`() {
        for url in [
            "", "data:", "data:text/plain", "http://h/,", "dat:,x", "data:;base64,A", "data:;base64,AAAAA", "data:;base64,A=",
            "data:;base64,AA=A",
            "data:;base64,AA-_", "data:;base64,=", "data:;base64,AAAA=", "data:;base64,A===", "data:;base64,ä",
        ] {
            #expect(DataURL(url) == nil, "\(url)")
        }
    }
}
