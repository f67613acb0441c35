// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct MediaTypeTests {
    @Test func `type, charset and boundary are read`() throws {
        // RFC 9110, section 8.3.1: these four are equivalent.
        for field in [
            "text/html;charset=utf-8", "Text/HTML;Charset=\"utf-8\"", "text/html; charset=\"utf-8\"", "text/html;charset=UTF-8",
        ] {
            let type = try #require(MediaType(field))
            #expect(type.mimeType == "text/html" && type.charset == "utf-8" && type.boundary == nil, "\(field)")
        }
        let rows: [(String, String, String?, String?)] = [
            // Both are in lower case, as Apple's tests of HTTPURLResponse assert.
            ("text/HTML; charset=ISO-8859-4", "text/html", "iso-8859-4", nil), ("text/plain", "text/plain", nil, nil),
            ("multipart/x-mixed-replace; boundary=\"a;b\"", "multipart/x-mixed-replace", nil, "a;b"),
            ("multipart/mixed;boundary=--X", "multipart/mixed", nil, "--X"),
            (" text/plain ; ; =x; charset = a\\b ", "text/plain", "ab", nil),
            ("text/plain; charset=", "text/plain", nil, nil), ("text/plain; charset=\"", "text/plain", nil, nil),
            ("text/plain; charset=a; charset=b", "text/plain", "a", nil), ("text/html, text/plain", "text/html", nil, nil),
            ("text/plain; charset", "text/plain", nil, nil),
            ("a/b; x y=1; charset=c", "a/b", "c", nil),
            ("a/b; boundary=\"q\\\"x\" junk; charset=u", "a/b", "u", "q\"x"), ("a/b; boundary=", "a/b", nil, nil),
        ]
        for (field, type, charset, boundary) in rows {
            let media = try #require(MediaType(field), "\(field)")
            #expect(media.mimeType == type && media.charset == charset && media.boundary == boundary, "\(field)")
        }
    }

    @Test func `a field without type and subtype is refused`() {
        for field in [
            "", " ", ";charset=x", ", text/html", "garbage", "text/", "/html", "a/b/c", "te xt/html", "text/ht ml", "text /html",
            "text/\"html\"", "t\u{E4}xt/html", "text", "/",
        ] { #expect(MediaType(field) == nil, "\(field)") }
    }

    @Test func `common types have an extension`() {
        #expect(MediaType.fileExtension(for: "Text/HTML") == "html")
        #expect(MediaType.fileExtension(for: "application/octet-stream") == nil)
    }

    @Test func `common extensions have a type`() {
        let rows = [
            ("html", "text/html"), ("HTM", "text/html"), ("jpg", "image/jpeg"), ("gz", "application/gzip"), ("txt", "text/plain"),
        ]
        for (pathExtension, type) in rows {
            #expect(MediaType.mimeType(forPathExtension: pathExtension) == type, "\(pathExtension)")
        }
        #expect(MediaType.mimeType(forPathExtension: "nonsense") == nil)
    }
}
