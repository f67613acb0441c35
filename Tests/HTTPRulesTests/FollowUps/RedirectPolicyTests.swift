// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct RedirectPolicyTests {
    private func decide(
        _ status: Int,
        _ location: String? = "/next",
        method: String = "GET",
        from url: String = "http://h/a/b?q",
        soFar: Int = 0
    ) throws -> RedirectPolicy.Decision {
        RedirectPolicy.decide(
            status: status,
            location: location,
            method: method,
            url: try requiredURL(url),
            redirectsSoFar: soFar
        )
    }

    private func proposal(
        _ status: Int = 302,
        _ location: String,
        method: String = "GET",
        from url: String = "http://h/a/b?q"
    ) throws -> RedirectPolicy.Proposal? {
        guard case .follow(let proposal) = try decide(status, location, method: method, from: url) else { return nil }
        return proposal
    }

    @Test func `the status determines method and body`() throws {
        // RFC 9110, section 15.4.
        let rows: [(Int, String, String, Bool)] = [
            (301, "POST", "GET", false), (302, "POST", "GET", false), (303, "POST", "GET", false),
            (301, "GET", "GET", true), (302, "HEAD", "HEAD", true), (301, "PUT", "PUT", true), (302, "DELETE", "DELETE", true),
            (303, "HEAD", "GET", false), (303, "PUT", "GET", false), (303, "GET", "GET", false),
            (305, "POST", "POST", true), (306, "POST", "POST", true), (307, "POST", "POST", true), (308, "POST", "POST", true),
            (307, "PUT", "PUT", true), (308, "HEAD", "HEAD", true),
        ]
        for (status, method, expected, keepsBody) in rows {
            let proposal = try #require(try proposal(status, "/next", method: method), "\(status) \(method)")
            #expect(proposal.method == expected, "\(status) \(method)")
            #expect(proposal.keepsBody == keepsBody, "\(status) \(method)")
            #expect(proposal.dropsContentFields == !keepsBody, "\(status) \(method)")
            #expect(!proposal.crossesOrigin, "\(status) \(method)")
        }
    }

    @Test func `a response that is not a redirect is delivered`() throws {
        for status in [200, 206, 300, 304, 309, 399, 400, 401] {
            #expect(try decide(status) == .deliver, "\(status)")
        }
        for location in [nil, "", " \t "] as [String?] {
            #expect(try decide(302, location) == .deliver)
        }
    }

    @Test func `at most twenty redirects are followed`() throws {
        #expect(try decide(302, soFar: 19) != .fail(.tooMany))
        #expect(try decide(302, soFar: 20) == .fail(.tooMany))
        #expect(try decide(200, soFar: 20) == .deliver)
    }

    @Test func `a redirect to a local scheme fails`() throws {
        for location in ["file:///etc/passwd", "FILE:///x", " file:x", "data:,x", "Data:,x"] {
            #expect(try decide(302, location) == .fail(.unsupportedScheme), "\(location)")
        }
        #expect(try decide(302, "/etc/passwd", from: "file:///x") == .fail(.unsupportedScheme))
    }

    @Test func `a redirect to a scheme other than HTTP is left to the app, and leaves the origin`() throws {
        let rows: [(String, String)] = [
            ("myapp://callback?code=1#t", "myapp://callback?code=1#t"), ("MyApp://Callback", "myapp://Callback"),
            ("mailto:a@b", "mailto:a@b"), ("x-app:1", "x-app:1"), ("x-app:a/../b", "x-app:a/../b"), ("x-app:/a/../b", "x-app:/b"),
            ("x-app://h/a/../b", "x-app://h/b"), ("x-app:a b", "x-app:a%20b"), ("about:blank", "about:blank"),
            ("ftp://h/x", "ftp://h/x"), ("ws://h/", "ws://h/"), ("javascript:alert(1)", "javascript:alert(1)"),
        ]
        for (location, expected) in rows {
            let proposal = try proposal(302, location, method: "POST")
            #expect(proposal?.url.absoluteString == expected, "\(location)")
            #expect(proposal?.crossesOrigin == true && proposal?.method == "GET", "\(location)")
        }
        #expect(try decide(302, "myapp://a b") == .fail(.malformedLocation))
        #expect(try decide(302, "myapp://x", soFar: 20) == .fail(.tooMany))
    }

    @Test func `an invalid Location fails`() throws {
        for location in [
            "http://", "http:///", "///", "http:///:1/", "https:next", "http://h:99999/", "http://a\\@b/", "http://h%00/", "//",
            "//:1",
            "http://[::1/",
        ] {
            #expect(try decide(302, location) == .fail(.malformedLocation), "\(location)")
        }
    }

    @Test func `a Location is resolved against the request URL`() throws {
        let rows: [(String, String)] = [
            // RFC 3986, section 5.4.1, on http://a/b/c/d;p?q.
            ("http:g", "http://a/b/c/g"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
            (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"), ("../../g", "http://a/g"),
            // RFC 3986, section 5.4.2.
            ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/../x", "http://a/b/c/g#s/../x"),
            // Odd values.
            ("http:///g", "http://g"), ("http:////g/p", "http://g/p"), ("///g:81/p?q", "http://g:81/p?q"),
            ("https:///g//p", "https://g//p"),
            ("HTTP://G/p", "http://G/p"), ("http://g:80/", "http://g:80/"), ("http://g", "http://g"), ("  /g\t", "http://a/g"),
            ("/a b", "http://a/a%20b"), ("/ä?ö#ü", "http://a/%C3%A4?%C3%B6#%C3%BC"), ("/100%", "http://a/100%25"),
            ("/%41%zz", "http://a/%41%25zz"),
            ("/a\\b", "http://a/a%5Cb"), ("/<\"'>`{|}^", "http://a/%3C%22'%3E%60%7B%7C%7D%5E"),
            ("/x?a[]=1", "http://a/x?a%5B%5D=1"),
            ("1:2", "http://a/b/c/1:2"), (":x", "http://a/b/c/:x"), ("a/b:c", "http://a/b/c/a/b:c"),
            ("g?a?b#c#d", "http://a/b/c/g?a?b#c%23d"),
            ("https://u:p@g:8443/x?y", "https://u:p@g:8443/x?y"), ("?", "http://a/b/c/d;p?"),
        ]
        for (location, expected) in rows {
            #expect(try proposal(302, location, from: "http://a/b/c/d;p?q")?.url.absoluteString == expected, "\(location)")
        }
        #expect(try proposal(302, "g", from: "http://a")?.url.absoluteString == "http://a/g")
        #expect(try proposal(302, "g", from: "http://a?x/y")?.url.absoluteString == "http://a/g")
        #expect(try proposal(302, "/g", from: "http://u:p@a:81/x")?.url.absoluteString == "http://u:p@a:81/g")
    }

    @Test func `the fragment is inherited if Location has none`() throws {
        // RFC 9110, section 10.2.2.
        #expect(try proposal(301, "/n", from: "http://h/a#f")?.url.absoluteString == "http://h/n#f")
        #expect(try proposal(301, "http://g/n", from: "http://h/a#f")?.url.absoluteString == "http://g/n#f")
        #expect(try proposal(301, "/n#g", from: "http://h/a#f")?.url.absoluteString == "http://h/n#g")
        #expect(try proposal(301, "/n#", from: "http://h/a#f")?.url.absoluteString == "http://h/n#")
    }

    @Test func `userinfo is kept within its origin`() throws {
        let same = try #require(try proposal(302, "/n", from: "http://u:p@h/"))
        #expect(same.url.user() == "u" && !same.crossesOrigin)
        let other = try #require(try proposal(302, "//g/n", from: "http://u:p@h/"))
        #expect(other.url.user() == nil && other.crossesOrigin)
    }

    @Test func `octets of a Location that are not allowed in a URL are encoded one by one`() throws {
        let rows: [([UInt8], String?)] = [
            (Array("/jos".utf8) + [0xE9], "http://h/jos%E9"), (Array("/josé".utf8), "http://h/jos%C3%A9"),
            // One odd octet does not change the others.
            (
                Array("/é/".utf8) + [0xE9] + Array("?é=".utf8) + [0xFF, 0x80] + Array("#é".utf8) + [0xC3],
                "http://h/%C3%A9/%E9?%C3%A9=%FF%80#%C3%A9%C3"
            ),
            // The octets with which other octets are represented as text.
            ([0x2F, 0xF4, 0x8F, 0xBF, 0xA9, 0xE9], "http://h/%F4%8F%BF%A9%E9"),
            (Array("http://u".utf8) + [0xE4] + Array(":p".utf8) + [0xFF] + Array("@h/".utf8), "http://u%E4:p%FF@h/"),
            (Array("http://ü:p@h/".utf8), "http://%C3%BC:p@h/"), (Array("http://ü.example/".utf8), "http://xn--tda.example/"),
            (Array("http://h".utf8) + [0xE9] + Array("/".utf8), nil),
        ]
        for (location, expected) in rows {
            let text = OctetText.text(of: location[...])
            #expect(try proposal(302, text, from: "http://h/")?.url.absoluteString == expected, "\(text)")
            if expected == nil { #expect(try decide(302, text) == .fail(.malformedLocation)) }
        }
    }

    @Test func `another scheme, host or port is another origin`() throws {
        let rows: [(String, Bool)] = [
            ("http://h/x", false), ("http://H:80/x", false), ("https://h/x", true), ("http://h:81/x", true), ("http://g/x", true),
        ]
        for (location, crosses) in rows {
            #expect(try proposal(302, location)?.crossesOrigin == crosses, "\(location)")
        }
        #expect(try proposal(302, "http://h/", from: "https://h/")?.crossesOrigin == true)
    }

    private static let fields = HeaderBlock([
        ("Authorization", "Basic x"), ("cookie", "a=b"), ("Cookie2", "x"), ("Proxy-Authorization", "y"),
        ("WWW-Authenticate", "z"),
        ("Proxy-Authenticate", "z"), ("Accept", "*/*"), ("CONTENT-TYPE", "text/plain"), ("Content-Length", "3"),
        ("Content-MD5", "m"),
        ("Transfer-Encoding", "chunked"), ("Expect", "100-continue"), ("Trailer", "x"), ("Last-Modified", "d"), ("X-Own", "1"),
        ("HOST", "other.example"),
    ])

    private func kept(_ location: String, status: Int = 307, mayHaveProxy: Bool = false) throws -> [String] {
        let proposal = try #require(try proposal(status, location, method: "POST"))
        return RedirectPolicy.strippedHeaders(Self.fields, proposal: proposal, mayHaveProxy: mayHaveProxy).fields.map(\.name)
    }

    @Test func `fields for a proxy are kept if a proxy is possible and the redirect is to http or https`() throws {
        let rows: [(location: String, mayHaveProxy: Bool, isKept: Bool)] = [
            ("/n", true, true), ("https://h/n", true, true), ("http://other/", true, true), ("myapp://h/n", true, false),
            ("/n", false, false), ("https://h/n", false, false), ("myapp://h/n", false, false),
        ]
        for row in rows {
            let names = try kept(row.location, mayHaveProxy: row.mayHaveProxy)
            #expect(names.contains("Proxy-Authorization") == row.isKept, "\(row)")
        }
    }

    @Test func `a redirect to another origin drops credentials and the app's own Host`() throws {
        #expect(
            try kept("https://h/n") == [
                "Accept", "CONTENT-TYPE", "Content-Length", "Content-MD5", "Transfer-Encoding", "Expect", "Trailer",
                "Last-Modified", "X-Own",
            ]
        )
    }

    @Test func `the fields dropped on a redirect are those withheld from other origins`() throws {
        let crossing = try #require(try proposal(307, "https://h/n", method: "POST"))
        for name in Self.fields.fields.map(\.name) where name != "Proxy-Authorization" {
            let kept = RedirectPolicy.strippedHeaders(HeaderBlock([(name: name, value: "x")]), proposal: crossing)
            #expect(kept.contains(name) == !RedirectPolicy.isBoundToOrigin(name), "\(name)")
        }
        for name in ["authorization", "AUTHORIZATION", "Cookie", "cookie2"] { #expect(RedirectPolicy.isBoundToOrigin(name)) }
        for name in ["", "Authorizations", "X-Authorization", "Accept"] { #expect(!RedirectPolicy.isBoundToOrigin(name)) }
    }

    @Test func `a redirect within the origin keeps everything except the proxy's credentials`() throws {
        #expect(try kept("/n") == Self.fields.fields.map(\.name).filter { $0 != "Proxy-Authorization" })
    }

    @Test func `fields that describe the body are dropped together with the body`() throws {
        // RFC 9110, section 15.4.
        #expect(
            try kept("/n", status: 303) == [
                "Authorization", "cookie", "Cookie2", "WWW-Authenticate", "Proxy-Authenticate", "Accept", "X-Own", "HOST",
            ]
        )
    }

    @Test func `fields dropped on the way to B stay dropped when B redirects back to A`() throws {
        let away = try #require(try proposal(302, "http://b/", from: "http://a/"))
        let fields = RedirectPolicy.strippedHeaders(Self.fields, proposal: away)
        let back = try #require(try proposal(302, "http://a/", from: "http://b/"))
        #expect(!RedirectPolicy.strippedHeaders(fields, proposal: back).contains("Authorization"))
    }

    @Test func `random Locations lead to a server or nowhere, never to local content`() throws {
        let pieces = [
            "http", "HTTPS", ":", "/", "//", "..", ".", "?", "#", "%", "%41", "@", "[::1]", "\\", " ", "ä", "h", "\u{0}", "\r\n",
            "file",
        ]
        let base = try requiredURL("http://u:p@h:8080/a/b/c?d#e")
        for seed in 0..<4000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let location = random.text(of: pieces, upTo: 10)
            let decision = RedirectPolicy.decide(status: 302, location: location, method: "GET", url: base, redirectsSoFar: 0)
            guard case .follow(let proposal) = decision else { continue }
            let isOther = !["http", "https", "file", "data"].contains(proposal.url.scheme?.lowercased())
            #expect(isOther || (try? RequestTarget(proposal.url)) != nil, "seed \(seed): \(location.debugDescription)")
            #expect(proposal.crossesOrigin == (Origin(proposal.url) != Origin(base)), "seed \(seed)")
        }
    }
}
