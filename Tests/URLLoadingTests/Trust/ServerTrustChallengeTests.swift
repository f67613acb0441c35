// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Every https connection yields a server-trust challenge: which delegate is asked, and when.
@Suite(.timeLimit(.minutes(1)))
struct ServerTrustChallengeTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// A server with an untrusted certificate: a load only succeeds if a delegate trusts it.
    private func withUntrustedServer(
        delegate: (any URLSessionDelegate)?, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: certificates.selfSigned, delegate: delegate,
            reply: { $0.path == "/close" ? .ok("done", [("Connection", "close")]) : .ok("done") }, test: test
        )
    }

    @Test func `each new connection asks once, and requests on a reused one do not ask`() async throws {
        let judge = Judge.trusting
        try await withUntrustedServer(delegate: SessionJudge(judge)) { (server, session) async throws in
            for path in ["/close", "/keep", "/keep", "/close", "/keep"] {
                #expect(try await session.text(server.url(path)) == "done")
            }
            #expect(server.connectionCount == 3)
            #expect(judge.kinds == Array(repeating: NSURLAuthenticationMethodServerTrust, count: 3))
        }
    }

    @Test func `the challenge has the server's name and chain`() async throws {
        for host in ["127.0.0.1", "localhost"] {
            let judge = Judge.saying(.performDefaultHandling)
            try await withScenario(
                identity: certificates.valid, delegate: SessionJudge(judge),
                configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok() }
            ) { (server, session) async throws in
                _ = try await session.data(from: server.url("/", host: host))
                let question = try await judge.question(0)
                let space = question.space
                #expect(space.host == host)
                #expect(space.port == server.port)
                #expect(space.protocol == NSURLProtectionSpaceHTTPS)
                #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
                #expect(space.realm == nil)
                #expect(!space.isProxy())
                #expect(space.proxyType == nil)
                #expect(space.receivesCredentialSecurely)
                #expect(space.distinguishedNames == nil)
                #expect(question.chain.starts(with: certificates.valid.chain))
                #expect(question.challenge.previousFailureCount == 0)
                #expect(question.challenge.proposedCredential == nil)
                #expect(question.challenge.failureResponse == nil)
                #expect(question.challenge.error == nil)
                let trust = try #require(space.serverTrust)
                #expect(SecTrustEvaluateWithError(trust, nil), "the trust lacks the session's roots or the host")
                let subject = SecTrustGetCertificateAtIndex(trust, 0).flatMap { SecCertificateCopySubjectSummary($0) }
                #expect(subject as String? == "Test Server")
            }
        }
    }

    @Test func `a load without TLS does not ask`() async throws {
        let judge = Judge.trusting
        try await withScenario(delegate: BothJudge(judge), reply: { _ in .ok("clear") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "clear")
            #expect(judge.all.isEmpty)
        }
    }

    @Test func `the session-level method is called first, whatever methods the delegate of the task has`() async throws {
        let (shared, own) = (Judge.trusting, Judge.saying(.cancelAuthenticationChallenge))
        try await withUntrustedServer(delegate: BothJudge(shared)) { (server, session) async throws in
            let delegates: [(any URLSessionTaskDelegate)?] = [nil, TaskJudge(own), BothJudge(own), EventRecorder()]
            for delegate in delegates {
                _ = try await session.data(from: server.url("/close"), delegate: delegate)
            }
            #expect(shared.all.map(\.method) == [.session, .session, .session, .session])
            #expect(own.all.isEmpty)
        }
    }

    @Test func `without the session-level method, a task delegate is called before the session delegate`() async throws {
        let (shared, own) = (Judge.trusting, Judge.trusting)
        try await withUntrustedServer(delegate: TaskJudge(shared)) { (server, session) async throws in
            let delegate = TaskJudge(own)
            let task = session.dataTask(with: server.url("/close"))
            task.delegate = delegate
            task.resume()
            let question = try await own.question(0)
            #expect(question.method == .task)
            #expect(question.task == task.taskIdentifier)
            #expect(shared.all.isEmpty)
            // If the task has no delegate, or its delegate lacks the method, the session's delegate is called.
            for delegate in [nil, EventRecorder()] {
                _ = try await session.data(from: server.url("/close"), delegate: delegate)
            }
            #expect(shared.all.map(\.method) == [.task, .task])
            #expect(own.all.count == 1)
        }
    }

    @Test func `a session without a delegate asks the task's own delegate`() async throws {
        let own = Judge.trusting
        try await withUntrustedServer(delegate: nil) { (server, session) async throws in
            let (data, _) = try await session.data(from: server.url(), delegate: TaskJudge(own))
            #expect(data == Data("done".utf8))
            #expect(own.all.map(\.method) == [.task])
        }
    }

    @Test func `the session-level method is not called on the delegate of a task`() async throws {
        let own = Judge.trusting
        try await withUntrustedServer(delegate: nil) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: BothJudge(own))
            #expect(own.all.map(\.method) == [.task])
        }
    }

    @Test func `async delegate methods are called too`() async throws {
        let judges = [Judge.trusting, .trusting, .trusting]
        try await withUntrustedServer(delegate: AsyncSessionJudge(judges[0])) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "done")
        }
        try await withUntrustedServer(delegate: AsyncTaskJudge(judges[1])) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "done")
        }
        try await withUntrustedServer(delegate: nil) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: AsyncTaskJudge(judges[2]))
        }
        #expect(judges.map { $0.all.map(\.method) } == [[.session], [.task], [.task]])
    }

    @Test func `tasks of all kinds cause a challenge`() async throws {
        let judge = Judge.trusting
        try await withUntrustedServer(delegate: BothJudge(judge)) { (server, session) async throws in
            let url = server.url("/close")
            let outcome = Delivered<Bool>()
            session.dataTask(with: url) { data, _, error in outcome(data == Data("done".utf8) && error == nil) }.resume()
            #expect(try await outcome.value)
            session.downloadTask(with: url) { file, _, error in outcome(file != nil && error == nil) }.resume()
            try await outcome.count(reaches: 2)
            session.uploadTask(with: URLRequest(url, method: "POST"), from: Data("up".utf8)) { _, _, error in
                outcome(error == nil)
            }.resume()
            try await outcome.count(reaches: 3)
            #expect(outcome.all == [true, true, true])
            _ = try await session.upload(for: URLRequest(url, method: "POST"), from: Data("up".utf8))
            // The caller owns the file.
            try FileManager.default.removeItem(at: try await session.download(from: url).0)
            let (bytes, _) = try await session.bytes(from: url)
            for try await _ in bytes {}
            #expect(judge.all.map(\.method) == Array(repeating: .session, count: 6))
        }
    }

    @Test func `the challenge comes before the response`() async throws {
        let judge = Judge.silent
        let recorder = EventRecorder()
        try await withUntrustedServer(delegate: SessionJudge(judge)) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.delegate = recorder
            task.resume()
            let question = try await judge.question(0)
            #expect(recorder.letters(of: task).isEmpty)
            #expect(server.requests.isEmpty, "a request was sent before the app answered")
            question.trust()
            try await recorder.completion(of: task)
            // The task was created before it had this delegate.
            try recorder.expectOrder(of: task, "R[sD]*ME")
        }
    }
}
