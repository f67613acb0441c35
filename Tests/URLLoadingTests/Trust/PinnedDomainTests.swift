// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The pinned domains of App Transport Security: hosts whose keys the app knows.
@Suite(.timeLimit(.minutes(1)))
struct PinnedDomainTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func hash(_ der: [UInt8]) throws -> String {
        let certificate = try #require(SecCertificateCreateWithData(nil, Data(der) as CFData))
        return try #require(PinningSamples.publicKeyHash(of: certificate))
    }

    private static func pins(
        _ domain: String, leaf: [String] = [], ca: [String] = [], includesSubdomains: Bool = false
    ) -> [String: Any] {
        var values: [String: Any] = ["NSIncludesSubdomains": includesSubdomains]
        if !leaf.isEmpty { values["NSPinnedLeafIdentities"] = leaf.map { ["SPKI-SHA256-BASE64": $0] } }
        if !ca.isEmpty { values["NSPinnedCAIdentities"] = ca.map { ["SPKI-SHA256-BASE64": $0] } }
        return ["NSPinnedDomains": [domain: values]]
    }

    private func load(
        _ identity: TestCertificates.Identity, _ dictionary: [String: Any], delegate: (any URLSessionDelegate)? = nil,
        isAllowed: Bool, in row: String
    ) async throws {
        try await withScenario(
            identity: identity, delegate: delegate,
            configure: {
                $0.tlsTrustRoots = [certificates.root]
                $0.appTransportSecurity = dictionary
            },
            reply: { _ in .ok("pinned") }
        ) { (server, session) async throws in
            let url = server.url("/", host: "localhost")
            if isAllowed {
                #expect(try await session.text(url) == "pinned", "\(row)")
            } else {
                await expectFailure(.serverCertificateUntrusted, in: row) { try await session.data(from: url) }
                #expect(server.requests.isEmpty, "\(row)")
            }
        }
    }

    @Test func `a pinned host must present a pinned key, its own or an issuer's`() async throws {
        let (leaf, issuer) = (try hash(certificates.valid.chain[0]), try hash(certificates.valid.chain[1]))
        let (root, other) = (try hash(Array(certificates.root)), try hash(certificates.unknownAuthority.chain[0]))
        let rows: [(String, [String: Any], isAllowed: Bool)] = [
            ("its own key", Self.pins("localhost", leaf: [leaf]), true),
            ("its own key among others", Self.pins("localhost", leaf: [other, leaf]), true),
            ("another key", Self.pins("localhost", leaf: [other]), false),
            ("its issuer's key", Self.pins("localhost", ca: [issuer]), true),
            ("its root's key", Self.pins("localhost", ca: [root]), true),
            ("another issuer's key", Self.pins("localhost", ca: [other]), false),
            ("the issuer's key as its own", Self.pins("localhost", leaf: [issuer]), false),
            ("its own key as an issuer's", Self.pins("localhost", ca: [leaf]), false),
            ("both", Self.pins("localhost", leaf: [leaf], ca: [issuer]), true),
            ("both, one wrong", Self.pins("localhost", leaf: [leaf], ca: [other]), false),
            ("both, the other wrong", Self.pins("localhost", leaf: [other], ca: [issuer]), false),
            ("another host's", Self.pins("example.com", leaf: [other], includesSubdomains: true), true),
        ]
        for (name, dictionary, isAllowed) in rows {
            try await load(certificates.valid, dictionary, isAllowed: isAllowed, in: name)
        }
    }

    @Test func `a pinned key does not replace the evaluation of the chain`() async throws {
        for (name, identity) in [("unknown root", certificates.unknownAuthority), ("self-signed", certificates.selfSigned)] {
            let dictionary = Self.pins("localhost", leaf: [try hash(identity.chain[0])])
            try await withScenario(
                identity: identity,
                configure: {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.appTransportSecurity = dictionary
                },
                reply: { _ in .ok() }
            ) { (server, session) async throws in
                await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot, in: name) {
                    try await session.data(from: server.url("/", host: "localhost"))
                }
            }
        }
    }

    @Test func `pins apply whatever the delegate answers`() async throws {
        let (leaf, other) = (try hash(certificates.selfSigned.chain[0]), try hash(certificates.valid.chain[0]))
        let wrong = Self.pins("localhost", leaf: [other])
        try await load(certificates.selfSigned, wrong, delegate: SessionJudge(.trusting), isAllowed: false, in: "wrong")
        let right = Self.pins("localhost", leaf: [leaf])
        try await load(certificates.selfSigned, right, delegate: SessionJudge(.trusting), isAllowed: true, in: "right")
    }

    @Test func `a failed pin is reported as such, not as a refused exception`() async throws {
        var dictionary = Self.pins("www.example.com", leaf: [try hash(certificates.valid.chain[0])])
        dictionary["NSExceptionDomains"] = ["www.example.com": [String: Any]()]
        try await withScriptedServer(identity: certificates.wildcard, reply: { _ in .ok("pinned") }) { (server) async throws in
            let relay = try NameRelay(to: server.port)
            try await withSession(delegate: SessionJudge(.trusting)) {
                $0.tlsTrustRoots = [certificates.root]
                $0.appTransportSecurity = dictionary
                $0.connectionProxyDictionary = relay.dictionary
            } test: { (session) async throws in
                let error = await expectFailure(.serverCertificateUntrusted) {
                    try await session.data(from: try #require(URL(string: "https://www.example.com/")))
                }
                let message = error?.localizedDescription ?? ""
                #expect(message.contains("pinned") && !message.contains("NSException"), "\(message)")
            }
        }
    }

    @Test func `pins apply even if arbitrary loads are allowed`() async throws {
        var dictionary = Self.pins("localhost", leaf: [try hash(certificates.unknownAuthority.chain[0])])
        dictionary["NSAllowsArbitraryLoads"] = true
        try await load(certificates.valid, dictionary, isAllowed: false, in: "arbitrary loads")
    }

    @Test func `subdomains are pinned if the domain includes them`() async throws {
        let (right, other) = (try hash(certificates.wildcard.chain[0]), try hash(certificates.valid.chain[0]))
        let rows: [(String, [String: Any], isAllowed: Bool)] = [
            ("right, with subdomains", Self.pins("example.com", leaf: [right], includesSubdomains: true), true),
            ("wrong, with subdomains", Self.pins("example.com", leaf: [other], includesSubdomains: true), false),
            ("wrong, without subdomains", Self.pins("example.com", leaf: [other]), true),
            ("wrong, the host itself", Self.pins("www.example.com", leaf: [other]), false),
        ]
        try await withScriptedServer(identity: certificates.wildcard, reply: { _ in .ok("pinned") }) { (server) async throws in
            let relay = try NameRelay(to: server.port)
            for (name, dictionary, isAllowed) in rows {
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.appTransportSecurity = dictionary
                    $0.connectionProxyDictionary = relay.dictionary
                } test: { (session) async throws in
                    let url = try #require(URL(string: "https://www.example.com/"))
                    if isAllowed {
                        #expect(try await session.text(url) == "pinned", "\(name)")
                    } else {
                        await expectFailure(.serverCertificateUntrusted, in: name) { try await session.data(from: url) }
                    }
                }
            }
            #expect(relay.authorities.allSatisfy { $0 == "www.example.com:443" })
        }
    }

    @Test func `invalid pins refuse the connection`() async throws {
        let rows: [(String, Any)] = [
            ("no base64", ["NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": "no base64!"]]]),
            ("too short", ["NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": "AAAA"]]]),
            ("no pins", ["NSIncludesSubdomains": true]),
            ("no dictionary", "pins"),
        ]
        for (name, value) in rows {
            try await withScenario(
                identity: certificates.valid,
                configure: {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.appTransportSecurity = ["NSPinnedDomains": ["localhost": value]]
                },
                reply: { _ in .ok() }
            ) { (server, session) async throws in
                await expectFailure(.appTransportSecurityRequiresSecureConnection, .serverCertificateUntrusted, in: name) {
                    try await session.data(from: server.url("/", host: "localhost"))
                }
                #expect(server.requests.isEmpty, "\(name)")
            }
        }
    }
}
