// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Answers to server-trust challenges that come late, twice, from another thread, or never.
@Suite(.timeLimit(.minutes(1)))
struct ServerTrustTimingTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withJudge(
        _ judge: Judge, configure: (URLSessionConfiguration) -> Void = { _ in }, delegate: (any URLSessionDelegate)? = nil,
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: certificates.selfSigned, delegate: delegate ?? SessionJudge(judge), configure: configure,
            reply: { _ in .ok("secret") }, test: test
        )
    }

    @Test func `an answer may come late, and other loads continue`() async throws {
        let judge = Judge.silent
        try await withJudge(judge) { (server, session) async throws in
            try await withScriptedServer(reply: { _ in .ok("other") }) { (other) async throws in
                async let text = session.text(server.url())
                let question = try await judge.question(0)
                for _ in 0..<3 { #expect(try await session.text(other.url()) == "other") }
                question.trust()
                #expect(try await text == "secret")
                #expect(judge.all.count == 1)
            }
        }
    }

    /// The request timeout is paused, because the load does not wait for its server.
    @Test func `without an answer the resource timeout ends the task`() async throws {
        try await withGrowingTimes { (scale) async throws in
            let judge = Judge.silent
            try await withJudge(judge, configure: { $0.timeoutIntervalForResource = 0.3 * scale }) {
                (server, session) async throws in
                await expectFailure(.timedOut) { try await session.data(from: server.url()) }
                try await server.waitForAllClosed()
                // This answer comes too late.
                judge.all.first?.trust()
                #expect(server.requests.isEmpty)
            }
            return judge.all.count == 1
        }
    }

    @Test func `only the first of two answers counts`() async throws {
        let judge = Judge { question in
            question.trust()
            question.answer(.cancelAuthenticationChallenge, nil)
        }
        try await withJudge(judge) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
        }
        let other = Judge { question in
            question.answer(.cancelAuthenticationChallenge, nil)
            question.trust()
        }
        try await withJudge(other) { (server, session) async throws in
            await expectFailure(.cancelled) { try await session.data(from: server.url()) }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `an answer after the end of the task has no effect`() async throws {
        let judge = Judge.trusting
        try await withJudge(judge) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            judge.all[0].answer(.cancelAuthenticationChallenge, nil)
            #expect(try await session.text(server.url()) == "secret")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `an answer may come from any thread`() async throws {
        let judge = Judge { question in Thread.detachNewThread { question.trust() } }
        try await withJudge(judge) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
        }
        let queue = Judge { question in DispatchQueue.global().async { question.trust() } }
        try await withJudge(queue) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
        }
    }

    @Test func `releasing the completion handler counts as no answer`() async throws {
        // A `Judge` would retain the completion handler; this delegate does not.
        final class UnansweringDelegate: NSObject, URLSessionDelegate {
            func urlSession(
                _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {}
        }
        try await withJudge(.silent, configure: { $0.timeoutIntervalForResource = 0.3 }, delegate: UnansweringDelegate()) {
            (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: server.url()) }
            try await server.waitForAllClosed()
        }
    }

    @Test func `cancelling a task during its challenge ends it at once`() async throws {
        let judge = Judge.silent
        try await withJudge(judge) { (server, session) async throws in
            let outcome = Delivered<URLError?>()
            let task = session.dataTask(with: server.url()) { outcome($2 as? URLError) }
            task.resume()
            let question = try await judge.question(0)
            task.cancel()
            #expect(try await outcome.value?.code == .cancelled)
            question.trust()
            try await server.waitForAllClosed()
            #expect(server.requests.isEmpty)
            #expect(outcome.all.count == 1)
            #expect(judge.all.count == 1)
        }
    }

    @Test func `cancelling a task during its challenge asks the next task that waits for the connection`() async throws {
        for usesTaskMethod in [false, true] {
            let judge = Judge.silent
            let delegate: any URLSessionDelegate = usesTaskMethod ? TaskJudge(judge) : SessionJudge(judge)
            try await withJudge(judge, configure: { $0.httpMaximumConnectionsPerHost = 1 }, delegate: delegate) {
                (server, session) async throws in
                let (first, second) = (Delivered<URLError?>(), Delivered<String>())
                let tasks = [
                    session.dataTask(with: server.url("/first")) { first($2 as? URLError) },
                    session.dataTask(with: server.url("/second")) { data, _, error in
                        second(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(String(describing: error))")
                    },
                ]
                tasks[0].resume()
                let question = try await judge.question(0)
                tasks[1].resume()
                tasks[0].cancel()
                #expect(try await first.value?.code == .cancelled)
                let again = try await judge.question(1)
                // The first task's answer does not apply to the second.
                question.answer(.cancelAuthenticationChallenge, nil)
                again.trust()
                #expect(try await second.value == "secret")
                #expect(server.requests.map(\.path) == ["/second"])
                if usesTaskMethod {
                    #expect(question.task == tasks[0].taskIdentifier)
                    #expect(again.task == tasks[1].taskIdentifier)
                }
            }
        }
    }

    @Test func `a session cancelled during a challenge ends`() async throws {
        let judge = Judge.silent
        let delegate = BothJudge(judge)
        try await withJudge(judge, delegate: delegate) { (server, session) async throws in
            let outcome = Delivered<URLError?>()
            session.dataTask(with: server.url()) { outcome($2 as? URLError) }.resume()
            let question = try await judge.question(0)
            session.invalidateAndCancel()
            #expect(try await outcome.value?.code == .cancelled)
            #expect(try await delegate.invalidated.value)
            question.trust()
            try await server.waitForAllClosed()
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a session finished during a challenge waits for the answer`() async throws {
        let judge = Judge.silent
        let delegate = BothJudge(judge)
        try await withJudge(judge, delegate: delegate) { (server, session) async throws in
            let outcome = Delivered<Data?>()
            session.dataTask(with: server.url()) { data, _, _ in outcome(data) }.resume()
            let question = try await judge.question(0)
            session.finishTasksAndInvalidate()
            question.trust()
            #expect(try await outcome.value == Data("secret".utf8))
            #expect(try await delegate.invalidated.value)
        }
    }

    @Test func `a server that closes during the challenge ends the task, and the answer has no effect`() async throws {
        let judge = Judge.silent
        try await withJudge(judge) { (server, session) async throws in
            let outcome = Delivered<URLError?>()
            session.dataTask(with: server.url()) { outcome($2 as? URLError) }.resume()
            let question = try await judge.question(0)
            try await server.close()
            let code = try await outcome.value?.code
            #expect(code == .secureConnectionFailed || code == .networkConnectionLost)
            question.trust()
            #expect(judge.all.count == 1)
        }
    }
}
