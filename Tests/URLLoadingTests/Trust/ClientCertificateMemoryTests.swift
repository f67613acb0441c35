// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingStores
import LoadingTestKit
import Testing
import URLLoading

/// For how long, and for which tasks, a client certificate is presented again.
@Suite(.timeLimit(.minutes(1)))
struct ClientCertificateMemoryTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private static let required = ["-Verify", "3", "-verify_return_error"]

    private func identity(_ identity: TestCertificates.Identity) throws -> SecIdentity {
        try SecIdentity(pem: Data((identity.chainPEM + identity.keyPEM).utf8))
    }

    private func withAskingServer(
        _ delegate: (any URLSessionDelegate)?, configure: (URLSessionConfiguration) -> Void = { _ in },
        test: (PeerProcess, URLSession) async throws -> Void
    ) async throws {
        try await withOpenSSL(certificates.valid, root: certificates.rootPEM, Self.required) { (server) async throws in
            try await withSession(delegate: delegate) {
                $0.tlsTrustRoots = [certificates.root]
                configure($0)
            } test: { session in
                try await test(server, session)
            }
        }
    }

    private static func space(_ server: PeerProcess) -> URLProtectionSpace {
        URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
            authenticationMethod: NSURLAuthenticationMethodClientCertificate
        )
    }

    private func count(_ kind: String, of judge: Judge) -> Int { judge.kinds.filter { $0 == kind }.count }

    @Test func `a client certificate is remembered for the session, and the app is not asked again`() async throws {
        for persistence in [URLCredential.Persistence.forSession, .permanent] {
            let judge = Judge.showing(try identity(certificates.client), persistence)
            try await withAskingServer(SessionJudge(judge)) { (server, session) async throws in
                for _ in 0..<3 { #expect(try await session.text(server.url()).contains("Test Client")) }
                #expect(count(NSURLAuthenticationMethodServerTrust, of: judge) == 3, "the loads shared a connection")
                #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 1)
            }
        }
    }

    @Test func `a credential without persistence is used for one connection`() async throws {
        let judge = Judge.showing(try identity(certificates.client), .none)
        try await withAskingServer(SessionJudge(judge)) { (server, session) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()).contains("Test Client")) }
            #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 3)
        }
    }

    @Test func `a client certificate is remembered for its session and server only`() async throws {
        let judge = Judge.showing(try identity(certificates.client))
        try await withAskingServer(SessionJudge(judge)) { (server, session) async throws in
            #expect(try await session.text(server.url()).contains("Test Client"))
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (other) async throws in
                await expectFailure(.clientCertificateRequired) { try await other.data(from: server.url()) }
            }
            // The same host at another port is another server, and so is the same port under another name.
            try await withOpenSSL(certificates.valid, root: certificates.rootPEM, Self.required) { (other) async throws in
                _ = try await session.data(from: other.url())
                #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 2)
                _ = try await session.data(from: server.url("/", host: "localhost"))
                #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 3)
                #expect(judge.all.last?.space.host == "localhost")
            }
        }
    }

    @Test func `a rejected client certificate is not presented again`() async throws {
        let (strange, known) = (try identity(certificates.untrustedClient), try identity(certificates.client))
        let asked = Watched(0)
        let judge = Judge { question in
            guard question.kind == NSURLAuthenticationMethodClientCertificate else {
                return question.answer(.performDefaultHandling, nil)
            }
            let number = asked.change { asked in
                asked += 1
                return asked
            }
            let identity = number == 1 ? strange : known
            question.answer(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        }
        try await withAskingServer(SessionJudge(judge)) { (server, session) async throws in
            await expectFailure(.clientCertificateRejected) { try await session.data(from: server.url()) }
            #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 1)
            #expect(try await session.text(server.url()).contains("Test Client"))
            // Each load made one connection: the second load did not try the rejected certificate first.
            #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 2)
            #expect(count(NSURLAuthenticationMethodServerTrust, of: judge) == 2)
        }
    }

    @Test func `a client certificate in the credential storage is presented without a delegate`() async throws {
        for isDefault in [true, false] {
            let storage = URLCredentialStorage()
            try await withAskingServer(nil, configure: { $0.urlCredentialStorage = storage }) { (server, session) async throws in
                await expectFailure(.clientCertificateRequired) { try await session.data(from: server.url()) }
                let credential = URLCredential(
                    identity: try identity(certificates.client), certificates: nil, persistence: .forSession
                )
                let space = URLProtectionSpace(
                    host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
                    authenticationMethod: NSURLAuthenticationMethodClientCertificate
                )
                if isDefault { storage.setDefaultCredential(credential, for: space) } else { storage.set(credential, for: space) }
                #expect(try await session.text(server.url()).contains("Test Client"), "default: \(isDefault)")
                // The stored certificate does not apply to another host name.
                await expectFailure(.clientCertificateRequired) {
                    try await session.data(from: server.url("/", host: "localhost"))
                }
            }
        }
    }

    @Test func `a client certificate in a storage not yet loaded from disk is presented`() async throws {
        let folder = try TemporaryDirectory()
        let place = SealedCredentialFile(path: folder.path + "/credentials")
        let storage = URLCredentialStorage(store: CredentialStore(permanent: place))
        try await withAskingServer(nil, configure: { $0.urlCredentialStorage = storage }) { (server, session) async throws in
            storage.setDefaultCredential(
                URLCredential(identity: try identity(certificates.client), certificates: nil, persistence: .forSession),
                for: Self.space(server)
            )
            #expect(try await session.text(server.url()).contains("Test Client"))
        }
    }

    private final class CustomCredentialStorage: URLCredentialStorage, @unchecked Sendable {
        // `asked` is locked.
        let asked = Watched<[URLProtectionSpace]>([])
        let credential: URLCredential

        init(_ credential: URLCredential) {
            self.credential = credential
            super.init()
        }

        override func getDefaultCredential(
            for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
        ) {
            asked.change { $0.append(space) }
            let credential = credential
            Thread.detachNewThread { completionHandler(credential) }
        }
    }

    @Test func `the app's own credential storage is asked for the client certificate`() async throws {
        let identity = try identity(certificates.client)
        let judge = Judge.saying(.performDefaultHandling)
        for delegate in [nil, SessionJudge(judge)] {
            let storage = CustomCredentialStorage(URLCredential(identity: identity, certificates: nil, persistence: .forSession))
            try await withAskingServer(delegate, configure: { $0.urlCredentialStorage = storage }) {
                (server, session) async throws in
                for _ in 0..<2 { #expect(try await session.text(server.url()).contains("Test Client")) }
                // The session asks the storage once, and then remembers the certificate.
                #expect(storage.asked.read { $0 } == [Self.space(server)])
            }
        }
        #expect(try await judge.question(1).challenge.proposedCredential?.identity == identity)
    }

    @Test func `the storage's client certificate is proposed to the delegate, which decides`() async throws {
        let storage = URLCredentialStorage()
        let judge = Judge { question in
            let answer: URLSession.AuthChallengeDisposition =
                question.kind == NSURLAuthenticationMethodServerTrust ? .performDefaultHandling : .rejectProtectionSpace
            question.answer(answer, nil)
        }
        try await withAskingServer(SessionJudge(judge), configure: { $0.urlCredentialStorage = storage }) {
            (server, session) async throws in
            let identity = try identity(certificates.client)
            let space = URLProtectionSpace(
                host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
                authenticationMethod: NSURLAuthenticationMethodClientCertificate
            )
            storage.setDefaultCredential(
                URLCredential(identity: identity, certificates: nil, persistence: .forSession), for: space
            )
            await expectFailure(.clientCertificateRequired) { try await session.data(from: server.url()) }
            let proposed = try await judge.question(1).challenge.proposedCredential
            #expect(proposed?.identity == identity)
        }
    }

    @Test func `default handling presents the storage's client certificate`() async throws {
        let storage = URLCredentialStorage()
        let judge = Judge.saying(.performDefaultHandling)
        try await withAskingServer(SessionJudge(judge), configure: { $0.urlCredentialStorage = storage }) {
            (server, session) async throws in
            let space = URLProtectionSpace(
                host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
                authenticationMethod: NSURLAuthenticationMethodClientCertificate
            )
            storage.setDefaultCredential(
                URLCredential(identity: try identity(certificates.client), certificates: nil, persistence: .forSession),
                for: space
            )
            #expect(try await session.text(server.url()).contains("Test Client"))
        }
    }

    @Test func `a connection with one client certificate is not used with another, or without`() async throws {
        let server = try await PeerProcess.nginx(certificates.valid)
        defer { server.stop() }
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            $0.httpMaximumConnectionsPerHost = 1
        } test: { (session) async throws in
            let delegates: [(TaskJudge?, String)] = [
                (TaskJudge(.showing(try identity(certificates.client), .none)), "CN=Test Client"),
                (TaskJudge(.showing(try identity(certificates.untrustedClient), .none)), "CN=Strange Client"),
                (nil, ""),
            ]
            var connections: [String] = []
            for (delegate, name) in delegates {
                let (data, _) = try await session.data(from: server.url(), delegate: delegate)
                let words = String(decoding: data, as: UTF8.self).split(separator: " ", maxSplits: 1)
                connections.append(String(try #require(words.first)))
                #expect(words.count > 1 ? words[1] == name : name.isEmpty)
            }
            #expect(Set(connections).count == 3)
        }
    }

    @Test func `a client certificate from a task's own delegate is remembered for that delegate only`() async throws {
        let judges = [
            Judge.showing(try identity(certificates.client)), Judge.showing(try identity(certificates.untrustedClient)),
        ]
        try await withOpenSSL(certificates.valid, root: certificates.rootPEM, ["-verify", "3"]) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let rows: [(TaskJudge?, String)] = [
                    (TaskJudge(judges[0]), "Test Client"), (TaskJudge(judges[1]), "Strange Client"),
                    (nil, "no client certificate available"),
                ]
                for (delegate, words) in rows + rows {
                    let (data, _) = try await session.data(from: server.url(), delegate: delegate)
                    #expect(String(decoding: data, as: UTF8.self).contains(words))
                }
                for judge in judges { #expect(count(NSURLAuthenticationMethodClientCertificate, of: judge) == 1) }
            }
        }
    }

    @Test func `an answer after the end of the task is not remembered`() async throws {
        let judge = Judge { if $0.kind == NSURLAuthenticationMethodServerTrust { $0.answer(.performDefaultHandling, nil) } }
        try await withAskingServer(SessionJudge(judge)) { (server, session) async throws in
            let credential = URLCredential(
                identity: try identity(certificates.client), certificates: nil, persistence: .forSession)
            let outcome = Delivered<URLError.Code?>()
            let task = session.dataTask(with: try server.url()) { outcome(($2 as? URLError)?.code) }
            task.resume()
            let first = try await judge.question(1)
            task.cancel()
            #expect(try await outcome.value == .cancelled)
            first.answer(.useCredential, credential)
            let url = try server.url()
            async let text = session.text(url)
            // The delegate is asked both questions again, for the second task's own connection.
            let second = try await judge.question(3)
            #expect(second.kind == NSURLAuthenticationMethodClientCertificate)
            second.answer(.useCredential, credential)
            #expect(try await text.contains("Test Client"))
        }
    }

    @Test func `a reused connection asks for the client certificate once`() async throws {
        let server = try await PeerProcess.nginx(certificates.valid)
        defer { server.stop() }
        let judge = Judge.showing(try identity(certificates.client), .none)
        try await withSession(delegate: SessionJudge(judge)) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            let first = try await session.text(server.url())
            #expect(first.hasSuffix("CN=Test Client"))
            #expect(try await session.text(server.url()) == first)
            #expect(judge.kinds == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
        }
    }
}
