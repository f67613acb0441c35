// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

struct ProxyRulesTests {
    private static func server(_ text: String) -> ProxyServer? {
        if case .proxy(let server) = ProxyParser.read(text, called: "it") { server } else { nil }
    }

    @Test func `a proxy is parsed as in curl`() {
        let rows: [(String, ProxyServer.Kind, String, Int, Bool)] = [
            ("proxy", .http, "proxy", 1_080, false), ("proxy:3128", .http, "proxy", 3_128, false),
            ("http://Proxy.Example:8080/", .http, "proxy.example", 8_080, false), ("https://p", .https, "p", 443, false),
            ("socks4://p:1", .socks4, "p", 1, true), ("socks://p:1", .socks4, "p", 1, true),
            ("socks4a://p", .socks4, "p", 1_080, false), ("socks5://p", .socks5, "p", 1_080, true),
            ("SOCKS5H://[::1]:9", .socks5, "::1", 9, false), ("[fd00::1]", .http, "fd00::1", 1_080, false),
            ("::1", .http, "::1", 1_080, false),
        ]
        for (text, kind, host, port, looksUpHere) in rows {
            var expected = ProxyServer(kind, host: host, port: port)
            expected.looksUpHere = looksUpHere
            #expect(Self.server(text) == expected, "\(text)")
        }
        #expect(Self.server("http://a%40b:p%3aw:x@p:1") == ProxyServer(.http, host: "p", port: 1, user: "a@b", password: "p:w:x"))
        #expect(Self.server("a@p:1") == ProxyServer(.http, host: "p", port: 1, user: "a"))
        #expect(Self.server("a:b@p:1")?.description == "p:1")
    }

    @Test(arguments: [
        "", "http://", "p:", "p:0", "p:65536", "p:x", "p:-1", "p/a", "p?a", "ftp://p", "[::1", "[::1]x", "a b", "p:1:2", "://p",
    ])
    func `an invalid proxy is refused`(_ text: String) {
        guard case .unusable(let reason) = ProxyParser.read(text, called: "it") else {
            Issue.record("\(text) is one")
            return
        }
        #expect(reason.hasPrefix("it "))
    }

    @Test func `exceptions are names, patterns, domains or networks`() {
        let rows: [(String, host: String, inDictionary: Bool, inEnvironment: Bool)] = [
            ("a.test", "a.test", true, true), ("A.Test", "a.test", true, true), ("a.test", "b.a.test", false, true),
            (".a.test", "b.a.test", true, true), (".a.test", "a.test", true, true), ("a.test", "ba.test", false, false),
            ("*.a.test", "b.a.test", true, false), ("*", "a.test", true, true), ("10.0.0.0/8", "10.1.2.3", true, true),
            ("10.0.0.0/8", "11.1.2.3", false, false), ("169.254/16", "169.254.7.1", true, true),
            ("10.0.0.0/33", "10.0.0.0", false, false), ("fd00::/8", "fd12::1", true, true), ("fd00::/8", "fe12::1", false, false),
            ("[::1]", "::1", true, true), ("::1", "0:0:0:0:0:0:0:1", true, true), ("0.0.0.0/0", "::1", false, false),
            ("0.1", "10.0.0.1", false, false), ("a.test", "a.test.", true, true), ("", "a", false, false),
        ]
        for (pattern, host, inDictionary, inEnvironment) in rows {
            #expect(ProxyExceptions([pattern]).contains(host) == inDictionary, "\(pattern) \(host)")
            #expect(ProxyExceptions(environment: "x.test, \(pattern)").contains(host) == inEnvironment, "\(pattern) \(host)")
        }
        let simple = ProxyExceptions(includesSimpleNames: true)
        #expect(simple.contains("intranet") && !simple.contains("a.test") && !simple.contains("::1"))
    }

    @Test(arguments: ["u:p%E4", "u:p" + OctetText.text(of: [0xE4])])
    func `a password keeps its octets, encoded or not`(login: String) throws {
        guard case .proxy(let server) = ProxyParser.read("http://\(login)@p:1", called: "http_proxy") else {
            Issue.record("no proxy")
            return
        }
        #expect(server.host == "p" && server.user == "u")
        #expect(server.password.map { OctetText.octets(of: $0) } == [0x70, 0xE4])
    }

    @Test func `environment variables have curl's precedence, and HTTP_PROXY is ignored`() {
        func http(_ variables: [String: String]) -> ProxyRules.Choice? { ProxyParser.environment { variables[$0] }?.http }
        func https(_ variables: [String: String]) -> ProxyRules.Choice? { ProxyParser.environment { variables[$0] }?.https }
        let (one, two) = (ProxyServer(.http, host: "one", port: 1_080), ProxyServer(.http, host: "two", port: 1_080))
        #expect(http(["HTTP_PROXY": "one"]) == nil && http([:]) == nil && http(["http_proxy": ""]) == nil)
        #expect(http(["http_proxy": "one", "all_proxy": "two"]) == .proxy(one))
        #expect(https(["http_proxy": "one", "all_proxy": "two"]) == .proxy(two))
        #expect(https(["https_proxy": "one", "HTTPS_PROXY": "two"]) == .proxy(one))
        #expect(https(["https_proxy": "", "HTTPS_PROXY": "two"]) == .proxy(two))
        #expect(https(["http_proxy": "one"]) == .direct)
        #expect(http(["all_proxy": "one", "ALL_PROXY": "two"]) == .proxy(one))
    }

    @Test func `the first list entry that covers the host is used, with its fallbacks`() {
        let (one, two) = (ProxyServer(.http, host: "one", port: 1), ProxyServer(.socks5, host: "two", port: 1))
        var rules = ProxyRules()
        rules.list = [
            .init(.proxy(one), domains: ["a.test"], excludedDomains: ["not.a.test"], allowsFailover: true),
            .init(.proxy(two), excludedDomains: ["b.test"]),
        ]
        func ways(_ host: String) -> ProxyRules.Decision { rules.decision(isSecure: true, host: host) }
        #expect(ways("a.test") == .ways([.proxy(one), .proxy(two)]))
        #expect(ways("x.not.a.test") == .ways([.proxy(two)]))
        #expect(ways("b.test") == .ways([.direct]))
        rules.list[1].allowsFailover = true
        #expect(ways("a.test") == .ways([.proxy(one), .proxy(two), .direct]))
        rules.list[1].choice = .unusable("why")
        #expect(ways("a.test") == .unusable("why"))
    }

    @Test func `a proxy that failed is tried last for five minutes`() {
        let ways = (1...3).map { ProxyWay.proxy(ProxyServer(.http, host: "p", port: $0)) } + [.direct]
        var failed = FailedProxies()
        #expect(failed.last(ways, now: 0) == ways)
        failed.note(ProxyServer(.http, host: "p", port: 1), now: 0)
        failed.note(ProxyServer(.http, host: "p", port: 3), now: 5)
        #expect(failed.last(ways, now: 10) == [ways[1], ways[3], ways[0], ways[2]])
        #expect(failed.last(ways, now: FailedProxies.failureLifetime) == [ways[0], ways[1], ways[3], ways[2]])
        #expect(failed.last([ways[0]], now: 10) == [ways[0]])
        for port in 100..<1_000 { failed.note(ProxyServer(.http, host: "p", port: port), now: Int64(port)) }
        #expect(failed.last(ways, now: 1_000) == ways)
    }

    @Test func `a proxy that has responded to other requests is not blamed for a silent server`() {
        let proxy = ProxyServer(.http, host: "p", port: 1)
        let ways = [ProxyWay.proxy(proxy), .direct]
        var failed = FailedProxies()
        failed.noteTimeout(of: proxy, now: 0)
        #expect(failed.last(ways, now: 1) == [.direct, .proxy(proxy)])
        failed = FailedProxies()
        failed.noteResponse(of: proxy, now: 10)
        #expect(failed.hasResponded(proxy, since: 10) && !failed.hasResponded(proxy, since: 11))
        failed.noteTimeout(of: proxy, now: 20)
        failed.noteResponse(of: proxy, now: 30)
        // Several loads waited for the proxy at the same time.
        for now in [40, 41, 39 + FailedProxies.responseTimeout] { failed.noteTimeout(of: proxy, now: now) }
        #expect(failed.last(ways, now: FailedProxies.responseTimeout) == ways)
        failed.noteTimeout(of: proxy, now: 40 + FailedProxies.responseTimeout)
        #expect(failed.last(ways, now: 50 + FailedProxies.responseTimeout) == [.direct, .proxy(proxy)])
        for port in 100..<1_000 { failed.noteResponse(of: ProxyServer(.http, host: "p", port: port), now: Int64(port)) }
        #expect(!failed.hasResponded(proxy, since: 0))
    }

    @Test func `proxies are identified by kind, host and port, not by credentials`() {
        let proxy = ProxyServer(.http, host: "p", port: 1)
        for same in [ProxyServer(.http, host: "P", port: 1), ProxyServer(.http, host: "p", port: 1, user: "a", password: "b")] {
            #expect(proxy.isSame(as: same))
        }
        for other in [
            ProxyServer(.https, host: "p", port: 1), ProxyServer(.http, host: "q", port: 1),
            ProxyServer(.http, host: "p", port: 2),
        ] {
            #expect(!proxy.isSame(as: other))
        }
    }

    @Test func `the result of a PAC script is parsed into ways`() {
        func server(_ kind: ProxyServer.Kind, _ port: Int, _ host: String = "a") -> ProxyWay {
            .proxy(ProxyServer(kind, host: host, port: port))
        }
        let rows: [(String, [ProxyWay]?)] = [
            ("DIRECT", [.direct]), ("", [.direct]), (" ; ", [.direct]), ("PROXY a:1", [server(.http, 1)]),
            (
                "proxy a:1;SOCKS a:2 ; SOCKS5 a:3;SOCKS4 a:4; HTTPS a:5;HTTP a:6;DIRECT",
                [
                    server(.http, 1), server(.socks5, 2), server(.socks5, 3), server(.socks4, 4), server(.https, 5),
                    server(.http, 6), .direct,
                ]
            ),
            ("PROXY a", [server(.http, 80)]), ("HTTPS a", [server(.https, 443)]), ("SOCKS a", [server(.socks5, 1_080)]),
            ("PROXY [::1]:8080", [server(.http, 8_080, "::1")]), ("PROXY [::1]", [server(.http, 80, "::1")]),
            ("QUIC a:1; DIRECT", [.direct]), ("nonsense", nil), ("PROXY", nil), ("PROXY a:0", nil), ("PROXY a b", nil),
            ("PROXY u:p@a:1", nil), ("DIRECT now", nil), ("PROXY http://a:1", nil),
            // A host contains no bracket, nor does a zone identifier.
            ("PROXY a]:1", nil), ("PROXY 2001:db8::1%2]:8080", nil), ("PROXY [::1]]:1", nil),
        ]
        for (answer, ways) in rows { #expect(ProxyScript.ways(answer) == ways, "\(answer)") }
        #expect(ProxyScript.ways(String(repeating: "PROXY a:1;", count: 1_000))?.count == 32)
    }
}
