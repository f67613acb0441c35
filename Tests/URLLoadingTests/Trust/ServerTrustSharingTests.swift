// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A connection that one delegate trusted is not used for tasks whose own delegate did not trust the server.
@Suite(.timeLimit(.minutes(1)))
struct ServerTrustSharingTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withServer(
        delegate: (any URLSessionDelegate)? = nil, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: certificates.selfSigned, delegate: delegate, configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { .ok("secret", [("Etag", "\"\($0.order)\"")]) }, test: test
        )
    }

    @Test func `a connection that only one delegate accepted is not used for tasks of another`() async throws {
        let (trusting, cautious) = (Judge.trusting, Judge.saying(.performDefaultHandling))
        try await withServer { (server, session) async throws in
            let own = TaskJudge(trusting)
            _ = try await session.data(from: server.url("/1"), delegate: own)
            await expectFailure(.serverCertificateUntrusted) {
                try await session.data(from: server.url("/2"), delegate: TaskJudge(cautious))
            }
            // Without a delegate to ask, the system decides.
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/3")) }
            _ = try await session.data(from: server.url("/4"), delegate: TaskJudge(trusting))
            #expect(server.requests.map(\.path) == ["/1", "/4"])
            #expect(server.requests.map(\.connection).count == 2)
            #expect(Set(server.requests.map(\.connection)).count == 2)
            #expect(cautious.all.count == 1)
            #expect(trusting.all.count == 2)
        }
    }

    @Test func `each delegate is asked about a server that the roots do not accept, on a connection of its own`() async throws {
        let (trusting, cautious) = (Judge.silent, Judge.silent)
        try await withServer { (server, session) async throws in
            let outcome = Delivered<Int?>()
            for (path, judge) in [("/trusting", trusting), ("/cautious", cautious)] {
                let task = session.dataTask(with: server.url(path)) { outcome(($2 as? URLError)?.code.rawValue) }
                task.delegate = TaskJudge(judge)
                task.resume()
            }
            let questions = [try await trusting.question(0), try await cautious.question(0)]
            questions[0].trust()
            questions[1].answer(.cancelAuthenticationChallenge, nil)
            try await outcome.count(reaches: 2)
            #expect(outcome.all.contains(nil) && outcome.all.contains(URLError.cancelled.rawValue))
            #expect(server.requests.map(\.path) == ["/trusting"])
        }
    }

    @Test func `a task without a delegate does not use a connection that a task's own delegate trusted`() async throws {
        let judge = Judge.trusting
        let shared = Judge.saying(.performDefaultHandling)
        try await withServer(delegate: TaskJudge(shared)) { (server, session) async throws in
            // After this, the session knows that its delegate has no session-level challenge method.
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/first")) }
            _ = try await session.data(from: server.url("/own"), delegate: TaskJudge(judge))
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/shared")) }
            #expect(shared.all.count == 2)
            #expect(server.requests.map(\.path) == ["/own"])
        }
    }

    @Test func `a connection that a task's own delegate trusted is not shared before the session's is probed`() async throws {
        final class NewJudge: NSObject, URLSessionTaskDelegate {
            let judge = Judge.saying(.performDefaultHandling)

            func urlSession(
                _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {
                judge.ask(.task, task, challenge, completionHandler)
            }
        }
        let shared = NewJudge()
        try await withServer(delegate: shared) { (server, session) async throws in
            _ = try await session.data(from: server.url("/own"), delegate: TaskJudge(.trusting))
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/shared")) }
            #expect(shared.judge.all.count == 1)
            #expect(server.requests.map(\.path) == ["/own"])
        }
    }

    @Test func `a connection that the session-level method trusted is shared by all tasks`() async throws {
        let judge = Judge.trusting
        try await withServer(delegate: SessionJudge(judge)) { (server, session) async throws in
            let delegates: [(any URLSessionTaskDelegate)?] = [nil, TaskJudge(.silent), EventRecorder()]
            for delegate in delegates {
                _ = try await session.data(from: server.url(), delegate: delegate)
            }
            #expect(server.connectionCount == 1)
            #expect(judge.all.count == 1)
        }
    }

    @Test func `a connection authenticated by NTLM is still limited to the delegate that trusted it`() async throws {
        let script = NTLMScript()
        let trusting = Judge {
            if $0.kind == NSURLAuthenticationMethodServerTrust { $0.trust() } else { $0.answer(.useCredential, .ada()) }
        }
        let cautious = Judge.saying(.performDefaultHandling)
        try await withScenario(identity: certificates.selfSigned, reply: script.script()) { (server, session) async throws in
            let own = TaskJudge(trusting)
            for _ in 0..<2 {
                let (data, _) = try await session.data(from: server.url(), delegate: own)
                #expect(String(decoding: data, as: UTF8.self) == "in as ada")
            }
            // The session shares the credential, but not the trust.
            for delegate in [TaskJudge(cautious), nil] {
                await expectFailure(.serverCertificateUntrusted) {
                    try await session.data(from: server.url(), delegate: delegate)
                }
            }
            #expect(cautious.all.count == 1)
            #expect(server.requests.count == 4)
            _ = try await session.data(from: server.url(), delegate: own)
            #expect(script.owners.count == 1)
        }
    }

    @Test func `trust in one session does not apply to another`() async throws {
        let judge = Judge.trusting
        try await withServer(delegate: SessionJudge(judge)) { (server, session) async throws in
            #expect(try await session.text(server.url("/mine")) == "secret")
            try await withSession { (other) async throws in
                await expectFailure(.serverCertificateUntrusted) { try await other.data(from: server.url("/theirs")) }
            }
            #expect(server.requests.map(\.path) == ["/mine"])
        }
    }
}
