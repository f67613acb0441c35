// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Time that a load waits for other loads or for the app does not count toward the request timeout.
///
/// Uses real timers: only the outcome is checked.
@Suite(.timeLimit(.minutes(2)))
struct PausedTimeoutTests {
    // MARK: Queued tasks

    @Test func `queued tasks do not time out, however often connections are made`() async throws {
        let slow = ScriptedReply(
            [.pause(milliseconds: 20)] + ScriptedReply.ok("in", [("Connection", "close")]).effects + [.close])
        try await withGrowingTimes { scale in
            let errors = Watched<[any Error]>([])
            try await withScenario(
                configure: { $0.timeoutIntervalForRequest = 0.4 * scale }, reply: { _ in slow }
            ) { (server, session) async throws in
                let url = server.url()
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<300 {
                        group.addTask {
                            do { _ = try await session.data(from: url) } catch { errors.change { $0.append(error) } }
                        }
                    }
                }
            }
            return errors.read(\.isEmpty)
        }
    }

    /// The server accepts connections but never answers the TLS handshake.
    ///
    /// An HTTP/2 connection may serve all queued loads, so the time counts for all; an HTTP/1.1 connection serves only one load.
    @Test(arguments: [true, false])
    func `connection time counts only for the loads that the connection may serve`(isHTTP1: Bool) async throws {
        try await withGrowingTimes { scale in
            let ends = Delivered<URLError.Code?>()
            var countThen = 0
            try await withScenario(
                configure: {
                    $0.timeoutIntervalForRequest = 0.4 * scale
                    $0.httpMaximumConnectionsPerHost = 2
                    if isHTTP1 { $0.connectionOptions.httpVersions = .http1Only }
                },
                greeting: { _ in [.stall] }, reply: { _ in [] }
            ) { (server, session) async throws in
                let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
                for _ in 0..<6 { session.dataTask(with: url) { _, _, error in ends((error as? URLError)?.code) }.resume() }
                try await afterTimeout(0.6 * scale)
                countThen = ends.all.count
                try await ends.count(reaches: 6)
            }
            return countThen == (isHTTP1 ? 2 : 6) && ends.all.allSatisfy { $0 == .timedOut }
        }
    }

    @Test func `a low-priority task is served although higher ones keep coming`() async throws {
        try await withScenario(configure: { $0.httpMaximumConnectionsPerHost = 1 }, reply: { _ in .ok("in") }) {
            (server, session) async throws in
            let isLowDone = Watched(false)
            let first = server.url("/first")
            let low = session.dataTask(with: server.url("/low")) { _, _, _ in isLowDone.change { $0 = true } }
            low.priority = URLSessionTask.lowPriority
            // Each of three lanes starts another task when its task ends, so high-priority tasks are always queued.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lane in 0..<3 {
                    group.addTask {
                        for number in 0..<400 where isLowDone.read({ !$0 }) {
                            let done = Delivered<Void>()
                            let task = session.dataTask(with: first) { _, _, _ in done(()) }
                            task.priority = URLSessionTask.highPriority
                            task.resume()
                            if lane == 0, number == 5 { low.resume() }
                            try await done.value
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(isLowDone.read { $0 })
        }
    }

    // MARK: The app delays its answer

    enum Question: CaseIterable, Sendable { case redirect, response, challenge, caching, trust }

    /// Delays its answer to one kind of question until the test allows it; answers others at once.
    private final class SlowDelegate: NSObject, URLSessionDataDelegate, URLSessionTaskDelegate, Sendable {
        /// Delivers true when the question is asked, or false if the load ends first.
        let asked = Delivered<Bool>()
        let ended = Delivered<(any Error)?>()
        private let subject: Question
        private let isDone = Watched(false)

        init(about subject: Question) { self.subject = subject }

        func answer() { isDone.change { $0 = true } }

        private func delayAnswer(about question: Question) async {
            guard question == subject else { return }
            asked(true)
            _ = try? await isDone.value { $0 ? true : nil }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? {
            await delayAnswer(about: .redirect)
            return request
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            await delayAnswer(about: .response)
            return .allow
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            await delayAnswer(about: .challenge)
            return (.useCredential, .ada())
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (
            URLSession.AuthChallengeDisposition, URLCredential?
        ) {
            await delayAnswer(about: .trust)
            return (.performDefaultHandling, nil)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse response: CachedURLResponse
        ) async -> CachedURLResponse? {
            await delayAnswer(about: .caching)
            return response
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended(error)
            asked(false)
        }
    }

    @Test(arguments: [Question.redirect, .response, .challenge, .caching])
    func `the request timeout does not run while the app answers`(question: Question) async throws {
        try await withGrowingTimes { scale in
            let challenge = BasicScript()
            let slowDelegate = SlowDelegate(about: question)
            var isOnHold = false
            try await withScenario(
                delegate: slowDelegate, configure: { $0.timeoutIntervalForRequest = 0.2 * scale },
                reply: { request in
                    switch question {
                    case .redirect where request.path == "/a": .redirect(302, to: "/b")
                    case .challenge: challenge()(request)
                    default: .ok("in", [("Cache-Control", "max-age=60")])
                    }
                }
            ) { (server, session) async throws in
                session.dataTask(with: server.url("/a")).resume()
                guard try await slowDelegate.asked.value else { return }
                try await afterTimeout(0.6 * scale)
                slowDelegate.answer()
                isOnHold = try await slowDelegate.ended.value == nil
            }
            return isOnHold
        }
    }

    /// A question about a connection pauses the timeouts of all loads that wait for the connection.
    @Test func `the request timeout does not run while the app checks a server's certificate`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withGrowingTimes { scale in
            let slowDelegate = SlowDelegate(about: .trust)
            let texts = Watched<[String?]>([])
            try await withScenario(
                identity: certificates.valid, delegate: slowDelegate,
                configure: {
                    $0.timeoutIntervalForRequest = 0.2 * scale
                    $0.tlsTrustRoots = [certificates.root]
                    $0.httpMaximumConnectionsPerHost = 2
                },
                reply: { _ in .ok("in") }
            ) { (server, session) async throws in
                let url = server.url(host: "localhost")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            let text = try? await session.text(url)
                            texts.change { $0.append(text) }
                            slowDelegate.asked(false)
                        }
                    }
                    if try await slowDelegate.asked.value { try await afterTimeout(0.6 * scale) }
                    slowDelegate.answer()
                    try await group.waitForAll()
                }
            }
            return texts.read { $0 } == ["in", "in", "in", "in"]
        }
    }

    @Test func `the resource timeout runs while the app answers`() async throws {
        let slowDelegate = SlowDelegate(about: .redirect)
        try await withScenario(
            delegate: slowDelegate, configure: { $0.timeoutIntervalForResource = 0.3 }, reply: { _ in .redirect(302, to: "/b") }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: server.url("/a")) }
            slowDelegate.answer()
        }
    }

    /// Waits in real time: returns when a load with this request timeout, in seconds, has timed out.
    private func afterTimeout(_ seconds: Double) async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = seconds }, reply: { _ in [.stall] }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: server.url()) }
        }
    }

}
