// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Client certificates over QUIC: the handshake ends without one, the server is judged, the app is asked, and a further connection
/// presents its answer.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3ClientCertificateTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func pem(_ identity: TestCertificates.Identity) throws -> SecIdentity {
        try SecIdentity(pem: Data(identity.chainPEM.utf8), key: Data(identity.keyPEM.utf8))
    }

    /// Runs a test with a server that asks for a certificate, and closes connections without one if it insists.
    private func withAskingServer(
        insists: Bool, _ delegate: (any URLSessionDelegate)?,
        greeting: @escaping HTTP3ScriptedServer.Greeting = { _ in [.settings()] },
        test: (HTTP3ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withHTTP3Scenario(
            delegate: delegate,
            opening: { _ in
                HTTP3Opening {
                    $0.asks = true
                    $0.insists = insists
                }
            }, greeting: greeting, reply: { .ok("\($0.connection)") }, test: test)
    }

    private static let bothKinds = [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate]

    // MARK: Given

    @Test(arguments: [false, true]) func `a certificate is presented on request, before any request is sent`(
        insists: Bool
    ) async throws {
        let judge = Judge.showing(try pem(certificates.client))
        try await withAskingServer(insists: insists, SessionJudge(judge)) { (server, session) async throws in
            let text = try await session.text(server.url())
            let connection = try #require(Int(text))
            #expect(try await server.waitForHandshake(of: connection) == certificates.client.chain[0])
            #expect(server.requests.map(\.connection) == [connection])
            #expect(judge.kinds.contains(NSURLAuthenticationMethodClientCertificate))
            #expect(judge.kinds.count { $0 == NSURLAuthenticationMethodClientCertificate } == 1)
            // Later loads share the connection that presented it.
            #expect(try await session.text(server.url()) == text)
            #expect(server.requests.map(\.connection) == [connection, connection])
        }
    }

    @Test func `the delegate is asked about the server first, and once about each`() async throws {
        let judge = Judge.showing(try pem(certificates.client))
        try await withAskingServer(insists: true, SessionJudge(judge)) { (server, session) async throws in
            _ = try await session.text(server.url())
            #expect(judge.kinds == Self.bothKinds)
            let question = try await judge.question(1)
            #expect(question.space.host == "localhost" && question.space.port == server.port)
            #expect(question.space.protocol == NSURLProtectionSpaceHTTPS)
            #expect(question.challenge.previousFailureCount == 0 && question.challenge.proposedCredential == nil)
        }
    }

    @Test func `the task's method is called where the session's is absent`() async throws {
        let (shared, own) = (Judge.showing(try pem(certificates.client)), Judge.showing(try pem(certificates.client), .none))
        try await withAskingServer(insists: true, TaskJudge(shared)) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: TaskJudge(own))
            #expect(own.all.map(\.method) == [.task, .task] && shared.all.isEmpty)
        }
        let both = Judge.showing(try pem(certificates.client))
        try await withAskingServer(insists: true, BothJudge(both)) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: TaskJudge(.silent))
            #expect(both.all.map(\.method) == [.session, .session])
        }
    }

    @Test func `an answer may come late`() async throws {
        let judge = Judge { question in
            if question.kind == NSURLAuthenticationMethodServerTrust { question.answer(.performDefaultHandling, nil) }
        }
        let credential = URLCredential(identity: try pem(certificates.client), certificates: nil, persistence: .none)
        try await withAskingServer(insists: false, SessionJudge(judge)) { (server, session) async throws in
            async let text = session.text(server.url())
            let question = try await judge.question(1)
            #expect(server.requests.isEmpty)
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { question.answer(.useCredential, credential) }
            let connection = try #require(Int(try await text))
            #expect(try await server.waitForHandshake(of: connection) == certificates.client.chain[0])
        }
    }

    // MARK: Not given

    private func silences() -> [Judge?] {
        [
            nil, .answeringForIdentity(.performDefaultHandling), .answeringForIdentity(.useCredential, nil),
            .answeringForIdentity(.rejectProtectionSpace),
        ]
    }

    @Test func `a load continues without a certificate if the server allows that`() async throws {
        for judge in silences() {
            try await withAskingServer(insists: false, judge.map { SessionJudge($0) }) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "0")
                #expect(server.connectionCount == 1)
            }
        }
    }

    @Test func `a load fails without a certificate that the server requires`() async throws {
        for (index, judge) in silences().enumerated() {
            try await withAskingServer(insists: true, judge.map { SessionJudge($0) }) { (server, session) async throws in
                let error = await expectFailure(.clientCertificateRequired, in: "\(index)") {
                    try await session.data(from: server.url())
                }
                #expect(error?.failingURL == server.url())
                await expectFailure(.clientCertificateRequired, in: "\(index)") {
                    try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: Data(count: 100_000))
                }
                #expect(server.requests.isEmpty)
            }
        }
    }

    /// Go's servers close with the alert "bad certificate" (RFC 9001, section 4.8) where OpenSSL's say "certificate required".
    @Test(arguments: [0x12A, 0x174] as [UInt64])
    func `a server that closes after the handshake without a certificate required one`(code: UInt64) async throws {
        try await withAskingServer(
            insists: false, nil, greeting: { _ in [.settings(), .close(code, frame: 6, now: true)] }
        ) { (server, session) async throws in
            await expectFailure(.clientCertificateRequired) { try await session.data(from: server.url()) }
        }
    }

    @Test(arguments: [0x12A, 0x12B, 0x130] as [UInt64])
    func `a certificate that the server does not accept is rejected`(code: UInt64) async throws {
        let judge = Judge.showing(try pem(certificates.untrustedClient), .none)
        try await withAskingServer(
            insists: true, SessionJudge(judge),
            // The server refuses what it gets, and insists on something.
            greeting: { $0 == 0 ? [.settings()] : [.settings(), .close(code, frame: 6, now: true)] }
        ) { (server, session) async throws in
            await expectFailure(.clientCertificateRejected) { try await session.data(from: server.url()) }
            #expect(judge.kinds.count { $0 == NSURLAuthenticationMethodClientCertificate } == 1)
        }
    }

    @Test(arguments: [false, true]) func `cancelling the challenge cancels the task`(insists: Bool) async throws {
        let judge = Judge.answeringForIdentity(.cancelAuthenticationChallenge)
        try await withAskingServer(insists: insists, SessionJudge(judge)) { (server, session) async throws in
            await expectFailure(.cancelled) { try await session.data(from: server.url()) }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a server that is not trusted is not shown a certificate, and the app is not asked`() async throws {
        let judge = Judge.showing(try pem(certificates.client))
        try await withHTTP3Scenario(
            identities: [certificates.unknownAuthority], delegate: SessionJudge(judge),
            opening: { _ in HTTP3Opening { $0.asks = true } }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                try await session.data(from: server.url())
            }
            #expect(judge.kinds == [NSURLAuthenticationMethodServerTrust])
            #expect(server.connectionCount == 1 && server.requests.isEmpty)
        }
    }

    // MARK: Both ways

    /// Rule 2: what a credential obtained reaches no load that would have sent none.
    @Test func `a request without HTTP/3 beside one with it presents the certificate, too`() async throws {
        let judge = Judge.showing(try pem(certificates.client))
        let caddy = try CaddyServer.start(certificates.valid, http3: true, clients: .required(certificates.rootPEM))
        defer { caddy.stop() }
        try await withSession(delegate: SessionJudge(judge)) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            for _ in 0..<2 {
                let outcome = try await session.outcome(.assuming(caddy.url("/client")))
                #expect(outcome.response.statusCode == 200)
                // Caddy does not tell who the client is over HTTP/3.
                #expect(outcome.text == "CN=Test Client" || outcome.last == "h3", "over \(outcome.last ?? "")")
            }
            // The same server and connection: one question each.
            #expect(judge.kinds.count { $0 == NSURLAuthenticationMethodClientCertificate } == 1)
        }
    }

    @Test func `Caddy asks for a certificate over HTTP/3`() async throws {
        for clients in [CaddyServer.ClientCertificates.optional(certificates.rootPEM), .required(certificates.rootPEM)] {
            let caddy = try CaddyServer.start(certificates.valid, http3: true, clients: clients)
            defer { caddy.stop() }
            let isRequired = if case .required = clients { true } else { false }
            func with(_ judge: Judge?, test: (URLSession) async throws -> Void) async throws {
                try await withSession(delegate: judge.map { SessionJudge($0) }) {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionOptions.httpVersions = .http3Only
                } test: { (session) async throws in
                    try await test(session)
                }
            }
            try await with(.showing(try pem(certificates.client))) { (session) async throws in
                let outcome = try await session.outcome(caddy.url("/client"))
                #expect(outcome.response.statusCode == 200 && outcome.last == "h3", "\(clients)")
            }
            try await with(nil) { (session) async throws in
                if isRequired {
                    await expectFailure(.clientCertificateRequired) { try await session.data(from: caddy.url("/client")) }
                } else {
                    #expect(try await session.outcome(caddy.url("/client")).last == "h3")
                }
            }
            try await with(.showing(try pem(certificates.untrustedClient), .none)) { (session) async throws in
                await expectFailure(.clientCertificateRejected) { try await session.data(from: caddy.url("/client")) }
            }
        }
    }
}
