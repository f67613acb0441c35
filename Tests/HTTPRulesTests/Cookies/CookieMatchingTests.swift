// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HTTPRules

@Suite struct CookieMatchingTests {
    @Test func `hosts match domains as section 5-1-3 requires`() {
        let rows: [(host: String, domain: String, hostOnly: Bool, matches: Bool, why: String)] = [
            ("example.com", "example.com", false, true, "identical"),
            ("www.example.com", "example.com", false, true, "a suffix, at a dot"),
            ("www.example.com", "example.com", true, false, "host-only"),
            ("example.com", "example.com", true, true, "host-only, and the very host"),
            ("badexample.com", "example.com", false, false, "suffix without dot"),
            ("example.com", "www.example.com", false, false, "not the other way round"),
            ("127.0.0.1", "0.0.1", false, false, "the string is a host name, not an IP address"),
            ("1.127.0.0.1", "127.0.0.1", false, false, "ends in a number"),
            ("127.0.0.1", "127.0.0.1", false, true, "identical"),
            ("::1", "::1", true, true, "identical"),
            ("a.::1", "::1", false, false, "an address"),
            ("example.com.", "example.com", false, false, "a trailing dot is another host"),
            ("www.example.com", "", false, false, "no domain"),
        ]
        for row in rows {
            let cookie = Cookie(name: "a", value: "", domain: row.domain, isHostOnly: row.hostOnly)
            #expect(cookie.matches(domain: row.host) == row.matches, "\(row.host) \(row.domain): \(row.why)")
        }
    }

    @Test func `paths match as section 5-1-4 requires`() {
        let rows = [
            ("/", "/", true), ("/foo", "/", true), ("/foo", "/foo", true), ("/foo/", "/foo", true), ("/foo/bar", "/foo", true),
            ("/foo/bar", "/foo/", true), ("/foobar", "/foo", false), ("/fo", "/foo", false), ("/foo", "/foo/", false),
            ("/Foo", "/foo", false), ("/e\u{301}", "/\u{e9}", false),
        ]
        for (request, path, matches) in rows {
            let cookie = Cookie(name: "a", value: "", domain: "h", path: path)
            #expect(cookie.matches(path: request) == matches, "\(request) \(path)")
        }
    }

    @Test func `the default path ends before the last slash`() {
        let rows = [
            ("", "/"), ("x/y", "/"), ("/", "/"), ("/x", "/"), ("/x/", "/x"), ("/x/y", "/x"), ("/x/y/", "/x/y"), ("//", "/"),
            ("/x;a/b", "/x;a"),
        ]
        for (path, expected) in rows { #expect(Cookie.defaultPath(ofPath: path) == expected, "\(path)") }
    }

    @Test func `keys are compared octet by octet`() {
        let one = Cookie.Key(name: "\u{e9}", domain: "h", path: "/", isHostOnly: true)
        #expect(one != Cookie.Key(name: "e\u{301}", domain: "h", path: "/", isHostOnly: true))
        #expect(one == one && one.hashValue == one.hashValue)
        #expect(one != Cookie.Key(name: "\u{e9}", domain: "h", path: "/", isHostOnly: true, partition: "p"))
    }

    @Test func `a request knows its host, path and site`() throws {
        let rows: [(url: String, main: String?, host: String, path: String, thirdParty: Bool, sameSite: Bool)] = [
            ("https://WWW.Example.com/a/b?c=/d#e", nil, "www.example.com", "/a/b", false, true),
            ("http://example.com", "http://www.example.com/x", "example.com", "/", false, true),
            ("http://example.com?q", "https://example.com/", "example.com", "/", false, false),
            ("https://example.com/", "https://example.org/", "example.com", "/", true, false),
            ("https://a.example.co.uk/", "https://b.example.co.uk/", "a.example.co.uk", "/", false, true),
            ("https://a.co.uk/", "https://b.co.uk/", "a.co.uk", "/", true, false),
            ("https://a.github.io/", "https://b.github.io/", "a.github.io", "/", true, false),
            ("wss://example.com/chat", "https://example.com/", "example.com", "/chat", false, true),
            ("http://[::1]:8080/", "http://[::1]/", "::1", "/", false, true),
            ("http://127.0.0.1/", "http://1.0.0.1/", "127.0.0.1", "/", true, false),
            ("http://localhost/", "http://localhost:8080/", "localhost", "/", false, true),
            ("https://example.com/", "file:///x.html", "example.com", "/", true, false),
        ]
        for row in rows {
            let main = try row.main.map { try requiredURL($0) }
            let request = try #require(CookieRequest(url: try requiredURL(row.url), mainDocumentURL: main), "\(row.url)")
            #expect(request.host == row.host && request.path == row.path, "\(row.url)")
            #expect(request.isThirdParty == row.thirdParty, "\(row.url) \(row.main ?? "")")
            #expect((request.site == .sameSite) == row.sameSite, "\(row.url) \(row.main ?? "")")
        }
        #expect(CookieRequest(url: try requiredURL("file:///a")) == nil)
        #expect(CookieRequest(url: try requiredURL("ws:a")) == nil)
    }
}
