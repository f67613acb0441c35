// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The effect of each answer to a challenge.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct ChallengeAnswerTests {
    private func withInterview(
        _ interview: Interview, configure: (URLSessionConfiguration) -> Void = { _ in },
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply = BasicScript()(),
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(delegate: TaskInterviewer(interview), configure: configure, reply: reply, test: test)
    }

    @Test func `the same request is sent again with the credential`() async throws {
        let interview = Interview(.ada())
        try await withInterview(interview) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url("/a?b=c"), headers: ["X-Mine": "1"]))
            #expect(text == "in" && response.statusCode == 200)
            #expect(server.requests.map(\.target) == ["/a?b=c", "/a?b=c"])
            #expect(server.requests.map { $0.header("X-Mine") } == ["1", "1"])
            #expect(server.requests.map(\.authorization) == [nil, basic("ada", "lovelace")])
            #expect(server.connectionCount == 1)
            #expect(interview.failures == [0])
        }
    }

    @Test func `answering without a credential delivers the 401`() async throws {
        for disposition in [URLSession.AuthChallengeDisposition.useCredential, .rejectProtectionSpace] {
            let interview = Interview(disposition)
            try await withInterview(interview) { (server, session) async throws in
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text == "who are you?" && response.statusCode == 401)
                #expect(server.requests.count == 1 && interview.questions.count == 1)
            }
        }
    }

    @Test func `an answer without a credential does not use the stored credential`() async throws {
        let storage = URLCredentialStorage()
        let interview = Interview(.useCredential)
        try await withInterview(interview, configure: { $0.urlCredentialStorage = storage }) { (server, session) async throws in
            storage.set(.ada(), for: .of(server))
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.count == 1)
            #expect(interview.questions.map(\.proposed) == ["ada:lovelace"])
        }
    }

    @Test func `the stored credential is proposed, and the delegate may use another`() async throws {
        let storage = URLCredentialStorage()
        let interview = Interview(.ada())
        try await withInterview(interview, configure: { $0.urlCredentialStorage = storage }) { (server, session) async throws in
            storage.set(.wrong(), for: .of(server))
            #expect(try await session.text(server.url()) == "in")
            #expect(server.requests.map(\.authorization) == [nil, basic("ada", "lovelace")])
            #expect(interview.questions.map(\.proposed) == ["ada:byron"])
        }
    }

    @Test func `cancelling the challenge cancels the task`() async throws {
        let interview = Interview(.cancelAuthenticationChallenge)
        try await withInterview(interview) { (server, session) async throws in
            let error = await expectFailure(.cancelled) { try await session.data(from: server.url()) }
            #expect(error?.failingURL == server.url())
            #expect(server.requests.count == 1 && interview.questions.count == 1)
        }
    }

    @Test func `cancelling the challenge abandons a 401 whose body does not end`() async throws {
        let fields = [("WWW-Authenticate", "Basic realm=\"tower\""), ("Content-Length", "10")]
        let stalled = ScriptedReply.begun(401, fields, "no").then(.stall)
        try await withInterview(
            Interview(.cancelAuthenticationChallenge), configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { $0.order == 0 ? stalled : .ok("next") }
        ) { (server, session) async throws in
            await expectFailure(.cancelled) { try await session.data(from: server.url()) }
            try await server.waitForAbandoning(0)
            #expect(try await session.text(server.url()) == "next")
        }
    }

    @Test func `a refused credential is proposed again, with a higher failure count`() async throws {
        let interview = Interview { _, number in (.useCredential, number < 3 ? .wrong() : .ada()) }
        try await withInterview(interview) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.failures == [0, 1, 2, 3])
            #expect(interview.questions.map(\.proposed) == [nil, "ada:byron", "ada:byron", "ada:byron"])
            #expect(interview.questions.allSatisfy { $0.status == 401 })
        }
    }

    @Test func `default handling after a refused credential delivers the 401`() async throws {
        let interview = Interview { _, number in number == 0 ? (.useCredential, .wrong()) : (.performDefaultHandling, nil) }
        try await withInterview(interview) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.count == 2 && interview.failures == [0, 1])
        }
    }

    @Test(arguments: ["Basic realm=\"tower\"", "Digest realm=\"tower\", nonce=\"abc\", qop=\"auth\"", "NTLM"])
    func `a password that is always wrong ends with the 401`(challenge: String) async throws {
        // NTLM authenticates a connection, which needs HTTP/1.1.
        guard challenge != "NTLM" || ScriptedVersion.current?.isMultiplexed != true else { return }
        let interview = Interview(.wrong())
        try await withInterview(interview, reply: { _ in .unauthorized(challenge) }) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "who are you?" && response.statusCode == 401)
            #expect(interview.failures == Array(0..<interview.questions.count))
            #expect((2...50).contains(interview.questions.count))
            #expect(server.requests.count <= 101)
        }
    }

    @Test func `a nonce that is always stale ends with the 401, and the app is asked only after refusals`() async throws {
        let interview = Interview(.ada())
        try await withInterview(
            interview, reply: { .unauthorized("Digest realm=\"tower\", nonce=\"n\($0.order)\", qop=\"auth\", stale=true") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.count <= 101)
            #expect(interview.failures == Array(0..<interview.questions.count))
        }
    }

    @Test func `the delegate may answer late, and from another thread`() async throws {
        let pending = Delivered<Interview.Reply>()
        let interview = Interview(whenever: { _, _, reply in pending(reply) })
        try await withInterview(interview) { (server, session) async throws in
            async let text = session.text(server.url())
            let reply = try await pending.value
            // Other loads are not delayed.
            let (other, _) = try await session.text(
                URLRequest(server.url(), headers: ["Authorization": basic("ada", "lovelace")]))
            #expect(other == "in")
            Thread.detachNewThread { reply(.useCredential, .ada()) }
            #expect(try await text == "in")
        }
    }

    @Test func `only the first call of the completion handler counts`() async throws {
        let interview = Interview(whenever: { _, _, reply in
            reply(.useCredential, .ada())
            reply(.cancelAuthenticationChallenge, nil)
            reply(.useCredential, .wrong())
        })
        try await withInterview(interview) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.questions.count == 1 && server.requests.count == 2)
        }
    }

    @Test func `cancelling a task during its challenge ends the task once, and a later answer is ignored`() async throws {
        let pending = Delivered<Interview.Reply>()
        let interview = Interview(whenever: { _, _, reply in pending(reply) })
        try await withInterview(interview) { (server, session) async throws in
            let ends = Delivered<URLError.Code?>()
            let task = session.dataTask(with: server.url()) { _, _, error in ends((error as? URLError)?.code) }
            task.resume()
            let reply = try await pending.value
            task.cancel()
            #expect(try await ends.value == .cancelled)
            reply(.useCredential, .ada())
            // The session remains usable.
            let (text, _) = try await session.text(URLRequest(server.url(), headers: ["Authorization": basic("ada", "lovelace")]))
            #expect(text == "in")
            #expect(ends.all == [.cancelled])
            #expect(server.requests.filter { $0.authorization != nil }.count == 1)
        }
    }

    @Test func `invalidating the session while a delegate has a challenge cancels the task`() async throws {
        let pending = Delivered<Interview.Reply>()
        let interview = Interview(whenever: { _, _, reply in pending(reply) })
        try await withInterview(interview) { (server, session) async throws in
            let ends = Delivered<URLError.Code?>()
            session.dataTask(with: server.url()) { _, _, error in ends((error as? URLError)?.code) }.resume()
            let reply = try await pending.value
            session.invalidateAndCancel()
            #expect(try await ends.value == .cancelled)
            reply(.useCredential, .ada())
            try await server.waitForAllClosed()
            #expect(server.requests.count == 1)
        }
    }

    @Test func `the request is sent over a new connection when the server closes before the delegate answers`() async throws {
        let pending = Delivered<Interview.Reply>()
        let interview = Interview(whenever: { _, _, reply in pending(reply) })
        let script = BasicScript()()
        try await withInterview(
            interview, reply: { $0.order == 0 ? script($0).then(.close) : script($0) }
        ) { (server, session) async throws in
            async let text = session.text(server.url())
            let reply = try await pending.value
            try await server.waitForClose(0)
            reply(.useCredential, .ada())
            #expect(try await text == "in")
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `a user name that Basic cannot encode delivers the 401`() async throws {
        let interview = Interview(user: "a:b", password: "c")
        try await withInterview(interview) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.count == 1 && interview.questions.count == 1)
        }
    }

    @Test func `line breaks in a credential are not sent`() async throws {
        for challenge in ["Basic realm=\"tower\"", "Digest realm=\"tower\", nonce=\"n\", qop=\"auth\""] {
            let interview = Interview { _, number in
                number == 0
                    ? (.useCredential, URLCredential(user: "a\r\nX-Evil: 1", password: "b\r\nX-Evil: 2", persistence: .none))
                    : (.useCredential, nil)
            }
            try await withInterview(interview, reply: { _ in .unauthorized(challenge) }) { (server, session) async throws in
                _ = try? await session.data(from: server.url())
                #expect(server.requests.allSatisfy { $0.header("X-Evil") == nil })
            }
        }
    }

    @Test func `a long 401, a chunked one, and one that ends with the connection are all handled`() async throws {
        let challenge = ("WWW-Authenticate", "Basic realm=\"tower\"")
        let forms: [ScriptedReply] = [
            [
                .head(401, [challenge, ("Content-Length", "\(64 * 65_536)")]),
                .content(Array(repeating: 0x20, count: 65_536), times: 64), .end(trailers: []),
            ],
            .status(401, [challenge], body: ""),
            [.head(401, [challenge, ("Connection", "close")], "until the end", ends: true), .close],
            .bare(401, [challenge, ("Transfer-Encoding", "chunked")]),
            [.head(401, [challenge, ("Transfer-Encoding", "chunked")], "abc", ends: true)],
        ]
        for (index, form) in forms.enumerated() {
            let interview = Interview(.ada())
            try await withInterview(interview, reply: { $0.authorization == nil ? form : .ok("in") }) {
                (server, session) async throws in
                #expect(try await session.text(server.url()) == "in", "form \(index)")
                #expect(interview.questions.count == 1)
            }
        }
    }
}
