// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which cookies are accepted and sent: RFC 6265bis, the configuration and the request.
@Suite(.timeLimit(.minutes(1)))
struct CookiePolicyTests {
    private static func without(cookies request: inout URLRequest) { request.httpShouldHandleCookies = false }

    private static func document(_ url: URL) -> (inout URLRequest) -> Void {
        { $0.mainDocumentURL = url }
    }

    // MARK: Scope

    struct PathRow: Sendable, CustomTestStringConvertible {
        let field: String, setAt: String
        let sentAt: [String], notAt: [String]
        var testDescription: String { "\(field) set at \(setAt)" }
    }

    @Test(arguments: [
        PathRow(
            field: "a=1; Path=/foo", setAt: "/", sentAt: ["/foo", "/foo/", "/foo/bar", "/foo?q"],
            notAt: ["/", "/foobar", "/fo", "/FOO"]),
        PathRow(field: "a=1; Path=/foo/", setAt: "/", sentAt: ["/foo/", "/foo/bar"], notAt: ["/foo", "/foobar"]),
        PathRow(field: "a=1", setAt: "/dir/page", sentAt: ["/dir", "/dir/", "/dir/other"], notAt: ["/", "/directory"]),
        PathRow(field: "a=1", setAt: "/page", sentAt: ["/", "/other/page"], notAt: []),
        PathRow(field: "a=1; Path=relative", setAt: "/dir/page", sentAt: ["/dir/x"], notAt: ["/relative"]),
        PathRow(field: "a=1; Path=", setAt: "/dir/page", sentAt: ["/dir/x"], notAt: ["/"]),
        PathRow(field: "a=1; Path=/x; path=/y", setAt: "/", sentAt: ["/y"], notAt: ["/x"]),
        // A page may set cookies for other paths.
        PathRow(field: "a=1; Path=/other", setAt: "/dir/page", sentAt: ["/other"], notAt: ["/dir/page"]),
    ])
    func `a cookie is sent to its path and below`(row: PathRow) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive(row.field, at: row.setAt)
            for path in row.sentAt { #expect(try await scene.sent(at: path) == "a=1", "\(path)") }
            for path in row.notAt { #expect(try await scene.sent(at: path) == nil, "\(path)") }
        }
    }

    @Test func `longer paths come first, then older cookies`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Path=/", "b=2; Path=/x", "c=3; Path=/", "b=4; Path=/x/y")
            #expect(try await scene.sent(at: "/x/y/z") == "b=4; b=2; a=1; c=3")
        }
    }

    struct DomainRow: Sendable, CustomTestStringConvertible {
        let domain: String?, setBy: String
        let sentTo: [String], notTo: [String]
        var testDescription: String { "\(domain ?? "none") set by \(setBy)" }
    }

    @Test(arguments: [
        DomainRow(
            domain: nil, setBy: "site.localhost", sentTo: ["site.localhost", "SITE.localhost"], notTo: ["www.site.localhost"]),
        DomainRow(domain: "", setBy: "site.localhost", sentTo: ["site.localhost"], notTo: ["www.site.localhost"]),
        DomainRow(
            domain: "site.localhost", setBy: "www.site.localhost",
            sentTo: ["site.localhost", "www.site.localhost", "a.b.site.localhost"],
            notTo: ["website.localhost", "other.localhost"]
        ),
        DomainRow(
            domain: ".SITE.LocalHost", setBy: "site.localhost", sentTo: ["site.localhost", "www.site.localhost"],
            notTo: ["mysite.localhost"]
        ),
        // The host itself gets the cookie, although a cookie for all hosts below `localhost` is not allowed.
        DomainRow(domain: "localhost", setBy: "localhost", sentTo: ["localhost"], notTo: ["site.localhost"]),
        DomainRow(domain: "127.0.0.1", setBy: "127.0.0.1", sentTo: ["127.0.0.1"], notTo: ["localhost"]),
        // The last Domain attribute counts.
        DomainRow(
            domain: "other.example; Domain=site.localhost", setBy: "site.localhost", sentTo: ["www.site.localhost"], notTo: []
        ),
    ])
    func `a cookie is sent to its domain`(row: DomainRow) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1" + (row.domain.map { "; Domain=" + $0 } ?? ""), host: row.setBy)
            for host in row.sentTo { #expect(try await scene.sent(host: host) == "a=1", "\(host)") }
            for host in row.notTo { #expect(try await scene.sent(host: host) == nil, "\(host)") }
        }
    }

    @Test(arguments: [
        ("other.example", "site.localhost"), ("www.site.localhost", "site.localhost"), ("com", "site.localhost"),
        ("co.uk", "site.localhost"), ("localhost", "site.localhost"), (".localhost", "www.site.localhost"),
        ("te.localhost", "site.localhost"), ("site.localhost.", "site.localhost"), ("0.0.1", "127.0.0.1"), ("1", "127.0.0.1"),
        (".0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("127.0.0.1", "localhost"), ("site..localhost", "site.localhost"),
        ("site.localhost; Domain=other.example", "site.localhost"),
    ])
    func `a cookie for a domain that does not match the host is rejected`(domain: String, host: String) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Domain=\(domain)", host: host)
            #expect(try scene.stored.isEmpty)
            #expect(try await scene.sent(host: host) == nil)
        }
    }

    // MARK: Expiry

    @Test(arguments: [
        ("a=1; Max-Age=0", false), ("a=1; Max-Age=-1", false), ("a=1; Expires=Thu, 01 Jan 1970 00:00:01 GMT", false),
        ("a=1; Max-Age=0; Expires=Wed, 01 Jan 2098 00:00:00 GMT", false),
        ("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:01 GMT", true),
        ("a=1; Expires=Thu, 01-Jan-70 00:00:01 GMT", false), ("a=1; Expires=Thu Jan  1 00:00:01 1970", false),
        ("a=1; Expires=nonsense", true), ("a=1; Max-Age=nonsense", true), ("a=1; Max-Age=99999999999999999999999", true),
        ("a=1; Max-Age=-99999999999999999999999", false), ("a=1; Max-Age=60; Max-Age=0", false),
    ])
    func `an expired cookie removes the existing cookie and is not sent`(field: String, isKept: Bool) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=0; Max-Age=1000")
            try await scene.receive(field)
            #expect(try await scene.sent() == (isKept ? "a=1" : nil))
            #expect(try scene.stored == (isKept ? ["a=1"] : []))
        }
    }

    @Test func `the storage knows when a cookie expires, after at most 400 days`() async throws {
        let day = 86_400.0
        try await withCookies { (scene) async throws in
            let start = Date(timeIntervalSinceNow: -1)
            try await scene.receive(
                "a=1; Max-Age=60", "b=1; Max-Age=99999999999", "c=1; Expires=Wed, 01 Jan 2098 00:00:00 GMT", "d=1")
            let end = Date(timeIntervalSinceNow: 1)
            let cookies = try #require(try scene.storage.cookies)
            for (cookie, seconds) in zip(cookies, [60, 400 * day, 400 * day]) {
                let expiry = try #require(cookie.expiresDate, "\(cookie.name)")
                #expect(
                    expiry >= start.addingTimeInterval(seconds) && expiry <= end.addingTimeInterval(seconds), "\(cookie.name)")
                #expect(!cookie.isSessionOnly)
            }
            #expect(cookies.last?.expiresDate == nil && cookies.last?.isSessionOnly == true)
        }
    }

    // MARK: Secure

    @Test func `a secure cookie is only sent and accepted over TLS`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Secure", "b=2", overTLS: true)
            #expect(try await scene.sent(overTLS: true) == "a=1; b=2")
            #expect(try await scene.sent() == "b=2")
            try await scene.receive("c=3; SECURE")
            #expect(try scene.stored == ["a=1", "b=2"])
        }
    }

    @Test func `a secure cookie is not sent after a redirect to http`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(reply: { _ in .ok("end") }) { (clear) async throws in
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { _ in
                    .redirect(
                        302, to: clear.url("/", host: "localhost").absoluteString,
                        [("Set-Cookie", "a=1; Secure"), ("Set-Cookie", "b=2")])
                }
            ) { (server, session) async throws in
                #expect(try await session.text(server.url("/", host: "localhost")) == "end")
                #expect(clear.requests.map { $0.header("Cookie") } == ["b=2"])
            }
        }
    }

    @Test(arguments: ["a=2", "a=2; Path=/x", "a=2; Path=/x/y", "a=2; Max-Age=0; Path=/x", "a=; Domain=localhost"])
    func `a response over http does not affect secure cookies`(field: String) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Secure; Path=/x", overTLS: true)
            try await scene.receive(field, at: "/x/page")
            #expect(try await scene.sent(at: "/x/y", overTLS: true) == "a=1")
            #expect(try await scene.sent(at: "/x/y") == nil)
        }
    }

    @Test func `a cookie that does not shadow a secure cookie can be set over http`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Secure; Path=/x/y", overTLS: true)
            try await scene.receive("a=2; Path=/x", "b=3; Path=/x/y")
            #expect(try await scene.sent(at: "/x/y", overTLS: true) == "a=1; b=3; a=2")
        }
    }

    @Test(
        arguments: [
            ("__Secure-a=1; Secure", true, true), ("__Secure-a=1", true, false), ("__Secure-a=1; Secure", false, false),
            ("__sEcUrE-a=1", true, false), ("__Secure-a=1; Secure; Path=/x", true, true), ("__Hosts=1", false, true),
            ("__Host-a=1; Secure; Path=/", true, true), ("__Host-a=1; Secure", true, false), ("__Host-a=1; Path=/", true, false),
            ("__Host-a=1; Secure; Path=/dir", true, false), ("__host-a=1; Path=/", true, false),
            ("__Host-a=1; Secure; Path=/", false, false), ("=__Secure-a=1; Secure", true, false),
            ("__Host-a; Secure; Path=/", true, false),
        ] as [(String, Bool, Bool)])
    func `cookie name prefixes are enforced`(field: String, overTLS: Bool, isKept: Bool) async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive(field, at: "/dir/page", overTLS: overTLS)
            #expect(try scene.stored.count == (isKept ? 1 : 0))
        }
    }

    // MARK: Third parties

    @Test func `by default cookies are rejected for another site's document`() async throws {
        try await withCookies { (scene) async throws in
            #expect(scene.session.configuration.httpCookieAcceptPolicy == .onlyFromMainDocumentDomain)
            let other = scene.url("/", host: "127.0.0.1")
            try await scene.receive("a=1", change: Self.document(other))
            #expect(try scene.stored.isEmpty)
            for document in [scene.url("/page"), scene.clear.url("/", host: "LOCALHOST")] {
                try await scene.receive("a=1", change: Self.document(document))
                #expect(try scene.stored == ["a=1"], "\(document)")
                try scene.storage.removeCookies(since: .distantPast)
            }
            try await scene.receive(
                "a=1", host: "cdn.site.localhost", change: Self.document(scene.url("/", host: "www.site.localhost")))
            #expect(try scene.stored == ["a=1"])
            try await scene.receive(
                "b=1", host: "cdn.site.localhost", change: Self.document(scene.url("/", host: "other.localhost")))
            #expect(try scene.stored == ["a=1"])
        }
    }

    @Test func `a document that is redirected to another site accepts that site's cookies`() async throws {
        try await withScenario(
            reply: { request in
                request.path == "/a"
                    ? .redirect(302, to: "http://127.0.0.1:\(request.header("Host")?.split(separator: ":").last ?? "")/b")
                    : .ok("", [("Set-Cookie", "a=1")])
            }
        ) { (server, session) async throws in
            let url = server.url("/a", host: "localhost")
            var request = URLRequest(url)
            request.mainDocumentURL = url
            _ = try await session.data(for: request)
            #expect(session.configuration.httpCookieStorage?.cookies?.map(\.domain) == ["127.0.0.1"])
        }
    }

    @Test func `with the policy named always, third-party cookies are accepted`() async throws {
        try await withCookies(configure: { $0.httpCookieAcceptPolicy = .always }) { (scene) async throws in
            let change = Self.document(scene.url("/", host: "127.0.0.1", overTLS: true))
            try await scene.receive("a=1; SameSite=None; Secure", overTLS: true, change: change)
            #expect(try await scene.sent(overTLS: true, change: change) == "a=1")
        }
    }

    @Test func `with the policy named never, all cookies are rejected, but stored cookies are sent`() async throws {
        try await withCookies(configure: { $0.httpCookieAcceptPolicy = .never }) { (scene) async throws in
            try await scene.receive("a=1")
            #expect(try scene.stored.isEmpty)
            try scene.storage.setCookie(try cookie("own"))
            try await scene.receive("own=2", "own=; Max-Age=0")
            #expect(try await scene.sent() == "own=1")
        }
    }

    @Test func `the configuration's policy applies, not the storage's`() async throws {
        try await withCookies(configure: { $0.httpCookieStorage?.cookieAcceptPolicy = .never }) { (scene) async throws in
            try await scene.receive("a=1")
            #expect(try scene.stored == ["a=1"])
        }
    }

    // MARK: Sessions and requests without cookies

    @Test func `a session that does not set cookies sends no stored ones`() async throws {
        try await withCookies(configure: { $0.httpShouldSetCookies = false }) { (scene) async throws in
            try scene.storage.setCookie(try cookie("stored"))
            #expect(try await scene.sent() == nil)
            #expect(try await scene.sent { $0.setValue("own=1", forHTTPHeaderField: "Cookie") } == "own=1")
        }
        try await withCookies(
            configure: {
                $0.httpShouldSetCookies = false
                $0.httpAdditionalHeaders = ["Cookie": "all=1"]
            }
        ) { (scene) async throws in
            #expect(try await scene.sent() == "all=1")
        }
    }

    @Test func `a session that does not set cookies still stores received ones, according to its accept policy`() async throws {
        for policy in [HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain, .always, .never] {
            try await withCookies(
                configure: {
                    $0.httpShouldSetCookies = false
                    $0.httpCookieAcceptPolicy = policy
                }
            ) { (scene) async throws in
                try await scene.receive("a=1")
                #expect(try scene.stored == (policy == .never ? [] : ["a=1"]))
                #expect(try await scene.sent() == nil)
            }
        }
    }

    @Test func `the Cookie of the session precedes stored cookies, and the Cookie of a request replaces it`() async throws {
        try await withCookies(configure: { $0.httpAdditionalHeaders = ["Cookie": "all=1"] }) { (scene) async throws in
            try await scene.receive("stored=2")
            #expect(try await scene.sent() == "all=1; stored=2")
            #expect(try await scene.sent { $0.setValue("own=3", forHTTPHeaderField: "Cookie") } == "own=3; stored=2")
        }
    }

    @Test func `a request that does not handle cookies neither sends nor stores them`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1")
            #expect(try await scene.sent(change: Self.without) == nil)
            try await scene.receive("b=2", change: Self.without)
            #expect(try await scene.sent() == "a=1")
            let sent = try await scene.sent { request in
                request.httpShouldHandleCookies = false
                request.setValue("own=1", forHTTPHeaderField: "Cookie")
            }
            #expect(sent == "own=1")
        }
    }

    // MARK: SameSite

    @Test func `a same-site cookie is not sent for another site's document`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive(
                "lax=1; SameSite=Lax", "strict=1; SameSite=strict", "none=1; SameSite=None; Secure", overTLS: true)
            let own = Self.document(scene.url("/page", overTLS: true))
            let other = Self.document(scene.url("/", host: "127.0.0.1", overTLS: true))
            #expect(try await scene.sent(overTLS: true) == "lax=1; strict=1; none=1")
            #expect(try await scene.sent(overTLS: true, change: own) == "lax=1; strict=1; none=1")
            #expect(try await scene.sent(overTLS: true, change: other) == "none=1")
        }
    }

    @Test func `another site's document cannot set same-site cookies, even if all cookies are accepted`() async throws {
        try await withCookies(configure: { $0.httpCookieAcceptPolicy = .always }) { (scene) async throws in
            let other = Self.document(scene.url("/", host: "127.0.0.1", overTLS: true))
            try await scene.receive(
                "lax=1; SameSite=Lax", "strict=1; SameSite=Strict", "none=1; SameSite=None; Secure", overTLS: true, change: other
            )
            #expect(try scene.stored == ["none=1"])
        }
    }

    @Test func `the storage returns a cookie's same-site policy`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; SameSite=Lax", "b=1; SameSite=STRICT", "c=1; HttpOnly", overTLS: true)
            let cookies = try #require(try scene.storage.cookies)
            #expect(cookies.map(\.sameSitePolicy) == [.sameSiteLax, .sameSiteStrict, nil])
            #expect(cookies.map(\.isHTTPOnly) == [false, false, true])
        }
    }

    // MARK: Partitions

    @Test func `a partitioned cookie is only sent in its partition`() async throws {
        try await withCookies { (scene) async throws in
            func of(_ partition: String?) -> (inout URLRequest) -> Void { { $0.cookiePartitionIdentifier = partition } }
            let rest = "; Secure; Path=/; Partitioned"
            try await scene.receive("a=one" + rest, overTLS: true, change: of("https://one.example"))
            try await scene.receive("a=two" + rest, overTLS: true, change: of("https://two.example"))
            #expect(try await scene.sent(overTLS: true, change: of("https://one.example")) == "a=one")
            #expect(try await scene.sent(overTLS: true, change: of("https://two.example")) == "a=two")
            #expect(try await scene.sent(overTLS: true, change: of("https://three.example")) == nil)
            #expect(try await scene.sent(overTLS: true) == nil)
        }
    }

    @Test func `a partitioned cookie that is not secure is rejected`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1; Partitioned", overTLS: true) { $0.cookiePartitionIdentifier = "https://one.example" }
            #expect(try scene.stored.isEmpty)
        }
    }

    @Test func `a redirect keeps the partition`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { $0.path == "/a" ? .redirect(302, to: "/b", [("Set-Cookie", "p=1; Secure; Path=/; Partitioned")]) : .ok() }
        ) { (server, session) async throws in
            var request = URLRequest(server.url("/a"))
            request.cookiePartitionIdentifier = "https://one.example"
            _ = try await session.data(for: request)
            _ = try await session.data(for: request)
            _ = try await session.data(from: server.url("/c"))
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "p=1", "p=1", "p=1", nil])
        }
    }
}
