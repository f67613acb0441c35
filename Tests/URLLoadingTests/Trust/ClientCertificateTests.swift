// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Servers that request a client certificate, and the effect of each answer of the delegate.
@Suite(.timeLimit(.minutes(1)))
struct ClientCertificateTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private static let versions = ["-tls1_2", "-tls1_3"]
    /// The options of a server that continues without a certificate (`optional`), or requires a known certificate (`required`).
    private static let optional = ["-verify", "3"]
    private static let required = ["-Verify", "3", "-verify_return_error"]

    private func withAskingServer(
        _ options: [String], _ delegate: (any URLSessionDelegate)?, test: (PeerProcess, URLSession) async throws -> Void
    ) async throws {
        try await withOpenSSL(certificates.valid, root: certificates.rootPEM, options) { (server) async throws in
            try await withSession(delegate: delegate) {
                $0.tlsTrustRoots = [certificates.root]
            } test: { session in
                try await test(server, session)
            }
        }
    }

    private func pem(_ identity: TestCertificates.Identity) throws -> SecIdentity {
        try SecIdentity(pem: Data(identity.chainPEM.utf8), key: Data(identity.keyPEM.utf8))
    }

    @Test func `a server that does not request a certificate is not sent one, and no delegate is asked`() async throws {
        let judge = Judge.showing(try pem(certificates.client))
        for version in Self.versions {
            try await withAskingServer([version], SessionJudge(judge)) { (server, session) async throws in
                #expect(try await session.text(server.url()).contains("no client certificate available"))
            }
        }
        #expect(judge.kinds == Array(repeating: NSURLAuthenticationMethodServerTrust, count: 2))
    }

    @Test func `a certificate from PEM or PKCS 12 is presented on request`() async throws {
        let identities = [
            ("PEM", try pem(certificates.client)),
            ("PKCS 12", try SecIdentity(pkcs12: certificates.client.pkcs12(password: "secret"), password: "secret")),
        ]
        for version in Self.versions {
            for options in [Self.optional, Self.required] {
                for (name, identity) in identities {
                    let judge = Judge.showing(identity)
                    try await withAskingServer([version] + options, SessionJudge(judge)) { (server, session) async throws in
                        let text = try await session.text(server.url())
                        #expect(text.contains("Test Client"), "\(name) \(version) \(options)")
                        #expect(
                            judge.kinds == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
                    }
                }
            }
        }
    }

    @Test func `the challenge names the server`() async throws {
        let judge = Judge.showing(try pem(certificates.client))
        try await withAskingServer(Self.required, SessionJudge(judge)) { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            let question = try await judge.question(1)
            #expect(question.kind == NSURLAuthenticationMethodClientCertificate)
            #expect(question.space.host == "localhost")
            #expect(question.space.port == server.port)
            #expect(question.space.protocol == NSURLProtectionSpaceHTTPS)
            #expect(question.space.realm == nil)
            #expect(!question.space.isProxy())
            #expect(question.space.serverTrust == nil)
            #expect(question.challenge.previousFailureCount == 0)
            #expect(question.challenge.proposedCredential == nil)
            #expect(question.challenge.failureResponse == nil)
        }
    }

    @Test func `the task's delegate method is called when the session's is absent`() async throws {
        let (shared, own) = (Judge.showing(try pem(certificates.client)), Judge.showing(try pem(certificates.client), .none))
        try await withAskingServer(Self.required, TaskJudge(shared)) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: TaskJudge(own))
            #expect(own.all.map(\.method) == [.task, .task])
            #expect(shared.all.isEmpty)
            _ = try await session.data(from: server.url())
            #expect(shared.all.map(\.method) == [.task, .task])
        }
        let session = Judge.showing(try pem(certificates.client))
        try await withAskingServer(Self.required, BothJudge(session)) { (server, urlSession) async throws in
            _ = try await urlSession.data(from: server.url(), delegate: TaskJudge(.silent))
            #expect(session.all.map(\.method) == [.session, .session])
        }
    }

    @Test func `a load continues without a certificate if the server allows that`() async throws {
        let judges: [Judge?] = [
            nil, .answeringForIdentity(.performDefaultHandling), .answeringForIdentity(.useCredential, nil),
            .answeringForIdentity(.rejectProtectionSpace),
        ]
        for version in Self.versions {
            for judge in judges {
                try await withAskingServer([version] + Self.optional, judge.map { SessionJudge($0) }) {
                    (server, session) async throws in
                    #expect(try await session.text(server.url()).contains("no client certificate available"), "\(version)")
                }
            }
        }
    }

    @Test func `a load fails without a certificate that the server requires`() async throws {
        let judges: [Judge?] = [
            nil, .answeringForIdentity(.performDefaultHandling), .answeringForIdentity(.useCredential, nil),
            .answeringForIdentity(.rejectProtectionSpace),
            .answeringForIdentity(.useCredential, URLCredential(user: "user", password: "password", persistence: .none)),
        ]
        for version in Self.versions {
            for (index, judge) in judges.enumerated() {
                try await withAskingServer([version] + Self.required, judge.map { SessionJudge($0) }) {
                    (server, session) async throws in
                    let url = try server.url()
                    let error = await expectFailure(.clientCertificateRequired, in: "\(version) \(index)") {
                        try await session.data(from: url)
                    }
                    #expect(error?.failingURL == url)
                    // A request with a body fails in the same way.
                    await expectFailure(.clientCertificateRequired, in: "\(version) \(index)") {
                        try await session.upload(for: URLRequest(url, method: "PUT"), from: Data(count: 100_000))
                    }
                }
            }
        }
    }

    @Test func `a certificate that the server does not know is rejected`() async throws {
        for version in Self.versions {
            let judge = Judge.showing(try pem(certificates.untrustedClient), .none)
            try await withAskingServer([version] + Self.required, SessionJudge(judge)) { (server, session) async throws in
                await expectFailure(.clientCertificateRejected, in: version) { try await session.data(from: server.url()) }
            }
        }
    }

    @Test func `cancelling the challenge cancels the task`() async throws {
        for version in Self.versions {
            for options in [Self.optional, Self.required] {
                let judge = Judge.answeringForIdentity(.cancelAuthenticationChallenge)
                try await withAskingServer([version] + options, SessionJudge(judge)) { (server, session) async throws in
                    await expectFailure(.cancelled, in: "\(version) \(options)") { try await session.data(from: server.url()) }
                }
            }
        }
    }

    @Test func `an answer may come late, from another thread, twice, or never`() async throws {
        let credential = URLCredential(identity: try pem(certificates.client), certificates: nil, persistence: .none)
        for version in Self.versions {
            let judge = Judge { question in
                if question.kind == NSURLAuthenticationMethodServerTrust { question.answer(.performDefaultHandling, nil) }
            }
            try await withAskingServer([version] + Self.required, SessionJudge(judge)) { (server, session) async throws in
                async let text = session.text(server.url())
                let question = try await judge.question(1)
                Thread.detachNewThread {
                    question.answer(.useCredential, credential)
                    question.answer(.cancelAuthenticationChallenge, nil)
                }
                #expect(try await text.contains("Test Client"), "\(version)")

                let count = judge.all.count
                let outcome = Delivered<URLError?>()
                let task = session.dataTask(with: try server.url()) { outcome($2 as? URLError) }
                task.resume()
                let last = try await judge.question(count + 1)
                task.cancel()
                #expect(try await outcome.value?.code == .cancelled)
                last.answer(.useCredential, credential)
            }
        }
    }

    @Test func `intermediates given with the identity are sent`() async throws {
        // The identity only has its own certificate; without the intermediate the server cannot build a chain to its root.
        let leaf = try #require(certificates.client.chainPEM.components(separatedBy: "-----END CERTIFICATE-----").first)
        let alone = try SecIdentity(
            pem: Data((leaf + "-----END CERTIFICATE-----\n").utf8), key: Data(certificates.client.keyPEM.utf8)
        )
        let issuer = try #require(SecCertificateCreateWithData(nil, Data(certificates.client.chain[1]) as CFData))
        // s_server also uses the intermediate of its own chain to verify clients, unless that is disabled.
        for (issuers, code) in [([issuer], nil), ([], URLError.Code.clientCertificateRejected)]
            as [([SecCertificate], URLError.Code?)]
        {
            let credential = URLCredential(identity: alone, certificates: issuers, persistence: .none)
            let judge = Judge.answeringForIdentity(.useCredential, credential)
            try await withAskingServer(Self.required, SessionJudge(judge)) { (server, session) async throws in
                guard let code else {
                    #expect(try await session.text(server.url()).contains("Test Client"))
                    return
                }
                await expectFailure(code) { try await session.data(from: server.url()) }
            }
        }
    }
}
