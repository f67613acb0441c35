// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Challenges that the app never answers: the resource timeout still applies, and no connection outlives the session.
///
/// The request timeout is paused while a challenge waits for the app. The tests use real timers, so they check only the outcome.
@Suite(.timeLimit(.minutes(1)))
struct ChallengeSilenceTests {
    static let challenges = ["Basic realm=\"tower\"", "Digest realm=\"tower\", nonce=\"abc\", qop=\"auth\"", "NTLM"]

    /// Releases the completion handler without calling it.
    private final class UnansweringDelegate: NSObject, URLSessionTaskDelegate, Sendable {
        let asked = Delivered<Bool>()

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) { asked(true) }
    }

    /// The source of the challenge.
    enum Origin: CaseIterable, Sendable { case server, proxy, tunnel }

    /// The parts of a server or proxy that the tests use.
    private struct Scene {
        var url: URL
        var session: URLSession
        var requestCount: () -> Int
        var waitForAllClosed: () async throws -> Void
    }

    private func withScene(
        _ origin: Origin, _ challenge: String, delegate: any URLSessionDelegate,
        configure: (URLSessionConfiguration) -> Void, test: (Scene) async throws -> Void
    ) async throws {
        switch origin {
        case .server, .proxy:
            let reply: ScriptedReply = origin == .server ? .unauthorized(challenge) : .proxyUnauthorized(challenge)
            try await withScriptedServer(reply: { _ in reply }) { (server) async throws in
                try await withSession(delegate: delegate) {
                    if origin == .proxy {
                        $0.connectionProxyDictionary = proxyDictionary(http: server.port)
                        $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    }
                    configure($0)
                } test: { (session) async throws in
                    let url = origin == .server ? server.url() : try #require(URL(string: "http://origin.invalid/"))
                    try await test(
                        Scene(
                            url: url, session: session, requestCount: { server.requests.count },
                            waitForAllClosed: { try await server.waitForAllClosed() }))
                }
            }
        case .tunnel:
            let head = "HTTP/1.1 407 Who\r\nProxy-Authenticate: \(challenge)\r\nContent-Length: 0\r\n\r\n"
            try await withTunnelProxy({ _ in .say(head) }) { (proxy) async throws in
                try await withSession(delegate: delegate) {
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                    configure($0)
                } test: { (session) async throws in
                    let url = try #require(URL(string: "https://origin.invalid/"))
                    try await test(
                        Scene(
                            url: url, session: session, requestCount: { proxy.demands.count },
                            waitForAllClosed: { try await proxy.waitForAllClosed() }))
                }
            }
        }
    }

    @Test(arguments: Origin.allCases)
    func `without an answer the resource timeout ends the task, and closes a tunnel's connection`(origin: Origin) async throws {
        for challenge in Self.challenges {
            try await withGrowingTimes { (scale) async throws in
                let pending = Delivered<Interview.Reply>()
                let interview = Interview(whenever: { _, _, reply in pending(reply) })
                try await withScene(
                    origin, challenge, delegate: Interviewer(interview),
                    configure: { $0.timeoutIntervalForResource = 0.3 * scale }
                ) { (scene) async throws in
                    let error = await expectFailure(.timedOut, in: challenge) { try await scene.session.data(from: scene.url) }
                    #expect(error?.failingURL == scene.url)
                    // A connection whose 401 or 407 was read completely is reusable, and stays open.
                    if origin == .tunnel { try await scene.waitForAllClosed() }
                    // This answer is too late to have an effect.
                    let count = scene.requestCount()
                    pending.all.first?(.useCredential, .ada())
                    #expect(count <= 1 && scene.requestCount() == count, "\(challenge)")
                    scene.session.invalidateAndCancel()
                    try await scene.waitForAllClosed()
                }
                return interview.questions.count == 1
            }
        }
    }

    @Test(arguments: Origin.allCases)
    func `releasing the completion handler counts as no answer`(origin: Origin) async throws {
        for challenge in Self.challenges.prefix(2) {
            try await withGrowingTimes { (scale) async throws in
                let delegate = UnansweringDelegate()
                try await withScene(
                    origin, challenge, delegate: delegate, configure: { $0.timeoutIntervalForResource = 0.3 * scale }
                ) { (scene) async throws in
                    await expectFailure(.timedOut, in: challenge) { try await scene.session.data(from: scene.url) }
                    scene.session.invalidateAndCancel()
                    try await scene.waitForAllClosed()
                }
                return delegate.asked.all.count == 1
            }
        }
    }

    @Test func `the app is asked for another task after the task with the unanswered challenge is cancelled`() async throws {
        let interview = Interview(whenever: { challenge, number, reply in
            if number > 0 { reply(.useCredential, .ada()) }
        })
        let script = BasicScript()()
        try await withScenario(delegate: TaskInterviewer(interview), reply: script) { (server, session) async throws in
            let silent = session.dataTask(with: server.url("/a"))
            silent.resume()
            try await interview.asked(times: 1)
            // The second task waits for the answer to the first task's challenge, until the first task is cancelled.
            async let text = session.text(server.url("/b"))
            _ = try await server.waitForRequests(2)
            silent.cancel()
            #expect(try await text == "in")
            #expect(interview.questions.count == 2)
        }
    }
}
