// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@Suite struct HTTPCookieHeaderTests {
    private func cookies(_ field: String, _ url: String = "https://example.com") throws -> [HTTPCookie] {
        let fields = ["header1": "value1", "Set-Cookie": field, "header2": "value2"]
        return HTTPCookie.cookies(withResponseHeaderFields: fields, for: try #require(URL(string: url)))
    }

    private func one(_ field: String, _ url: String = "https://example.com") throws -> HTTPCookie {
        let cookies = try cookies(field, url)
        try #require(cookies.count == 1, "\(cookies)")
        return cookies[0]
    }

    @Test func `a cookie has the values of its attributes`() throws {
        let cookie = try one("fr=anjd&232; Max-Age=7776000; path=/p; domain=.example.com; secure; httponly; SameSite=Lax")
        #expect(cookie.name == "fr" && cookie.value == "anjd&232" && cookie.path == "/p" && cookie.domain == ".example.com")
        #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.sameSitePolicy == .sameSiteLax && !cookie.isSessionOnly)
        #expect(7_775_900...7_776_000 ~= (try #require(cookie.expiresDate)).timeIntervalSinceNow)
    }

    @Test func `other header fields set no cookies, and the field name is case-insensitive`() throws {
        let url = try #require(URL(string: "http://example.com"))
        #expect(HTTPCookie.cookies(withResponseHeaderFields: ["header1": "a=b"], for: url).isEmpty)
        #expect(HTTPCookie.cookies(withResponseHeaderFields: ["set-cookie": "a=b", "SET-COOKIE": "c=d"], for: url).count == 2)
    }

    @Test func `joined cookies are parsed separately`() throws {
        let two = try cookies(
            "fr=a&2@#; Max-Age=1186000; path=/; domain=.example.com; secure, xd=plm!@#;path=/;domain=.example2.com")
        #expect(
            two.map(\.name) == ["fr", "xd"] && two.map(\.value) == ["a&2@#", "plm!@#"] && two.map(\.isSecure) == [true, false])
        #expect(two.map(\.domain) == [".example.com", ".example2.com"])
        let tail = "path=/; domain=.example.com; expires=Sun, 16-Aug-2025 22:39:54 GMT"
        for first in ["AAA=111", "AAA =111", " AAA=111"] {
            let dated = try cookies("\(first); \(tail), BBB=222; HttpOnly; \(tail)", "http://www.example.com/")
            #expect(dated.map(\.name) == ["AAA", "BBB"] && dated.map(\.value) == ["111", "222"])
            #expect(dated.map(\.isHTTPOnly) == [false, true])
        }
    }

    @Test func `dates are parsed in three formats`() throws {
        let dates = ["Wed, 01 Jan 2020 12:30:00 GMT", "Wed Jan 1 12:30:00 2020", "Wed, 01-Jan-2020 12:30:00 GMT"]
        let field = dates.enumerated().map { "f\($0)=true; expires=\($1); path=/; domain=swift.org; secure; httponly" }
        let three = try cookies(field.joined(separator: ",\n"), "https://swift.org")
        #expect(three.count == 3)
        for cookie in three {
            #expect(cookie.expiresDate == Date(timeIntervalSince1970: 1_577_881_800))
            #expect(cookie.domain == ".swift.org" && cookie.path == "/")
        }
    }

    @Test func `a cookie without a domain is host-only, and one without a path applies to the whole host`() throws {
        let cookie = try one("fr=tx; expires=Wed, 21-Sep-2016 05:33:00 GMT; secure", "https://Example.com/docs/page")
        #expect(cookie.domain == "example.com" && cookie.path == "/" && cookie.version == 0)
        #expect(cookie.expiresDate == Date(timeIntervalSince1970: 1_474_435_980))
        #expect(try one("name=value;Path=This/is/not/a/valid/path").path == "/")
    }

    @Test func `a domain is lowercased and gets a leading dot, but an address gets no dot`() throws {
        let rows = [
            ("; domain=eXample.com", "http://eXample.com", ".example.com"),
            ("; domain=.eXample.com", "http://eXample.com", ".example.com"),
            ("; domain=a.eXample.com", "http://a.eXample.com", ".a.example.com"), ("", "http://a.eXample.com", "a.example.com"),
            ("; domain=1.2.3.4", "http://eXample.com", "1.2.3.4"), ("; domain=", "http://example.com", "example.com"),
        ]
        for (attribute, url, domain) in rows {
            #expect(try one("PREF=a=b; path=/\(attribute)", url).domain == domain, "\(attribute) from \(url)")
        }
    }

    @Test func `a cookie without a name is accepted, as in a session`() throws {
        let rows = [
            ("=value1;attr2=value2", "value1"), ("   =value1;attr2=value2", "value1"), ("name; Secure", "name"), ("=", nil),
        ]
        for (field, value) in rows {
            let found = try cookies(field)
            #expect(found.map(\.value) == (value.map { [$0] } ?? []) && found.allSatisfy { $0.name.isEmpty }, "\(field)")
        }
        let cookie = try one("token; Secure; Path=/a")
        #expect(cookie.isSecure && cookie.path == "/a")
        #expect(HTTPCookie.requestHeaderFields(with: [cookie]) == ["Cookie": "token"])
        #expect(cookie.properties.flatMap(HTTPCookie.init(properties:)) == cookie)
    }

    @Test func `a field without name and value, or with a control character, is not a cookie`() throws {
        for field in [";attr1=value1", "", " = ; Path=/", "a=b\u{1}"] { #expect(try cookies(field).isEmpty, "\(field)") }
    }

    @Test func `a comma that is not followed by a valid name does not end a cookie`() throws {
        let cookie = try one("n=v; Comment=real value, tok@en=second; CommentURL=https://example.com/second")
        #expect(cookie.name == "n" && cookie.value == "v" && cookie.comment == "real value, tok@en=second")
        #expect(cookie.commentURL == URL(string: "https://example.com/second"))
    }

    @Test func `an attribute without a name is ignored`() throws {
        let cookie = try one("n=v; =Discard; =Secure; Comment=; =Comment=x; Expires=Wed, 01 Jan 2020 12:30:00 GMT")
        #expect(!cookie.isSessionOnly && !cookie.isSecure && cookie.comment == nil)
    }

    @Test func `a Domain that is a public suffix makes a host-only cookie if it is the host itself`() throws {
        // RFC 6265bis, section 5.7, step 9: "If the domain-attribute is identical to the canonicalized request-host".
        let rows = [
            ("localhost", "http://localhost:8080"), ("github.io", "https://GitHub.io"), ("127.0.0.1", "http://127.0.0.1"),
        ]
        for (domain, url) in rows { #expect(try one("n=v; Domain=\(domain)", url).domain == domain, "\(domain)") }
        #expect(try one("n=v; Domain=github.io", "https://a.github.io").domain == ".github.io")
    }

    @Test func `a value may contain equals signs`() throws {
        #expect(try one("name=v=a=l=u=e;attr1=value1").value == "v=a=l=u=e")
    }

    @Test func `attributes of RFC 2965 are kept`() throws {
        let cookie = try one(
            "name=value;Version=1;Comment=value1, and more;   =value2;CommentURL=value3;Port=\"80,8080\"; Max-Age=60"
        )
        #expect(cookie.version == 1 && cookie.comment == "value1, and more" && cookie.commentURL == URL(string: "value3"))
        #expect(cookie.portList == [80, 8080] && !cookie.isSessionOnly)
        let bare = try one("name=value;Secure;Comment;Discard;CommentURL;HttpOnly;Port;Expires=Wed, 01 Jan 2020 12:30:00 GMT")
        #expect(bare.isSecure && bare.isHTTPOnly && bare.isSessionOnly && bare.comment == nil && bare.commentURL == nil)
        #expect(bare.portList == [443])
    }

    @Test func `flags are set with any value`() throws {
        // RFC 6265bis, section 5.6.5: "If the attribute-name case-insensitively matches the string 'Secure'".
        let cookie = try one("name=value;Secure=1;HttpOnly=Yes")
        #expect(cookie.isSecure && cookie.isHTTPOnly)
    }

    @Test func `the Cookie field contains the pairs in order`() throws {
        #expect(HTTPCookie.requestHeaderFields(with: []).isEmpty)
        let two = try ["TestCookie1=testValue1; path=/a", "TestCookie2=testValue2"].map { try one($0) }
        #expect(HTTPCookie.requestHeaderFields(with: two) == ["Cookie": "TestCookie1=testValue1; TestCookie2=testValue2"])
        let nameless = try #require(HTTPCookie(properties: [.name: "", .value: "v", .path: "/", .domain: "a.example"]))
        #expect(HTTPCookie.requestHeaderFields(with: [nameless]) == ["Cookie": "v"])
    }
}
