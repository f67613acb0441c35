// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingEngine
import LoadingTestKit
import Testing
import URLLoading

/// Intermediate certificates that a server does not send, and that the session fetches (RFC 5280, section 4.2.2.1).
@Suite(.timeLimit(.minutes(2)))
struct MissingIntermediateTests {
    private static let location = "http://ca.example.test/issuer"

    /// Runs a test with a server that sends an incomplete chain, and with the server at ca.example.test.
    private func withChain(
        _ chain: IncompleteChain, delegate: (any URLSessionDelegate)? = nil,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        publication: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        test: (_ server: ScriptedServer, _ authority: ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: publication) { (authority) async throws in
            try await withScenario(
                identity: chain.identity, delegate: delegate,
                configure: { configuration in
                    configuration.systemTrustRoots = [chain.root]
                    configuration.connectionOptions.substitutions = [
                        .init(of: .init(host: "ca.example.test", port: 80), with: .init(host: "127.0.0.1", port: authority.port))
                    ]
                    configure(configuration)
                }, reply: { $0.path == "/keep" ? .ok("in") : .ok("in", [("Connection", "close")]) }
            ) { (server, session) async throws in try await test(server, authority, session) }
        }
    }

    /// Returns the last transaction's metrics after a load has ended.
    private final class Listener: NSObject, URLSessionTaskDelegate, Sendable {
        let urls = Delivered<[String]>()

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            urls(metrics.transactionMetrics.last?.intermediateCertificateURLs.map(\.absoluteString) ?? [])
        }
    }

    @Test func `delegates that share a connection see the fetched certificate`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        try await withChain(chain) { _ in
            .ok(chain.issuers[0])
        } test: { (server, authority, session) async throws in
            for _ in 0..<3 {
                let judge = Judge.saying(.performDefaultHandling)
                _ = try await session.data(from: server.url("/keep"), delegate: TaskJudge(judge))
                #expect(judge.all.count == 1)
                // The first delegate is asked before the roots: only they need the issuer.
                let isFirst = server.requests.count == 1
                #expect(isFirst || judge.all.first?.chain.dropFirst().first == chain.issuers[0])
            }
            #expect(server.connectionCount == 1)
            #expect(authority.requests.count == 1)
        }
    }

    private func expectUntrusted(
        _ session: URLSession, _ server: ScriptedServer, at host: String? = nil, says text: String = "", in row: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let error = await expectFailure(.serverCertificateUntrusted, in: row, sourceLocation: sourceLocation) {
            try await session.data(from: server.url("/", host: host))
        }
        let message = error?.userInfo[NSLocalizedDescriptionKey] as? String ?? ""
        #expect(message.contains("without that of its issuer"), "\(row): \(message)", sourceLocation: sourceLocation)
        if !text.isEmpty { #expect(message.contains(text), "\(row): \(message)", sourceLocation: sourceLocation) }
        #expect(error?.failureURLPeerTrust.map(SecTrustGetCertificateCount) == 1, sourceLocation: sourceLocation)
    }

    // MARK: Success

    @Test(arguments: [false, true])
    func `a missing intermediate is fetched, as it is or in a CMS message, and remembered`(isMessage: Bool) async throws {
        let chain = try IncompleteChain([[Self.location], []])
        let body = isMessage ? try IncompleteChain.message(chain.issuers) : chain.issuers[0]
        try await withChain(chain) {
            $0.httpAdditionalHeaders = ["X-Key": "secret", "Authorization": "Bearer secret"]
        } publication: { _ in
            .ok(body, [("Set-Cookie", "a=b; Path=/"), ("Cache-Control", "max-age=600")])
        } test: { (server, authority, session) async throws in
            let listener = Listener()
            for _ in 0..<3 {
                let (data, _) = try await session.data(from: server.url(), delegate: listener)
                #expect(String(decoding: data, as: UTF8.self) == "in")
            }
            #expect(server.connectionCount == 3)
            let request = try #require(authority.requests.first)
            #expect(authority.requests.count == 1)
            #expect(request.method == "GET" && request.target == "/issuer")
            #expect(request.headers.map(\.name) == ["Host"])
            #expect(request.header("Host") == "ca.example.test")
            #expect(session.configuration.httpCookieStorage?.cookies?.isEmpty == true)
            let fetch = URLRequest(try #require(URL(string: Self.location)))
            #expect(session.configuration.urlCache?.cachedResponse(for: fetch) == nil)
            try await listener.urls.count(reaches: 3)
            #expect(listener.urls.all == Array(repeating: [Self.location], count: 3))
        }
    }

    @Test func `several levels are fetched, one after the other`() async throws {
        let chain = try IncompleteChain([["http://ca.example.test/1"], ["http://ca.example.test/2"], []])
        try await withChain(chain) { request in
            .ok(chain.issuers[request.path == "/1" ? 0 : 1])
        } test: { (server, authority, session) async throws in
            let listener = Listener()
            _ = try await session.data(from: server.url(), delegate: listener)
            #expect(authority.requests.map(\.target) == ["/1", "/2"])
            #expect(try await listener.urls.value == ["http://ca.example.test/1", "http://ca.example.test/2"])
        }
    }

    @Test func `a complete chain makes no fetch`() async throws {
        let chain = try IncompleteChain([[Self.location]])
        try await withChain(chain) { _ in
            .ok("")
        } test: { (server, authority, session) async throws in
            let listener = Listener()
            _ = try await session.data(from: server.url(), delegate: listener)
            #expect(authority.connectionCount == 0)
            #expect(try await listener.urls.value.isEmpty)
        }
    }

    @Test func `connections that need the same certificate at the same time share a fetch`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        try await withChain(chain) { _ in
            ScriptedReply([.gate("both")] + ScriptedReply.ok(chain.issuers[0]).effects)
        } test: { (server, authority, session) async throws in
            try await withScriptedServer(identity: chain.identity, reply: { _ in .ok("other") }) { (other) async throws in
                async let first = session.text(server.url())
                async let second = session.text(other.url())
                _ = try await authority.waitForRequests(1)
                try await server.waitForConnections(1)
                try await other.waitForConnections(1)
                authority.open("both")
                #expect(try await first == "in")
                #expect(try await second == "other")
                #expect(authority.requests.count == 1)
            }
        }
    }

    @Test func `the session's proxy is used`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        try await withScriptedServer(reply: { _ in .ok(chain.issuers[0]) }) { (proxy) async throws in
            try await withChain(chain) {
                $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port]
            } publication: { _ in
                .ok("")
            } test: { (server, authority, session) async throws in
                #expect(try await session.text(server.url()) == "in")
                #expect(proxy.requests.map(\.target) == [Self.location])
                #expect(authority.connectionCount == 0)
            }
        }
    }

    // MARK: Limits

    @Test func `an unusable response leaves the chain incomplete, and is not asked for again`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        let impostor = try IncompleteChain([[Self.location], []])
        let long = [UInt8](repeating: 0x30, count: 65_537)
        let rows: [(String, String, @Sendable () throws -> ScriptedReply)] = [
            ("a redirect", "status 302", { .redirect(302, to: "http://ca.example.test/other") }),
            ("a challenge", "status 401", { .status(401, [("WWW-Authenticate", "Basic realm=\"a\"")]) }),
            ("an error", "status 404", { .status(404, body: chain.issuers[0]) }),
            ("a page", "no certificate", { .ok("<html>") }),
            ("nothing", "no certificate", { .ok() }),
            ("a truncated message", "no certificate", { .ok(Array(try IncompleteChain.message(chain.issuers).dropLast(9))) }),
            ("too long", "65536 bytes", { .ok(long) }),
            ("too long, without a length", "65536 bytes", { .chunked([String(repeating: "0", count: 65_537)]) }),
            ("no response", "failed", { [.close] }),
            // The certificate has the right name, but another key.
            ("another key", "", { .ok(impostor.issuers[0]) }),
        ]
        for (name, text, reply) in rows {
            let credentials = URLCredentialStorage()
            let space = URLProtectionSpace(
                host: "ca.example.test", port: 80, protocol: "http", realm: "a",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            credentials.setDefaultCredential(URLCredential(user: "a", password: "b", persistence: .forSession), for: space)
            try await withChain(chain) {
                $0.urlCredentialStorage = credentials
            } publication: { _ in
                try reply()
            } test: { (server, authority, session) async throws in
                for _ in 0..<2 { await expectUntrusted(session, server, says: text, in: name) }
                #expect(authority.requests.map(\.target) == ["/issuer"], "\(name)")
                #expect(server.requests.isEmpty, "\(name)")
            }
        }
    }

    @Test func `only http on port 80 is used, without a user`() async throws {
        let urls = [
            "https://ca.example.test/", "http://ca.example.test:81/", "http://a:b@ca.example.test/", "ldap://ca.example.test/",
            "file:///etc/passwd", "http://", "not a URL", "http://ca.example.test/" + String(repeating: "a", count: 2_048),
        ]
        try await withChain(try IncompleteChain([urls, []])) {
            $0.connectionOptions.substitutions[0].endpoint.port = nil
        } publication: { _ in
            .ok("")
        } test: { (server, authority, session) async throws in
            await expectUntrusted(session, server)
            #expect(authority.connectionCount == 0)
        }
    }

    @Test func `the next location is tried after a failure, up to three`() async throws {
        let urls = (1...5).map { "http://ca.example.test/\($0)" }
        let chain = try IncompleteChain([urls, []])
        for good in ["/3", "/4"] {
            try await withChain(chain) { request in
                request.path == good ? .ok(chain.issuers[0]) : .status(404)
            } test: { (server, authority, session) async throws in
                if good == "/3" {
                    #expect(try await session.text(server.url()) == "in")
                } else {
                    await expectUntrusted(session, server)
                }
                #expect(authority.requests.map(\.target) == ["/1", "/2", "/3"])
            }
        }
    }

    @Test func `a certificate that does not lead to a root adds nothing`() async throws {
        let chain = try IncompleteChain((1...5).map { ["http://ca.example.test/\($0)"] })
        try await withChain(chain) { request in
            .ok(chain.issuers[(Int(request.path.dropFirst()) ?? 1) - 1])
        } test: { (server, authority, session) async throws in
            await expectUntrusted(session, server)
            #expect(authority.requests.map(\.target) == ["/1", "/2", "/3"])
        }
    }

    @Test func `a location that does not answer is given up after five seconds`() async throws {
        let clock = SteppedClock(start: Date().timeIntervalSinceReferenceDate)
        try await withChain(try IncompleteChain([[Self.location], []])) {
            $0.steppedClock = clock
        } publication: { _ in
            [.stall]
        } test: { (server, authority, session) async throws in
            async let load: Void = expectUntrusted(session, server, says: "failed")
            _ = try await authority.waitForRequests(1)
            await clock.step(by: 5_000_000_000)
            await load
            try await authority.waitForAllClosed()
        }
    }

    @Test func `a cancelled load cancels its fetch`() async throws {
        try await withChain(try IncompleteChain([[Self.location], []])) { _ in
            [.stall]
        } test: { (server, authority, session) async throws in
            let load = Task { try await session.text(server.url()) }
            _ = try await authority.waitForRequests(1)
            load.cancel()
            await expectFailure(.cancelled) { try await load.value }
            try await authority.waitForAllClosed()
            try await server.waitForAllClosed()
        }
    }

    // MARK: Who decides

    @Test func `nothing is fetched if the session forbids it, or has its own roots, or the delegate decides`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        #expect(URLSessionConfiguration.ephemeral.fetchesIntermediateCertificates)
        try await withChain(chain) {
            $0.fetchesIntermediateCertificates = false
        } publication: { _ in
            .ok(chain.issuers[0])
        } test: { (server, authority, session) async throws in
            #expect(!session.configuration.fetchesIntermediateCertificates)
            await expectUntrusted(session, server)
            #expect(authority.connectionCount == 0)
        }
        try await withChain(chain) {
            $0.systemTrustRoots = []
            $0.tlsTrustRoots = [chain.root]
        } publication: { _ in
            .ok(chain.issuers[0])
        } test: { (server, authority, session) async throws in
            await expectUntrusted(session, server)
            #expect(authority.connectionCount == 0)
        }
        try await withChain(chain, delegate: SessionJudge(.trusting)) { _ in
            .ok(chain.issuers[0])
        } test: { (server, authority, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(authority.connectionCount == 0)
        }
    }

    @Test func `a delegate that leaves the decision to the roots gets a completed chain accepted`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        try await withChain(chain, delegate: SessionJudge(.saying(.performDefaultHandling))) { _ in
            .ok(chain.issuers[0])
        } test: { (server, authority, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(authority.requests.count == 1)
        }
    }

    /// Evaluates the trust object of the challenge, and accepts the server by the result alone.
    private final class Evaluator: NSObject, URLSessionDelegate, Sendable {
        let prepare: @Sendable (SecTrust) -> Void
        let counts = Delivered<Int>()

        init(_ prepare: @escaping @Sendable (SecTrust) -> Void = { _ in }) { self.prepare = prepare }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            guard let trust = challenge.protectionSpace.serverTrust else {
                return completionHandler(.performDefaultHandling, nil)
            }
            prepare(trust)
            let isTrusted = SecTrustEvaluateWithError(trust, nil)
            counts(SecTrustGetCertificateCount(trust))
            completionHandler(isTrusted ? .useCredential : .rejectProtectionSpace, URLCredential(trust: trust))
        }
    }

    @Test func `a delegate that evaluates the chain gets a completed one, too`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        let evaluator = Evaluator()
        try await withChain(chain, delegate: evaluator) {
            $0.appTransportSecurity = ["NSExceptionDomains": ["127.0.0.1": ["NSIncludesSubdomains": false]]]
        } publication: { _ in
            .ok(chain.issuers[0])
        } test: { (server, authority, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(authority.requests.count == 1)
            #expect(evaluator.counts.all == [3])
        }
    }

    @Test func `an evaluation fetches nothing if the delegate forbids it or its own roots alone decide`() async throws {
        let chain = try IncompleteChain([[Self.location], []])
        let root = chain.root
        let rows: [@Sendable (SecTrust) -> Void] = [
            { SecTrustSetNetworkFetchAllowed($0, false) },
            { trust in
                if let root = SecCertificateCreateWithData(nil, root as CFData) {
                    SecTrustSetAnchorCertificates(trust, [root] as CFArray)
                }
            },
        ]
        for prepare in rows {
            let evaluator = Evaluator(prepare)
            try await withChain(chain, delegate: evaluator) { _ in
                .ok(chain.issuers[0])
            } test: { (server, authority, session) async throws in
                await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url()) }
                #expect(authority.connectionCount == 0)
                #expect(evaluator.counts.all == [1])
            }
        }
    }

    // MARK: Addresses

    /// The server is reached through a proxy, so its address is unknown, and counts as one of the public network.
    @Test func `an address of this machine is only used for a server that has one, too`() async throws {
        for location in [Self.location, "http://127.0.0.1/", "http://[::1]/", "http://localhost/", "http://0.0.0.0/"] {
            let chain = try IncompleteChain([[location], []], names: ["origin.example.test"])
            try await withScriptedServer(identity: chain.identity, reply: { _ in .ok("in") }) { (tunnelled) async throws in
                let relay = try NameRelay(to: tunnelled.port)
                try await withChain(chain) {
                    $0.connectionProxyDictionary = relay.dictionary
                } publication: { _ in
                    .ok(chain.issuers[0])
                } test: { (_, authority, session) async throws in
                    await expectUntrusted(
                        session, tunnelled, at: "origin.example.test", says: "public network", in: location)
                    #expect(authority.connectionCount == 0)
                }
            }
        }
    }
}
