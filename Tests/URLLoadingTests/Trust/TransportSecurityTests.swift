// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// App Transport Security: which http loads are refused, what the error says, and that nothing is sent.
@Suite(.timeLimit(.minutes(1)))
struct TransportSecurityTests {
    private static let insecure = "NSExceptionAllowsInsecureHTTPLoads"

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// Runs a test with a server that is the session's proxy for all requests: names need no lookup, and the server sees all requests.
    private func withProxy(
        _ dictionary: [String: Any]?, delegate: (any URLSessionDelegate)? = nil,
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { _ in .ok("clear") },
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withSession(delegate: delegate) {
                if let dictionary { $0.appTransportSecurity = dictionary }
                $0.usesHTTPStrictTransportSecurity = false
                $0.connectionProxyDictionary = [
                    "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": server.port,
                    "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": server.port,
                ]
            } test: { session in
                try await test(server, session)
            }
        }
    }

    @Test func `http to a host name is refused, and the error names the key that would allow it`() async throws {
        for dictionary in [nil, [:]] as [[String: Any]?] {
            try await withProxy(dictionary) { (server, session) async throws in
                for host in ["www.example.com", "WWW.Example.COM", "localhost.example", "127.0.0.1.example.com"] {
                    let url = try url("http://\(host)/")
                    let error = await expectFailure(.appTransportSecurityRequiresSecureConnection, in: host) {
                        try await session.data(from: url)
                    }
                    #expect(error?.errorCode == -1022)
                    #expect(error?.failingURL == url)
                    let message = error?.localizedDescription ?? ""
                    for part in ["NSAppTransportSecurity", "NSExceptionDomains", host.lowercased(), Self.insecure] {
                        #expect(message.contains(part), "\(host): \(message)")
                    }
                }
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `a refused host name is not looked up, even without a proxy`() async throws {
        // A lookup of this name fails (RFC 6761, section 6.4), as the second session shows.
        let url = try url("http://name.invalid/")
        try await withSession { (session) async throws in
            await expectFailure(.appTransportSecurityRequiresSecureConnection) { try await session.data(from: url) }
        }
        try await withSession {
            $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        } test: { (session) async throws in
            await expectFailure(.cannotFindHost, .dnsLookupFailed) { try await session.data(from: url) }
        }
    }

    @Test func `addresses, names without a dot and local names are exempt`() async throws {
        try await withProxy(nil) { (server, session) async throws in
            let hosts = [
                "10.0.0.1", "203.0.113.7", "[2001:db8::1]", "printer", "PRINTER", "printer.local", "a.b.LOCAL", "printer.local.",
            ]
            for host in hosts {
                #expect(try await session.text(url("http://\(host)/")) == "clear", "\(host)")
            }
            #expect(server.requests.count == hosts.count)
            for host in ["printer.localdomain", "local.example", "printer.xlocal", "example.com."] {
                await expectFailure(.appTransportSecurityRequiresSecureConnection, in: host) {
                    try await session.data(from: url("http://\(host)/"))
                }
            }
            #expect(server.requests.count == hosts.count)
        }
    }

    @Test func `a local test server without TLS needs no exception`() async throws {
        try await withScenario(reply: { _ in .ok("clear") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "clear")
            #expect(try await session.text(server.url("/", host: "localhost")) == "clear")
        }
    }

    @Test func `each dictionary allows what it says and no more`() async throws {
        func domains(_ exceptions: [String: [String: Any]]) -> [String: Any] { ["NSExceptionDomains": exceptions] }
        let both = [Self.insecure: true, "NSIncludesSubdomains": true]
        let rows: [(String, [String: Any], allowed: [String], refused: [String])] = [
            ("arbitrary loads", ["NSAllowsArbitraryLoads": true], ["example.com", "other.test"], []),
            ("arbitrary loads off", ["NSAllowsArbitraryLoads": false], [], ["example.com"]),
            (
                "a domain", domains(["example.com": [Self.insecure: true]]), ["example.com", "EXAMPLE.com"],
                ["www.example.com", "example.org", "notexample.com"]
            ),
            (
                "with subdomains", domains(["example.com": both]), ["example.com", "www.example.com", "a.b.example.com"],
                ["notexample.com", "example.com.evil.test"]
            ),
            (
                "a domain that allows nothing", domains(["example.com": ["NSIncludesSubdomains": true]]), [],
                ["example.com", "a.example.com"]
            ),
            (
                "the longest domain counts", domains(["example.com": both, "safe.example.com": [Self.insecure: false]]),
                ["www.example.com"], ["safe.example.com"]
            ),
            (
                "an exception from arbitrary loads",
                ["NSAllowsArbitraryLoads": true, "NSExceptionDomains": ["example.com": [Self.insecure: false]]],
                ["other.test"], ["example.com"]
            ),
            ("local networking", ["NSAllowsLocalNetworking": true], ["printer", "printer.local"], ["example.com"]),
            // "If you use this key, NSAllowsArbitraryLoads is ignored", since iOS 10.
            (
                "local networking and arbitrary loads", ["NSAllowsLocalNetworking": true, "NSAllowsArbitraryLoads": true],
                ["printer.local"], ["example.com"]
            ),
            (
                "unknown keys", ["NSAllowsEverything": true, "NSExceptionDomains": ["example.com": ["NSAllows": true]]], [],
                ["example.com"]
            ),
            ("a value of the wrong kind", ["NSAllowsArbitraryLoads": "perhaps"], [], ["example.com"]),
        ]
        for (name, dictionary, allowed, refused) in rows {
            try await withProxy(dictionary) { (server, session) async throws in
                for host in allowed {
                    #expect(try await session.text(url("http://\(host)/")) == "clear", "\(name): \(host)")
                }
                for host in refused {
                    await expectFailure(.appTransportSecurityRequiresSecureConnection, in: "\(name): \(host)") {
                        try await session.data(from: url("http://\(host)/"))
                    }
                }
                #expect(server.requests.count == allowed.count, "\(name)")
            }
        }
    }

    @Test func `a dictionary that is not a property list allows nothing`() async throws {
        let rows: [[String: Any]] = [
            ["NSAllowsArbitraryLoads": true, "NSExceptionDomains": URLSession.shared],
            ["NSAllowsArbitraryLoads": true, "Other": [URLSession.shared]],
        ]
        for dictionary in rows {
            try await withProxy(dictionary) { (server, session) async throws in
                await expectFailure(.appTransportSecurityRequiresSecureConnection) {
                    try await session.data(from: url("http://example.com/"))
                }
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `tasks of all kinds are refused`() async throws {
        let refusal = URLError.Code.appTransportSecurityRequiresSecureConnection
        let recorder = EventRecorder()
        try await withProxy(nil, delegate: recorder) { (server, session) async throws in
            let url = try url("http://example.com/")
            let post = URLRequest(url, method: "POST")
            await expectFailure(refusal) { try await session.upload(for: post, from: Data("up".utf8)) }
            await expectFailure(refusal) { try await session.download(from: url) }
            await expectFailure(refusal) { try await session.bytes(from: url) }
            let outcome = Delivered<URLError.Code?>()
            session.dataTask(with: url) { outcome(($2 as? URLError)?.code) }.resume()
            session.downloadTask(with: url) { outcome(($2 as? URLError)?.code) }.resume()
            session.uploadTask(with: post, from: Data()) { outcome(($2 as? URLError)?.code) }.resume()
            try await outcome.count(reaches: 3)
            #expect(outcome.all == [refusal, refusal, refusal])
            for task in [
                session.dataTask(with: url), session.downloadTask(with: url), session.uploadTask(with: post, from: Data()),
            ] {
                task.resume()
                #expect((try await recorder.completion(of: task).error as? URLError)?.code == refusal)
                #expect(task.response == nil)
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `a redirect to http is refused, and nothing is sent there`() async throws {
        try await withProxy(
            nil, reply: { $0.target.contains("example") ? .ok("clear") : .redirect(302, to: "http://example.com/") }
        ) {
            (server, session) async throws in
            let error = await expectFailure(.appTransportSecurityRequiresSecureConnection) {
                try await session.data(from: url("http://10.0.0.1/"))
            }
            #expect(error?.failingURL?.host() == "example.com")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a redirect from https to http is refused, unless the dictionary allows it`() async throws {
        let certificates = try TestCertificates.shared.get()
        for isAllowed in [false, true] {
            try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
                let location = "http://name.example:\(clear.port)/"
                try await withScenario(
                    identity: certificates.valid,
                    configure: {
                        $0.tlsTrustRoots = [certificates.root]
                        $0.appTransportSecurity =
                            isAllowed ? ["NSExceptionDomains": ["name.example": [Self.insecure: true]]] : [:]
                        $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": clear.port]
                    },
                    reply: { _ in .redirect(302, to: location) }
                ) { (server, session) async throws in
                    if isAllowed {
                        #expect(try await session.text(server.url()) == "clear")
                    } else {
                        await expectFailure(.appTransportSecurityRequiresSecureConnection) {
                            try await session.data(from: server.url())
                        }
                    }
                    #expect(server.requests.count == 1)
                    #expect(clear.requests.count == (isAllowed ? 1 : 0))
                }
            }
        }
    }

    @Test func `the configuration's dictionary reads back, and is copied with it`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        #expect(configuration.appTransportSecurity == nil)
        configuration.appTransportSecurity = [
            "NSAllowsArbitraryLoads": true, "NSExceptionDomains": ["a.b": [Self.insecure: true]],
        ]
        let copy = try #require(configuration.copy() as? URLSessionConfiguration)
        configuration.appTransportSecurity = nil
        #expect(configuration.appTransportSecurity == nil)
        let dictionary = try #require(copy.appTransportSecurity)
        #expect(dictionary["NSAllowsArbitraryLoads"] as? Bool == true)
        let domains = dictionary["NSExceptionDomains"] as? [String: Any]
        #expect((domains?["a.b"] as? [String: Any])?[Self.insecure] as? Bool == true)
    }

    @Test func `a session keeps the dictionary that it was created with`() async throws {
        let configuration = URLSessionConfiguration.ephemeral
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        session.configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        await expectFailure(.appTransportSecurityRequiresSecureConnection) {
            try await session.data(from: url("http://name.invalid/"))
        }
    }
}
