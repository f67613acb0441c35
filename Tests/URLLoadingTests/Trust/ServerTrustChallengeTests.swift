//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// "Every https connection yields a server-trust challenge" (behaviour, section 5), and who is asked.
@Suite(.timeLimit(.minutes(1)))
struct ServerTrustChallengeTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// A server whose certificate nobody vouches for: only a delegate's word lets a load through.
    private func withUntrustedServer(
        delegate: (any URLSessionDelegate)?, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: certificates.selfSigned, delegate: delegate,
            reply: { $0.path == "/close" ? .ok("done", [("Connection", "close")]) : .ok("done") }, test: test
        )
    }

    @Test func `every new connection is asked about, and no request on one that is there`() async throws {
        let judge = Judge.trusting
        try await withUntrustedServer(delegate: SessionJudge(judge)) { (server, session) async throws in
            for path in ["/close", "/keep", "/keep", "/close", "/keep"] {
                #expect(try await session.text(server.url(path)) == "done")
            }
            #expect(server.connectionCount == 3)
            #expect(judge.kinds == Array(repeating: NSURLAuthenticationMethodServerTrust, count: 3))
        }
    }

    @Test func `the challenge names the server, and has its chain`() async throws {
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
                #expect(SecTrustEvaluateWithError(trust, nil), "the session's roots and the host are in it")
                let subject = SecTrustGetCertificateAtIndex(trust, 0).flatMap { SecCertificateCopySubjectSummary($0) }
                #expect(subject as String? == "Test Server")
            }
        }
    }

    @Test func `a load without TLS asks nothing`() async throws {
        let judge = Judge.trusting
        try await withScenario(delegate: BothJudge(judge), reply: { _ in .ok("clear") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "clear")
            #expect(judge.all.isEmpty)
        }
    }

    @Test func `the session's method is asked first, whatever the tasks' delegates have`() async throws {
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

    @Test func `without a session's method the task's is asked, that of the task's own delegate first`() async throws {
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
            // A delegate of the task's that lacks the method leaves it to the session's delegate.
            for delegate in [nil, EventRecorder()] {
                _ = try await session.data(from: server.url("/close"), delegate: delegate)
            }
            #expect(shared.all.map(\.method) == [.task, .task])
            #expect(own.all.count == 1)
        }
    }

    @Test func `a session without a delegate asks the task's own`() async throws {
        let own = Judge.trusting
        try await withUntrustedServer(delegate: nil) { (server, session) async throws in
            let (data, _) = try await session.data(from: server.url(), delegate: TaskJudge(own))
            #expect(data == Data("done".utf8))
            #expect(own.all.map(\.method) == [.task])
        }
    }

    @Test func `a session's method of a task's own delegate is not the session's`() async throws {
        let own = Judge.trusting
        try await withUntrustedServer(delegate: nil) { (server, session) async throws in
            _ = try await session.data(from: server.url(), delegate: BothJudge(own))
            #expect(own.all.map(\.method) == [.task])
        }
    }

    @Test func `async methods are asked as well`() async throws {
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

    @Test func `tasks of every kind and form are asked about`() async throws {
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
            // The file is the caller's.
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
            #expect(server.requests.isEmpty, "nothing is sent while the app thinks")
            question.trust()
            try await recorder.completion(of: task)
            // Its creation was before it had this delegate.
            try recorder.expectOrder(of: task, "R[sD]*ME")
        }
    }
}
