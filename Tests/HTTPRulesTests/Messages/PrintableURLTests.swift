// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct PrintableURLTests {
    @Test(arguments: [
        ("http://ada:secret@h/a", "http://h/a"), ("ftp://ada@h", "ftp://h"), ("//u:p@h?x", "//h?x"),
        ("http://a@b@h/", "http://h/"),
        ("http://h/a@b", "http://h/a@b"), ("http://h?a@b", "http://h?a@b"), ("http://h#a@b", "http://h#a@b"),
        ("mailto:a@b", "mailto:a@b"),
        ("/a//b@c", "/a//c"), ("", ""), ("/", "/"), ("//", "//"), ("//@", "//"), ("http://é:ß@h/ü", "http://h/ü"),
    ])
    func `a URL is printed without user and password`(text: String, spoken: String) {
        #expect(PrintableURL.text(text) == spoken)
    }
}
