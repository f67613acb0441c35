// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The server's certificate over QUIC: it is judged as over TCP, and before the first byte of a request.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3TrustTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// A server that speaks only HTTP/3, with a certificate of the test's choice.
    private func withJudge(
        _ judge: Judge?, _ identity: TestCertificates.Identity, isTask: Bool = false,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        test: (HTTP3ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        var delegate: (any URLSessionDelegate)?
        if let judge { delegate = isTask ? TaskJudge(judge) : SessionJudge(judge) }
        try await withHTTP3Scenario(
            identities: [identity], delegate: delegate, configure: configure, reply: { _ in .ok("secret") }, test: test)
    }

    private func rows() -> [(String, TestCertificates.Identity)] {
        [
            ("unknown root", certificates.unknownAuthority),
            ("self-signed", certificates.selfSigned),
            ("missing intermediate", certificates.missingIntermediate),
            ("wrong host", certificates.wrongHost),
            ("expired", certificates.expired),
            ("not yet valid", certificates.notYetValid),
            ("weak key", certificates.weakKey),
            ("clients only", certificates.clientOnly),
            ("name constraints", certificates.nameConstraintViolated),
            ("no authority", certificates.nonCAIssuer),
            ("an impostor", certificates.impostorIssuer),
        ]
    }

    // MARK: Without a delegate

    @Test func `a chain that is refused over TCP is refused over QUIC, with the same error, and no request is sent`() async throws
    {
        for (name, identity) in rows() {
            var overTCP: URLError?
            try await withScenario(
                version: .http2, identity: identity, configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok() }
            ) { (server, session) async throws in
                do { _ = try await session.data(from: server.url(host: "localhost")) } catch { overTCP = error as? URLError }
            }
            let expected = try #require(overTCP, "\(name)")
            try await withJudge(nil, identity) { (server, session) async throws in
                let error = await expectFailure(expected.code, in: name) { try await session.data(from: server.url()) }
                #expect(error?.failingURL == server.url(), "\(name)")
                #expect(
                    error?.failureURLPeerTrust.map(SecTrustGetCertificateCount)
                        == expected.failureURLPeerTrust.map(SecTrustGetCertificateCount), "\(name)")
                #expect(error?.localizedDescription == expected.localizedDescription, "\(name)")
                #expect(server.requests.isEmpty, "\(name)")
            }
        }
    }

    @Test func `a refused chain is answered with a TLS alert`() async throws {
        try await withJudge(nil, certificates.unknownAuthority) { (server, session) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                try await session.data(from: server.url())
            }
            let end = try #require(try await server.waitForEnd())
            #expect((0x100...0x1FF).contains(end.code) && end.frame != nil, "\(end)")
        }
    }

    @Test func `valid chains are accepted`() async throws {
        for identity in [certificates.valid, certificates.nameConstraintSatisfied] {
            try await withJudge(nil, identity) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
                #expect(try await session.text(server.url(host: "127.0.0.1")) == "secret")
            }
        }
    }

    // MARK: Beside TCP

    @Test func `where only the chain over QUIC is refused, TCP is used, and HTTP/3 is not tried again`() async throws {
        try await withHTTP3Origin(identities: [certificates.unknownAuthority]) { (origin, session) async throws in
            #expect(try await session.outcome(.assuming(origin.url())).last == "http/1.1")
            let count = origin.quic.connectionCount
            for _ in 0..<3 { #expect(try await session.text(.assuming(origin.url())).text == "tcp") }
            #expect(origin.quic.connectionCount == count && origin.quic.requests.isEmpty)
        }
    }

    @Test func `where both chains are refused, the load has its trust error, and no request is sent`() async throws {
        try await withHTTP3Origin(
            tcpIdentity: certificates.unknownAuthority, identities: [certificates.unknownAuthority]
        ) { (origin, session) async throws in
            for _ in 0..<2 {
                let error = await expectFailure(.serverCertificateHasUnknownRoot) {
                    try await session.data(for: .assuming(origin.url()))
                }
                #expect(error?.failingURL == origin.url())
                #expect(error?.failureURLPeerTrust != nil)
            }
            #expect(origin.quic.requests.isEmpty && origin.tcp.requests.isEmpty)
        }
    }

    @Test func `where TCP cannot be reached, a refused chain is the load's error`() async throws {
        try await withJudge(nil, certificates.unknownAuthority, configure: { $0.connectionOptions.httpVersions = .negotiated }) {
            (server, session) async throws in
            // TCP decides, and is refused.
            await expectFailure(.serverCertificateHasUnknownRoot, .cannotConnectToHost) {
                try await session.data(for: .assuming(server.url()))
            }
            #expect(server.requests.isEmpty)
        }
    }

    // MARK: The delegate

    @Test func `a delegate that takes its time is asked once, and the request goes over HTTP/3`() async throws {
        try await HTTP3Origin.withTries {
            var isRight = false
            let judge = Judge { question in
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(700)) { question.trust() }
            }
            try await withHTTP3Origin(
                tcpIdentity: certificates.selfSigned, identities: [certificates.selfSigned], delegate: SessionJudge(judge)
            ) { (origin, session) async throws in
                let outcome = try await session.outcome(.assuming(origin.url()))
                #expect(judge.all.count == 1, "over \(outcome.last ?? "")")
                #expect(origin.tcp.requests.count + origin.quic.requests.count == 1)
                isRight = outcome.last == "h3"
            }
            return isRight
        }
    }

    @Test func `a delegate's trust counts for one connection, which later loads share`() async throws {
        for isTask in [false, true] {
            let judge = Judge.trusting
            try await withJudge(judge, certificates.selfSigned, isTask: isTask) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
                let question = try await judge.question(0)
                #expect(question.kind == NSURLAuthenticationMethodServerTrust)
                #expect(question.method == (isTask ? .task : .session))
                #expect(question.space.host == "localhost" && question.space.port == server.port)
                #expect(question.chain == certificates.selfSigned.chain)
                #expect(try await session.text(server.url()) == "secret")
                #expect(server.connectionCount == 1)
            }
        }
    }

    @Test func `the session's method is preferred, and a task's own delegate to the session's`() async throws {
        let both = Judge.trusting
        try await withHTTP3Scenario(
            identities: [certificates.selfSigned], delegate: BothJudge(both), reply: { _ in .ok("secret") }
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: TaskJudge(.silent))
            #expect(both.all.map(\.method) == [.session])
        }
        let (shared, own) = (Judge.trusting, Judge.trusting)
        try await withJudge(shared, certificates.selfSigned, isTask: true) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: TaskJudge(own))
            #expect(own.all.map(\.method) == [.task] && shared.all.isEmpty)
        }
    }

    @Test func `a delegate without credential leaves trust to the roots`() async throws {
        for judge in [Judge.saying(.performDefaultHandling), .saying(.useCredential, nil)] {
            try await withJudge(judge, certificates.valid) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
            }
            try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
                await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                    try await session.data(from: server.url())
                }
                #expect(server.requests.isEmpty)
            }
            #expect(judge.all.count == 2)
        }
    }

    @Test(arguments: [false, true]) func `cancelling the challenge cancels the task`(isRace: Bool) async throws {
        let judge = Judge.saying(.cancelAuthenticationChallenge)
        try await withHTTP3Origin(
            delegate: SessionJudge(judge), configure: { if !isRace { $0.connectionOptions.httpVersions = .http3Only } }
        ) { (origin, session) async throws in
            let error = await expectFailure(.cancelled) { try await session.data(for: .assuming(origin.url())) }
            #expect(error?.failingURL == origin.url())
            #expect(origin.tcp.requests.isEmpty && origin.quic.requests.isEmpty)
            #expect(judge.all.count == 1)
        }
    }

    @Test func `rejecting the protection space fails the task`() async throws {
        try await withJudge(.saying(.rejectProtectionSpace), certificates.valid) { (server, session) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                try await session.data(from: server.url())
            }
            #expect(server.requests.isEmpty)
            try await server.waitForEnd()
        }
    }

    @Test func `a task that is cancelled during its challenge ends at once, and its connection is closed`() async throws {
        let judge = Judge.silent
        try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
            let outcome = Delivered<URLError?>()
            let task = session.dataTask(with: server.url()) { outcome($2 as? URLError) }
            task.resume()
            let question = try await judge.question(0)
            task.cancel()
            #expect(try await outcome.value?.code == .cancelled)
            question.trust()
            try await server.waitForEnd()
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the request timeout is paused while the delegate is asked`() async throws {
        let judge = Judge { question in
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2_500)) { question.trust() }
        }
        try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 2
            #expect(try await session.text(request).text == "secret")
            #expect(server.requests.count == 1 && server.connectionCount == 1)
        }
    }

    @Test func `loads that wait for one verdict are asked together or one after the other, and all succeed`() async throws {
        let judge = Judge.silent
        try await withJudge(judge, certificates.selfSigned) { (server, session) async throws in
            let url = server.url()
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<5 { group.addTask { try await session.text(url) } }
                group.addTask {
                    try await judge.question(0).trust()
                    return "secret"
                }
                for try await text in group { #expect(text == "secret") }
            }
            #expect(server.connectionCount == 1 && judge.all.count == 1)
        }
    }

    // MARK: Roots, pins and intermediates

    @Test func `the session's own roots are needed`() async throws {
        try await withHTTP3Scenario(configure: { $0.tlsTrustRoots = [] }, reply: { _ in .ok() }) {
            (server, session) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                try await session.data(from: server.url())
            }
            #expect(server.requests.isEmpty)
        }
    }

    private func pins(of der: [UInt8]) throws -> [String: Any] {
        let certificate = try #require(SecCertificateCreateWithData(nil, Data(der) as CFData))
        let hash = try #require(PinningSamples.publicKeyHash(of: certificate))
        return [
            "NSPinnedDomains": [
                "localhost": ["NSIncludesSubdomains": false, "NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": hash]]]
            ]
        ]
    }

    @Test func `pinned keys are needed, whatever the delegate says`() async throws {
        for judge in [nil, Judge.trusting] {
            let right = try pins(of: certificates.valid.chain[0])
            try await withJudge(judge, certificates.valid, configure: { $0.appTransportSecurity = right }) {
                (server, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
            }
            let wrong = try pins(of: certificates.selfSigned.chain[0])
            try await withJudge(judge, certificates.valid, configure: { $0.appTransportSecurity = wrong }) {
                (server, session) async throws in
                let error = await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                    try await session.data(from: server.url())
                }
                #expect(error?.localizedDescription.contains("pinned") == true)
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `where the key over QUIC is not pinned, TCP is used`() async throws {
        let dictionary = try pins(of: certificates.valid.chain[0])
        try await withHTTP3Origin(
            identities: [certificates.nameConstraintSatisfied], configure: { $0.appTransportSecurity = dictionary }
        ) { (origin, session) async throws in
            #expect(try await session.text(.assuming(origin.url())).text == "tcp")
            #expect(origin.quic.requests.isEmpty)
        }
    }

    @Test(arguments: [true, false]) func `a missing intermediate is fetched if the session may`(isAllowed: Bool) async throws {
        let chain = try IncompleteChain([["http://ca.example.test/issuer"], []])
        try await withScriptedServer(reply: { _ in .ok(chain.issuers[0]) }) { (authority) async throws in
            try await withHTTP3Scenario(
                identities: [chain.identity],
                configure: {
                    $0.systemTrustRoots = [chain.root]
                    $0.fetchesIntermediateCertificates = isAllowed
                    $0.connectionOptions.substitutions = [
                        .init(of: .init(host: "ca.example.test", port: 80), with: .init(host: "127.0.0.1", port: authority.port))
                    ]
                }, reply: { _ in .ok("in") }
            ) { (server, session) async throws in
                if isAllowed {
                    let outcome = try await session.outcome(server.url())
                    #expect(outcome.text == "in")
                    #expect(
                        outcome.transactions.last?.intermediateCertificateURLs.map(\.absoluteString)
                            == ["http://ca.example.test/issuer"])
                    #expect(authority.requests.count == 1)
                } else {
                    await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                        try await session.data(from: server.url())
                    }
                    #expect(authority.connectionCount == 0 && server.requests.isEmpty)
                }
            }
        }
    }
}
