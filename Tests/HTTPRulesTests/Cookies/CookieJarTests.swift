// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

/// The storage and retrieval of cookies (RFC 6265bis, sections 5.7 and 5.8).
@Suite struct CookieJarTests {
    private static let now: Double = 800_000_000
    private static let day: Double = 86400

    private func request(
        _ url: String, main: String? = nil, method: String = "GET", partition: String? = nil
    ) throws -> CookieRequest {
        let main = try main.map { try requiredURL($0) }
        let request = CookieRequest(url: try requiredURL(url), mainDocumentURL: main, method: method, partition: partition)
        return try #require(request, "\(url)")
    }

    private func header(_ jar: CookieJar, _ url: String, now: Double = Self.now) throws -> String? {
        var jar = jar
        return jar.header(for: try request(url), now: now)
    }

    @Test func `a cookie is stored and sent as section 5-7 requires`() throws {
        // The URL `from` sets the cookie, and a request to the URL `to` has the `Cookie` field `sent`.
        let rows: [(from: String, field: String, to: String, sent: String?, why: String)] = [
            ("http://a.com/x/y", "a=b", "http://a.com/x/z", "a=b", "step 11: the default-path"),
            ("http://a.com/x/y", "a=b", "http://a.com/z", nil, "step 11: the default-path"),
            ("http://a.com/", "a=b; Path=/foo", "http://a.com/foobar", nil, "no path boundary"),
            ("http://a.com/", "a=b; Path=/foo", "http://a.com/foo/bar?q", "a=b", "path-match"),
            ("http://a.com/", "a=b", "http://x.a.com/", nil, "step 10: host-only-flag"),
            ("http://a.com/", "a=b; Domain=a.com", "http://x.a.com/", "a=b", "step 10: domain"),
            ("http://a.com/", "a=b; Domain=.A.COM", "http://x.a.com/", "a=b", "5.6.3: leading dot, lower case"),
            ("http://a.com/", "a=b; Domain=a.com", "http://xa.com/", nil, "suffix without dot"),
            ("http://x.a.com/", "a=b; Domain=a.com", "http://y.a.com/", "a=b", "for the siblings too"),
            ("http://a.com/", "a=b; Domain=x.a.com", "http://x.a.com/", nil, "step 10: does not domain-match"),
            ("http://a.com/", "a=b; Domain=b.com", "http://a.com/", nil, "other"),
            ("http://a.com/", "a=b; Domain=com", "http://a.com/", nil, "step 9, a public suffix"),
            ("http://a.com/", "a=b; Domain=.COM", "http://a.com/", nil, "step 9, a public suffix"),
            ("http://a.co.uk/", "a=b; Domain=co.uk", "http://a.co.uk/", nil, "a public suffix of two labels"),
            ("http://a.github.io/", "a=b; Domain=github.io", "http://a.github.io/", nil, "a private public suffix"),
            ("http://github.io/", "a=b; Domain=github.io", "http://github.io/", "a=b", "step 9: identical to the host"),
            ("http://github.io/", "a=b; Domain=github.io", "http://x.github.io/", nil, "step 9: and then host-only"),
            ("http://localhost/", "a=b; Domain=localhost", "http://localhost/", "a=b", "step 9: identical to the host"),
            ("http://a.com/", "a=b; Domain=a.com.", "http://a.com/", nil, "trailing dot"),
            ("http://a.com./", "a=b; Domain=com.", "http://a.com./", nil, "trailing dot"),
            ("http://127.0.0.1/", "a=b; Domain=0.0.1", "http://127.0.0.1/", nil, "IP suffix"),
            ("http://127.0.0.1/", "a=b; Domain=127.0.0.1", "http://127.0.0.1/", "a=b", "identical"),
            ("http://[::1]/", "a=b", "http://[::1]:8080/", "a=b", "ports are not regarded"),
            ("http://a.com/", "a=b; Domain=", "http://x.a.com/", nil, "an empty Domain is ignored"),
            ("http://a.com/", "a=b; Domain=b\u{fc}cher.a.com", "http://a.com/", nil, "step 8: not ASCII"),
            ("http://xn--bcher-kva.a.com/", "a=b; Domain=xn--bcher-kva.a.com", "http://xn--bcher-kva.a.com/", "a=b", "A-labels"),
            ("http://a.com/", "a=b; Secure", "https://a.com/", nil, "step 13"),
            ("https://a.com/", "a=b; Secure", "http://a.com/", nil, "5.8.3"),
            ("https://a.com/", "a=b; Secure", "https://a.com/", "a=b", "over TLS both ways"),
            ("https://a.com/", "a=b", "http://a.com/", "a=b", "without Secure, both"),
            ("https://a.com/", "__Secure-a=b", "https://a.com/", nil, "step 20"),
            ("https://a.com/", "__SECURE-a=b", "https://a.com/", nil, "case-insensitive"),
            (
                "https://a.com/", "__Secure-a=b; Secure; Domain=a.com", "https://a.com/", "__Secure-a=b",
                "all that the prefix asks for"
            ),
            ("https://a.com/", "__Host-a=b; Secure; Path=/", "https://a.com/", "__Host-a=b", "all that the prefix asks for"),
            ("https://a.com/", "__Host-a=b; Secure", "https://a.com/", nil, "step 21, contains Path"),
            ("https://a.com/x/", "__host-a=b; Secure; Path=/x", "https://a.com/x/", nil, "path is /"),
            ("https://a.com/", "__Host-a=b; Path=/", "https://a.com/", nil, "secure-only-flag"),
            ("https://a.com/", "__Host-a=b; Secure; Path=/; Domain=a.com", "https://a.com/", nil, "host-only-flag"),
            ("https://a.com/", "=__Host-a=b; Secure; Path=/", "https://a.com/", nil, "step 22, nameless"),
            ("https://a.com/", "__secure-a", "https://a.com/", nil, "step 22, nameless"),
            ("https://a.com/", "__Hosta=b", "https://a.com/", "__Hosta=b", "not the prefix"),
            ("http://a.b.c.kobe.jp/", "a=b; Domain=kobe.jp", "http://a.b.c.kobe.jp/", nil, "above the wildcard *.kobe.jp"),
            ("http://c.kobe.jp/", "a=b; Domain=kobe.jp", "http://c.kobe.jp/", nil, "above the wildcard *.kobe.jp"),
            ("http://a.b.c.kobe.jp/", "a=b; Domain=b.c.kobe.jp", "http://b.c.kobe.jp/", "a=b", "step 9: the owner's"),
            ("http://www.city.kobe.jp/", "a=b; Domain=city.kobe.jp", "http://city.kobe.jp/", "a=b", "step 9: the exception"),
            ("http://kobe.jp/", "a=b; Domain=kobe.jp", "http://kobe.jp/", "a=b", "identical"),
            ("https://a.com/", "a=b; SameSite=None", "https://a.com/", nil, "step 19: None needs Secure"),
            ("https://a.com/", "a=b; SameSite=None; Secure", "https://a.com/", "a=b", "step 19"),
            ("https://a.com/", "a=b; Partitioned", "https://a.com/", nil, "CHIPS needs Secure"),
            ("https://a.com/", "a=b; Secure; Partitioned", "https://a.com/", "a=b", "CHIPS"),
            ("http://a.com/", "a=b; Max-Age=0", "http://a.com/", nil, "5.6.2"),
            ("http://a.com/", "a=b; Max-Age=-1", "http://a.com/", nil, "5.6.2"),
            (
                "http://a.com/", "a=b; Max-Age=10; Expires=Wed, 09 Jun 2021 10:18:14 GMT", "http://a.com/", "a=b",
                "step 6: Max-Age first"
            ),
            ("http://a.com/", "a=b; Expires=Wed, 09 Jun 2021 10:18:14 GMT", "http://a.com/", nil, "past"),
            ("http://a.com/", "a=b; Expires=Wed, 99 Jun 2021 10:18:14 GMT", "http://a.com/", "a=b", "5.6.1: failed to parse"),
            ("http://a.com/", "b", "http://a.com/", "b", "a nameless cookie is sent without ="),
            ("http://a.com/", "a=", "http://a.com/", "a=", "an empty value"),
            ("http://a.com/a;b/c", "a=b", "http://a.com/a;b/d", "a=b", "a path may hold a ;"),
        ]
        for row in rows {
            var jar = CookieJar()
            let changes = jar.store([row.field], from: try request(row.from), policy: .always, now: Self.now)
            let isSet = changes.map { if case .set = $0 { true } else { false } }
            #expect(isSet.filter { $0 }.count == jar.count && changes.count <= 1, "\(row.field)")
            #expect(try header(jar, row.to) == row.sent, "\(row.from) \(row.field) \(row.to): \(row.why)")
        }
    }

    @Test func `a cookie from http cannot overlay a secure cookie`() throws {
        // RFC 6265bis, section 5.7, step 16: its note has the example of a secure cookie "a" with the path /login.
        let rows = [
            ("a=x; Path=/", true), ("a=x; Path=/foo", true), ("a=x; Path=/login", false), ("a=x; Path=/login/en", false),
            ("b=x; Path=/login", true), ("a=x; Path=/login; Domain=a.com", false),
        ]
        for (field, isKept) in rows {
            var jar = CookieJar()
            _ = jar.store(["a=1; Secure; Path=/login"], from: try request("https://www.a.com/"), policy: .always, now: Self.now)
            let changes = jar.store([field], from: try request("http://www.a.com/"), policy: .always, now: Self.now)
            #expect(changes.isEmpty != isKept, "\(field)")
        }
        var jar = CookieJar()
        _ = jar.store(["a=1; Secure; Domain=a.com"], from: try request("https://a.com/"), policy: .always, now: Self.now)
        // "Domain-matches the domain of the newly-created cookie, or vice-versa".
        #expect(jar.store(["a=2"], from: try request("http://www.a.com/"), policy: .always, now: Self.now).isEmpty)
        #expect(jar.store(["a=2"], from: try request("http://ba.com/"), policy: .always, now: Self.now).count == 1)
        // An expired secure cookie may be overlaid, although it is still stored.
        var other = CookieJar()
        _ = other.store(["a=1; Secure; Max-Age=10"], from: try request("https://a.com/"), policy: .always, now: Self.now)
        #expect(other.store(["a=2"], from: try request("http://a.com/"), policy: .always, now: Self.now + 9).isEmpty)
        #expect(other.store(["a=3"], from: try request("http://a.com/"), policy: .always, now: Self.now + 20).count == 1)
        #expect(try header(other, "http://a.com/", now: Self.now + 20) == "a=3")
        // A secure origin may overlay a secure cookie.
        #expect(jar.store(["a=2; Domain=a.com"], from: try request("https://a.com/"), policy: .always, now: Self.now).count == 1)
        #expect(jar.all.allSatisfy { !$0.isSecure })
    }

    @Test func `a lifetime is limited to 400 days`() throws {
        var jar = CookieJar()
        let fields = [
            "a=1; Max-Age=99999999999999999999", "b=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", "c=1; Max-Age=60", "d=1",
        ]
        _ = jar.store(fields, from: try request("http://a.com/"), policy: .always, now: Self.now)
        let limit = Self.now + 400 * Self.day
        #expect(jar.all.map(\.expires) == [limit, limit, Self.now + 60, nil])
        #expect(try header(jar, "http://a.com/", now: Self.now + 60) == "a=1; b=1; d=1")
        #expect(jar.removeExpired(now: limit).count == 3)
        #expect(jar.all.map(\.name) == ["d"])
    }

    @Test func `a newer cookie replaces the older one and keeps its creation time`() throws {
        var jar = CookieJar()
        let origin = try request("http://a.com/")
        _ = jar.store(["a=1", "b=1"], from: origin, policy: .always, now: 1)
        let changes = jar.store(["a=2"], from: origin, policy: .always, now: 2)
        guard case .set(let cookie)? = changes.first else { preconditionFailure("set") }
        #expect(changes.count == 1 && cookie.creation == 1 && cookie.lastAccess == 2)
        #expect(jar.header(for: origin, now: 3) == "a=2; b=1")
        // Storing the same cookie again changes only its access time.
        #expect(jar.store(["a=2"], from: origin, policy: .always, now: 4).isEmpty)
        #expect(jar.all.map(\.lastAccess) == [4, 3])
        #expect(jar.store(["a=; Max-Age=0"], from: origin, policy: .always, now: 5) == [.removed(cookie.key)])
        // The host-only flag and the path are parts of the key.
        _ = jar.store(["b=2; Domain=a.com", "b=3; Path=/x"], from: origin, policy: .always, now: 6)
        #expect(jar.count == 3)
    }

    @Test func `APIs other than HTTP neither set nor replace HttpOnly cookies`() throws {
        var jar = CookieJar()
        let origin = try request("http://a.com/")
        #expect(jar.store(["a=1; HttpOnly"], from: origin, policy: .always, isHTTP: false, now: 1).isEmpty)
        _ = jar.store(["a=1; HttpOnly"], from: origin, policy: .always, now: 1)
        #expect(jar.store(["a=2"], from: origin, policy: .always, isHTTP: false, now: 1).isEmpty)
        #expect(jar.store(["a=; Max-Age=0"], from: origin, policy: .always, isHTTP: false, now: 1).isEmpty)
        #expect(jar.store(["a=2"], from: origin, policy: .always, now: 1).count == 1)
    }

    @Test func `the accept policy compares registrable domains`() throws {
        let rows: [(CookieAcceptPolicy, String?, Bool)] = [
            (.always, nil, true), (.never, nil, false), (.onlyFromMainDocumentDomain, nil, true),
            (.always, "https://b.com/", true), (.onlyFromMainDocumentDomain, "https://b.com/", false),
            (.onlyFromMainDocumentDomain, "https://www.a.com/", true), (.never, "https://www.a.com/", false),
        ]
        for (policy, main, isKept) in rows {
            var jar = CookieJar()
            let changes = jar.store(["a=b"], from: try request("https://x.a.com/", main: main), policy: policy, now: 1)
            #expect(changes.isEmpty != isKept, "\(policy) \(main ?? "")")
        }
    }

    @Test func `SameSite is checked when cookies are set and when they are sent`() throws {
        var full = CookieJar()
        let fields = ["s=1; SameSite=Strict", "l=1; SameSite=Lax", "n=1; SameSite=None; Secure", "d=1"]
        _ = full.store(fields, from: try request("https://a.com/"), policy: .always, now: 1)
        let other = try request("https://a.com/", main: "https://b.com/")
        var navigation = other
        navigation.site = .crossSite(topLevelNavigation: true)
        var post = navigation
        post.method = "POST"
        let rows: [(CookieRequest, sent: String, strictly: String, set: Int, why: String)] = [
            (try request("https://a.com/"), "s=1; l=1; n=1; d=1", "s=1; l=1; n=1; d=1", 4, "same-site"),
            (other, "n=1; d=1", "n=1", 2, "cross-site"),
            (navigation, "l=1; n=1; d=1", "l=1; n=1; d=1", 4, "a navigation with a safe method"),
            (post, "n=1; d=1", "n=1", 4, "a navigation with an unsafe method"),
        ]
        for row in rows {
            full.treatsDefaultAsLax = false
            #expect(full.header(for: row.0, now: 2) == row.sent, "\(row.why)")
            full.treatsDefaultAsLax = true
            #expect(full.header(for: row.0, now: 2) == row.strictly, "\(row.why), Default as Lax")
            var empty = CookieJar()
            #expect(empty.store(fields, from: row.0, policy: .always, now: 1).count == row.set, "\(row.why)")
        }
    }

    @Test func `partitioned cookies stay in their partition`() throws {
        var jar = CookieJar()
        let fields = ["p=1; Secure; Partitioned", "u=1"]
        _ = jar.store(fields, from: try request("https://a.com/", partition: "one"), policy: .always, now: 1)
        _ = jar.store(
            ["p=2; Secure; Partitioned"], from: try request("https://a.com/", partition: "two"), policy: .always, now: 2)
        #expect(jar.count == 3)
        #expect(jar.header(for: try request("https://a.com/", partition: "one"), now: 3) == "p=1; u=1")
        #expect(jar.header(for: try request("https://a.com/", partition: "two"), now: 3) == "u=1; p=2")
        #expect(jar.header(for: try request("https://a.com/"), now: 3) == "u=1")
    }

    @Test func `longer paths come first, then older cookies`() throws {
        var jar = CookieJar()
        let origin = try request("https://www.a.com/x/y/z")
        _ = jar.store(["a=1; Path=/", "b=1; Path=/x/y", "c=1; Path=/; Domain=a.com"], from: origin, policy: .always, now: 1)
        _ = jar.store(["d=1; Path=/x; Domain=a.com", "e=1; Path=/"], from: origin, policy: .always, now: 2)
        #expect(jar.header(for: origin, now: 3) == "b=1; d=1; a=1; c=1; e=1")
        #expect(jar.cookies(for: origin, now: 4).map(\.name) == ["b", "d", "a", "c", "e"])
        #expect(jar.all.map(\.name) == ["a", "b", "c", "d", "e"])
        #expect(jar.all.allSatisfy { $0.lastAccess == 4 })
    }

    @Test func `a cookie with ports is sent only to those ports`() throws {
        var jar = CookieJar()
        _ = jar.set(Cookie(name: "a", value: "b", domain: "h.com", ports: [80, 8080]), now: 1)
        #expect(try header(jar, "http://h.com/") == "a=b")
        #expect(try header(jar, "http://h.com:8080/") == "a=b")
        #expect(try header(jar, "http://h.com:81/") == nil)
    }

    @Test func `cookies that the app sets are validated, too`() {
        let good = Cookie(name: "a", value: "b", domain: "a.com", isHostOnly: false, creation: 1)
        func change(_ edit: (inout Cookie) -> Void) -> Int {
            var jar = CookieJar()
            var cookie = good
            edit(&cookie)
            return jar.set(cookie, now: 2).count
        }
        #expect(change { _ in } == 1)
        #expect(change { $0.expires = 1e12 } == 1)
        for text in ["a\r\nb", "a\nb", "a\u{0}b", "a;b", "a\u{7F}"] {
            #expect(change { $0.value = text } == 0 && change { $0.name = text } == 0)
        }
        #expect(change { $0.path = "/\n" } == 0)
        #expect(change { $0.path = "x" } == 0)
        #expect(change { $0.domain = "" } == 0)
        #expect(change { $0.domain = "com" } == 0)
        #expect(change { ($0.domain, $0.isHostOnly) = ("com", true) } == 1)
        #expect(change { $0.name = "a=b" } == 0)
        #expect(change { ($0.name, $0.value) = ("", "") } == 0)
        #expect(change { $0.value = String(repeating: "x", count: 4096) } == 0)
        #expect(change { $0.name = "__Secure-a" } == 0)
        #expect(change { ($0.name, $0.isSecure) = ("__host-a", true) } == 0)
        #expect(change { ($0.name, $0.isSecure, $0.isHostOnly) = ("__host-a", true, true) } == 1)
        var jar = CookieJar()
        var past = good
        past.expires = 1
        #expect(jar.set(past, now: 2) == [.absent(good.key)] && jar.count == 0)
        _ = jar.set(good, now: 2)
        #expect(jar.set(past, now: 2) == [.removed(good.key)] && jar.count == 0)
    }
}
