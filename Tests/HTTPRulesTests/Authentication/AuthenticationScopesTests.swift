// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct AuthenticationScopesTests {
    private typealias Peer = AuthenticationScopes.Peer

    private static let place = Peer(Origin(scheme: "http", host: "a.example", port: 80))

    @Test func `Basic covers the paths at or below the last path element`() {
        // RFC 7617, section 2.2.
        var scopes = AuthenticationScopes()
        let id = scopes.add(Self.place, path: "/docs/index.html?a/b", scheme: .basic, realm: "r")
        for path in ["/docs/", "/docs/index.html", "/docs/test.doc", "/docs/?page=1", "/docs/a/b"] {
            #expect(scopes.scope(for: Self.place, path: path) == id, "\(path)")
        }
        for path in ["/", "/docs", "/other/", "/docsx/", "/docs/../x", "/docs/%2e%2E/x", "/docs/a/./b", "/docs/..%5cx", ""] {
            #expect(scopes.scope(for: Self.place, path: path) == nil, "\(path)")
        }
        scopes.remove(id)
        #expect(scopes.scope(for: Self.place, path: "/docs/") == nil && scopes.count == 0)
    }

    @Test func `Digest covers the paths that its domain lists`() {
        // RFC 7616, section 3.3.
        let rows: [([String], String, Bool)] = [
            ([], "/anything", true), ([], "/a/../b", true), (["/a"], "/a", true), (["/a"], "/a/b", true), (["/a"], "/a?q", true),
            (["/a"], "/ab", false), (["/a"], "/", false), (["/a/"], "/a", false), (["/x", "/a"], "/a/b", true),
            (["http://a.example/a"], "/a/b", true), (["HTTP://A.EXAMPLE:80"], "/any", true),
            (["http://a.example?x"], "/any", true),
            (["http://a.example:81/a"], "/a", false), (["https://a.example/a"], "/a", false),
            (["http://b.example/"], "/a", false),
            (["//a.example/a"], "/a", false), (["http://a.example@b/a"], "/a", false), (["http://a.example/a/.."], "/a", false),
            (["relative"], "/relative", false), (["/a/../"], "/b", false), (["/a"], "/a/../b", false),
        ]
        for (domain, path, expected) in rows {
            var scopes = AuthenticationScopes()
            let id = scopes.add(Self.place, path: "/login", scheme: .digest, realm: "r", domain: domain)
            #expect(scopes.scope(for: Self.place, path: path) == (expected ? id : nil), "\(domain) \(path)")
        }
    }

    @Test func `credentials are sent only to the origin or proxy that they were added for`() {
        var scopes = AuthenticationScopes()
        let id = scopes.add(Self.place, path: "/", scheme: .basic, realm: "r")
        for other in [
            Peer(Origin(scheme: "https", host: "a.example", port: 80)),
            Peer(Origin(scheme: "http", host: "a.example", port: 81)),
            Peer(Origin(scheme: "http", host: "b.example", port: 80)), Peer(proxy: Self.place.origin, isSecure: false),
        ] { #expect(scopes.scope(for: other, path: "/") == nil, "\(other)") }
        // A proxy is one space, even if the challenge has a domain.
        let proxy = Peer(proxy: Self.place.origin, isSecure: false)
        let digest = scopes.add(proxy, path: "", scheme: .digest, realm: "p", domain: ["/a"])
        #expect(scopes.scope(for: proxy, path: "a.example:443") == digest)
        #expect(scopes.scope(for: proxy, path: "/") == digest && scopes.scope(for: Self.place, path: "/") == id)
        // Credentials that were sent over TLS are not sent without it.
        #expect(scopes.scope(for: Peer(proxy: Self.place.origin, isSecure: true), path: "/") == nil)
    }

    @Test func `the longest path wins`() {
        var scopes = AuthenticationScopes()
        let outer = scopes.add(Self.place, path: "/", scheme: .basic, realm: "outer")
        let inner = scopes.add(Self.place, path: "/a/b/c", scheme: .basic, realm: "inner")
        let digest = scopes.add(Self.place, path: "/", scheme: .digest, realm: "digest")
        #expect(scopes.scope(for: Self.place, path: "/a/b/x") == inner)
        #expect(scopes.scope(for: Self.place, path: "/a/x") == digest)
        scopes.remove(digest)
        #expect(scopes.scope(for: Self.place, path: "/a/x") == outer)
        scopes.remove(digest)
        #expect(scopes.count == 2 && scopes.contains(inner) && !scopes.contains(digest))
        scopes.removeAll()
        #expect(scopes.scope(for: Self.place, path: "/a/x") == nil && scopes.count == 0)
    }

    @Test func `the number of spaces and paths is limited`() {
        var scopes = AuthenticationScopes()
        for number in 0..<1000 { scopes.add(Self.place, path: "/", scheme: .basic, realm: "\(number)") }
        #expect(scopes.count == AuthenticationScopes.maximumSpaces)
        let last = scopes.add(Peer(Origin(scheme: "http", host: "b", port: 80)), path: "/", scheme: .basic, realm: "r")
        #expect(scopes.count == AuthenticationScopes.maximumSpaces)
        for number in 0..<1000 { scopes.add(last.place, path: "/\(number)/", scheme: .basic, realm: "many") }
        // The oldest paths of a space are dropped first; a path below a known path is not added.
        #expect(scopes.scope(for: last.place, path: "/999/x")?.realm == "many")
        #expect(scopes.scope(for: last.place, path: "/0/x")?.realm == "r")
        scopes.add(last.place, path: "/", scheme: .basic, realm: "many")
        for number in 0..<1000 { scopes.add(last.place, path: "/\(number)/", scheme: .basic, realm: "many") }
        scopes.remove(last)
        #expect(scopes.scope(for: last.place, path: "/x")?.realm == "many")
    }
}
