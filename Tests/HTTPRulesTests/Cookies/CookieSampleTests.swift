// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

/// `Set-Cookie` fields as servers send them, and the `Cookie` field of the next request.
///
/// Sections are those of RFC 6265bis; "layered" is its successor, draft-ietf-httpbis-layered-cookies.
@Suite struct CookieSampleTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        let fields: [String]
        let sent: String?
        let why: String

        init(_ fields: String..., sent: String?, _ why: String) {
            (self.fields, self.sent, self.why) = (fields, sent, why)
        }

        var testDescription: String { "\(fields): \(why)" }
    }

    static let values = [
        Sample("k=v", sent: "k=v", "5.6"),
        Sample("k=one", "k=two", sent: "k=two", "5.7, step 23: the newer one"),
        Sample("z=1", "a=2", sent: "z=1; a=2", "5.8.3: the earlier one first"),
        Sample("k", sent: "k", "5.6, step 4: the value alone"),
        Sample("=v", sent: "v", "5.6, step 4"),
        Sample("==v", sent: "=v", "5.6, step 4: the first ="),
        Sample("k=v", "v", "=w", sent: "k=v; w", "nameless ones are the same cookie"),
        Sample("k=v", "=", "l=w", sent: "k=v; l=w", "5.6, step 6: neither name nor value"),
        Sample("k=v", "", "  ", "\t", ";", "; l=w", sent: "k=v", "5.6, step 6"),
        Sample("k=", sent: "k=", "an empty value"),
        Sample("k=v, l=w", sent: "k=v, l=w", "a comma does not separate"),
        Sample("k=\"v, l=w\"", sent: "k=\"v, l=w\"", "quotes are kept"),
        Sample("k=\"v;w\"", sent: "k=\"v", "5.6, step 3: the first ; ends the pair, quoted or not"),
        Sample("k=\" v \"  ; x", sent: "k=\" v \"", "white space within quotes stays"),
        Sample("  k  =  v w  ;x", sent: "k=v w", "5.6, step 5"),
        Sample("\tk\t=\tv\tw\t;x", sent: "k=v\tw", "5.6, step 5: WSP is space and tab"),
        Sample("k k=v", sent: "k k=v", "a name may have spaces"),
        Sample("$Version=1; k=v", sent: "$Version=1", "the first pair is the cookie"),
        Sample("\"k=v\"=w", sent: "\"k=v\"=w", "5.6, step 4: the first ="),
        Sample("k\\=v\\", sent: "k\\=v\\", "a backslash means nothing"),
        Sample("@(k):/?{}<>=v", sent: "@(k):/?{}<>=v", "names are not held to token here"),
        Sample("k=\u{6625}\u{8282}", "\u{6625}=\u{8282}; \u{8def}", sent: "k=\u{6625}\u{8282}; \u{6625}=\u{8282}", "octets"),
        Sample("e\u{301}=1", "\u{e9}=2", sent: "e\u{301}=1; \u{e9}=2", "names are compared octet for octet"),
        Sample("k=a%00b", sent: "k=a%00b", "percent-encoding is not decoded"),
        Sample("k=a\u{0}b", "l=a\rb", "m=a\u{7f}", "n=\u{1}", "o=1; Path=\u{b}", sent: nil, "5.6, step 1"),
    ]

    static let attributes = [
        Sample("k=v; Secure", "l=w; sEcUrE", "m=x; Secure=", "n=y; Secure = no", ";o=z; Secure", sent: nil, "5.6.5: in any form"),
        Sample("k=v;Secure;x", "l=w;   Secure  ;", "m=x; y=\"z;z\"; Secure", sent: nil, "5.6.5"),
        Sample("k=v; \"Secure\"", "l=w; Secure x", "m=x; Secure-ish", sent: "k=v; l=w; m=x", "another name"),
        Sample("k=v; x; y=; =z; ;; ===; Version=1", sent: "k=v", "5.6, step 7: unknown ones are ignored"),
        Sample("k=v; b,a=c", "l=w; a=b,c", sent: "k=v; l=w", "commas"),
        Sample("k=v; Max-Age=9", "l=w; max-age=0009", sent: "k=v; l=w", "5.6.2"),
        Sample("k=v; Max-Age=0", "l=w; Max-Age=-1", "m=x; Max-Age=-0", sent: nil, "5.6.2"),
        Sample("k=v", "l=w", "k=x; Max-Age=0", "m=y; Max-Age=0", sent: "l=w", "5.7: removes the one there was"),
        Sample("k=v; Max-Age=1,000", "l=w; Max-Age=0.5", "m=x; Max-Age=", "n=y; Max-Age=-", sent: "k=v; l=w; m=x; n=y", "5.6.2"),
        Sample("k=v; Max-Age=9; Max-Age=0", sent: nil, "5.7, step 6: the last one"),
        Sample("k=v; Max-Age=9; Expires=Thu, 10 Apr 1980 16:33:12 GMT", sent: "k=v", "5.7, step 6: before Expires"),
        Sample("k=v; Expires=Thu, 10 Apr 1980 16:33:12 GMT; Max-Age=9", sent: "k=v", "in either order"),
        Sample("k=v; Expires=Fri, 07-Aug-2037 08:04:19 GMT", sent: "k=v", "5.6.1"),
        Sample("k=v; Expires=Fri 07 Aug 2037 08:04:19 GMT, l=w", sent: "k=v", "5.6.1: later tokens are skipped"),
        Sample("k=v; Expires=Thu, 10 Apr 1980 16:33:12 GMT", sent: nil, "5.6.1"),
        Sample("k=v; Expires=Thu, 10 Apr 1980", "l=w; Expires=0", "m=x; Expires", sent: "k=v; l=w; m=x", "no date"),
        Sample("k=v; SameSite=Strict", "l=w; SameSite=x", "m=x; SameSite", sent: "k=v; l=w; m=x", "5.6.7: of the same site"),
        Sample("k=v; SameSite=None", sent: nil, "5.7, step 19: without Secure"),
        Sample("k=v; HttpOnly", "l=w; httponly=false", sent: "k=v; l=w", "5.6.6: HTTP is what asks"),
    ]

    @Test(arguments: values + attributes)
    func `the Cookie field contains the cookies that were set`(_ sample: Sample) throws {
        var jar = CookieJar()
        let request = try #require(CookieRequest(url: requiredURL("http://www.site.test/dir/page")))
        for field in sample.fields { _ = jar.store([field], from: request, policy: .always, now: 0) }
        #expect(jar.header(for: request, now: 1) == sample.sent)
    }

    /// The cookie is set by `/dir/page`; the request is for `/dir/sub/page`.
    static let paths = [
        Sample("k=v", sent: "k=v", "5.1.4: the default path is /dir"),
        Sample("k=v; Path", "l=w; Path=", "m=x; Path=dir", "n=y; Path=\"/\"", sent: "k=v; l=w; m=x; n=y", "5.6.4: the default"),
        Sample("k=v; Path=/dir/sub/page", "l=w; Path=/dir/sub", "m=x; Path=/dir/sub/", sent: "k=v; m=x; l=w", "5.8.3"),
        Sample("k=v; Path=/dir/su", "l=w; Path=/dir/sub/page/", "m=x; Path=/dir/sub/page/x", sent: nil, "5.1.4"),
        Sample("k=v; Path=/DIR", "l=w; Path=/dir?", "m=x; Path=/dir#", "n=y; Path=/d%69r", sent: nil, "5.1.4: octet for octet"),
        Sample("k=v; Path  =  /dir  ; x", sent: "k=v", "5.6, step 5"),
        Sample("k=v; Path=/no; Path=/dir", sent: "k=v", "the last one"),
        Sample("k=v; Path=/dir; Path=/no", sent: nil, "the last one"),
        Sample("k=v; Path=/no; Path=", sent: "k=v", "5.6.4: an empty one means the default"),
        Sample("k=one; Path=/dir", "k=two; Path=/dir/", sent: "k=two; k=one", "5.7, step 23: another path, another cookie"),
        Sample("k=v; Path=/dir/\u{e9}; Path=/dir", sent: "k=v", "layered: the path that counts is ASCII"),
    ]

    @Test(arguments: paths)
    func `a cookie is sent to the paths below its own`(_ sample: Sample) throws {
        var jar = CookieJar()
        let request = try #require(CookieRequest(url: requiredURL("http://www.site.test/dir/page")))
        _ = jar.store(sample.fields, from: request, policy: .always, now: 0)
        let next = try #require(CookieRequest(url: requiredURL("http://www.site.test/dir/sub/page?Path=/no")))
        #expect(jar.header(for: next, now: 1) == sample.sent)
    }

    /// The cookie is set by `www.site.test`; the requests are for `www.site.test` (w), `site.test` (s), `more.www.site.test` (m)
    /// and `other.site.test` (o).
    @Test(arguments: [
        ("", "w"), ("Domain=", "w"), ("Domain", "w"), ("Domain=.", "w"), ("Domain=www.site.test", "wm"),
        ("Domain=.www.site.test", "wm"), ("Domain=site.test", "wsmo"), ("Domain= .SITE.tEsT ", "wsmo"), ("Domain=test", ""),
        ("Domain=.test", ""), ("Domain=.test.", ""), ("Domain=..site.test", ""), ("Domain=www..site.test", ""),
        ("Domain=. site.test", ""), ("Domain=site.test.", ""), ("Domain=site.test .", ""), ("Domain=\"site.test\"", ""),
        ("Domain=site.test:80", ""), ("Domain=http://site.test", ""), ("Domain=*.site.test", ""), ("Domain=te.test", ""),
        ("Domain=ww.site.test", ""), ("Domain=other.site.test", ""), ("Domain=more.www.site.test", ""), ("Domain=else.test", ""),
        ("Domain=site.test; Domain=www.site.test", "wm"), ("Domain=www.site.test; Domain=site.test", "wsmo"),
        ("Domain=else.test; Domain=site.test", "wsmo"), ("Domain=site.test; Domain=else.test", ""),
        ("Domain=else.test; Domain=", "w"), ("Domain=site.test; Domain=", "w"),
    ])
    func `a cookie is sent to the hosts of its domain`(attributes: String, letters: String) throws {
        var jar = CookieJar()
        let request = try #require(CookieRequest(url: requiredURL("http://www.site.test/")))
        _ = jar.store(["k=v; \(attributes)"], from: request, policy: .always, now: 0)
        var got = ""
        let hosts = [("w", "WWW.site.test"), ("s", "site.test"), ("m", "more.www.site.test"), ("o", "other.site.test")]
        for (letter, host) in hosts {
            let next = try #require(CookieRequest(url: requiredURL("http://\(host):8080/")))
            if jar.header(for: next, now: 1) != nil { got += letter }
        }
        #expect(got == letters)
    }

    /// The cookie is set by `https://site.test/`, so that its default path is `/`.
    @Test(arguments: [
        ("__Secure-k=v; Secure", true), ("__Secure-k=v", false), ("__SeCuRe-k=v", false),
        ("__Host-k=v; Secure; Path=/", true), ("__Host-k=v; Secure; Path=/; Domain=", true),
        ("__Host-k=v; Secure; Path=/; Domain=site.test", false), ("__hOST-k=v; Secure; Path=/x", false),
        // layered, section 5.4.2: a Path attribute counts if its value begins with a slash.
        ("__Host-k=v; Secure", false), ("__Host-k=v; Secure; Path=", false), ("__Host-k=v; Secure; Path", false),
        ("__Host-k=v; Secure; Path=x", false), ("__Host-k=v; Secure; Path=/; Path=", false),
        // layered, section 5.4.3, steps 15 and 16.
        ("__Http-k=v; Secure; HttpOnly", true), ("__Http-k=v; Secure; HttpOnly; Domain=site.test; Path=/x", true),
        ("__Http-k=v; Secure", false), ("__Http-k=v; HttpOnly", false), ("__hTTP-k=v", false),
        ("__Host-Http-k=v; Secure; HttpOnly; Path=/", true), ("__Host-Http-k=v; Secure; Path=/", false),
        ("__Host-Http-k=v; Secure; HttpOnly", false), ("__host-http-k=v; HttpOnly; Path=/", false),
        ("__Host-Http-k=v; Secure; HttpOnly; Path=/; Domain=site.test", false),
        // layered, section 5.4.3, step 17: names that a server might read as one of the prefixes.
        ("=__Secure-k=v; Secure", false), ("__Host-k; Secure; Path=/", false), ("=__Http-k=v; Secure; HttpOnly", false),
        ("=__HOST-HTTP-k=v; Secure; HttpOnly; Path=/", false), ("=__Other-k=v", true),
        ("__Host=v", true), ("_-Host-k=v", true), ("__Http=v", true), ("x__Http-k=v", true), ("__HttpsX-k=v", true),
    ])
    func `a cookie with a name prefix meets its requirements`(field: String, isKept: Bool) throws {
        var jar = CookieJar()
        let request = try #require(CookieRequest(url: requiredURL("https://site.test/")))
        _ = jar.store([field], from: request, policy: .always, now: 0)
        #expect(jar.count == (isKept ? 1 : 0))
    }

    @Test func `a Path that is not ASCII is ignored`() throws {
        var jar = CookieJar()
        let request = try #require(CookieRequest(url: requiredURL("http://site.test/")))
        #expect(jar.store(["k=v; Path=/\u{e9}", "l=w; Path=/; Path=/x\u{b8}"], from: request, policy: .always, now: 0) == [])
    }

    @Test func `a cookie that is set again keeps its position`() throws {
        var jar = CookieJar()
        let request = try #require(CookieRequest(url: requiredURL("http://site.test/")))
        _ = jar.store(["k=1", "l=2", "m=3"], from: request, policy: .always, now: 0)
        _ = jar.store(["l=4"], from: request, policy: .always, now: 1)
        #expect(jar.header(for: request, now: 2) == "k=1; l=4; m=3")
        _ = jar.store(["k=; Max-Age=0"], from: request, policy: .always, now: 3)
        _ = jar.store(["k=5"], from: request, policy: .always, now: 4)
        #expect(jar.header(for: request, now: 5) == "l=4; m=3; k=5")
    }

    /// Section 5.6, steps 6 and 7: name and value have at most 4096 octets together, an attribute's value at most 1024.
    @Test(arguments: [
        (1, 4095, true), (4095, 1, true), (2048, 2048, true), (4096, 0, true), (0, 4096, true),
        (1, 4096, false), (4097, 0, false), (0, 4097, false),
    ])
    func `the size of name and value is limited`(name: Int, value: Int, isKept: Bool) {
        let field = String(repeating: "n", count: name) + "=" + String(repeating: "v", count: value)
        #expect((SetCookie(field) != nil) == isKept)
        // The size is in octets, not in characters.
        #expect(SetCookie("k=" + String(repeating: "\u{e9}", count: 2048)) == nil)
        #expect(SetCookie("k=v; Path=/" + String(repeating: "p", count: 1023))?.path?.utf8.count == 1024)
        #expect(SetCookie("k=v; Path=/" + String(repeating: "p", count: 1024))?.path == nil)
        #expect(SetCookie("k=v; Secure=" + String(repeating: "x", count: 1025))?.isSecure == false)
    }
}
