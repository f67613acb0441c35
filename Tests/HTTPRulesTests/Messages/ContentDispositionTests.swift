// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct ContentDispositionTests {
    @Test func `the file name is read as RFC 6266 requires`() {
        let rows: [(String, String?)] = [
            // RFC 6266, section 5.
            ("Attachment; filename=example.html", "example.html"), ("INLINE; FILENAME= \"an example.html\"", "an example.html"),
            ("attachment; filename*= UTF-8''%e2%82%ac%20rates", "€ rates"),
            ("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates", "€ rates"),
            ("attachment; filename*=utf-8''%e2%82%ac%20rates; filename=\"EURO rates\"", "€ rates"),
            // RFC 8187, section 3.2.3: both charsets, with and without a language.
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "£ rates"), ("attachment; filename*=ISO-8859-1''a%e4", "aä"),
            // The parameter is ignored if it has a bad escape, bad UTF-8, another charset, no charset, or an empty value.
            ("attachment; filename*=UTF-8''%zz; filename=a", "a"), ("attachment; filename*=UTF-8''%e4; filename=a", "a"),
            ("attachment; filename*=KOI8-R''x; filename=a", "a"), ("attachment; filename*=x; filename=a", "a"),
            ("attachment; filename*=''x; filename=a", "a"), ("attachment; filename*=UTF-8''; filename=a", "a"),
            ("attachment; filename*=UTF-8''%e4", nil),
            // Quoted pairs (RFC 9110, section 5.6.4); no percent-decoding in a plain name.
            ("attachment; filename=\"a \\\"b\\\" \\\\c\"", "a \"b\" \\c"), ("attachment; filename=\"50%25.txt\"", "50%25.txt"),
            ("attachment; filename=\";.ext\"", ";.ext"), ("attachment; filename=\"a", "a"),
            // These values are invalid, but servers send them.
            ("attachment; filename=foo bar.html ; x=y", "foo bar.html"),
            ("attachment; filename=foo[1](2).html", "foo[1](2).html"),
            ("attachment; filename =\"a\"", "a"), ("attachment;;filename=a;;", "a"), ("attachment; filename=\"ä.txt\"", "ä.txt"),
            ("attachment; aa=bb\\; filename=\"wrong.ext\"; filename=\"fname.ext\"; cc=dd", "fname.ext"),
            ("attachment; filename=\"first\"; filename=\"second\"", "first"), ("attachment; filename=\"a\"b; x=1", "a"),
            ("attachment; filename=genome.jpeg; modification-date=\"Wed, 12 Feb 1997 16:29:51 -0500\";", "genome.jpeg"),
            // RFC 2231, sections 3 and 4.1.
            ("attachment; filename*0=\"foo.\"; filename*1=html", "foo.html"),
            ("attachment; filename*0*=UTF-8''a%20b; filename*1=c; filename*2*=%20d", "a bc d"),
            ("attachment; filename*1=b; filename*0=a", "ab"), ("attachment; filename*1=b", nil),
            ("attachment; filename*0*=a", nil),
            ("attachment; filename*0*=UTF-8''%zz", nil), ("attachment; filename*0*=KOI8-R''x", nil),
            ("attachment; filename*0=a; filename=b", "b"),
            // No file name.
            ("attachment", nil), ("inline", nil), ("", nil), ("attachment; filename=", nil), ("attachment; filename=\"\"", nil),
            ("attachment; filename", nil), ("filename=foo.html", nil), ("; filename=a", nil), ("attach ment; filename=a", nil),
        ]
        for (header, expected) in rows { #expect(ContentDisposition.filename(header) == expected, "\(header)") }
    }
}
