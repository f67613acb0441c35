// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Credentials do not follow a redirect to another origin.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CredentialRedirectTests {
    private static let ada = basic("ada", "lovelace")

    /// Runs a test with a second server, in addition to the scenario's server.
    private func withTwo(
        delegate: (any URLSessionDelegate)? = nil,
        first: @escaping @Sendable (_ request: RecordedRequest, _ second: String) -> ScriptedReply,
        second: @escaping @Sendable (RecordedRequest) -> ScriptedReply,
        test: (_ first: ScriptedServer, _ second: ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        let other = try await ScriptedServer.start(reply: second)
        try await withScenario(delegate: delegate, reply: { first($0, other.url("").absoluteString) }) {
            (server, session) async throws in
            try await test(server, other, session)
        }
        try await other.close()
    }

    @Test func `an accepted credential is not sent to the origin of a redirect`() async throws {
        let interview = Interview(.ada())
        try await withTwo(
            delegate: TaskInterviewer(interview),
            first: { request, origin in BasicScript()({ _ in .redirect(302, to: "\(origin)/b") })(request) },
            second: { _ in .ok("elsewhere") }
        ) { (first, second, session) async throws in
            #expect(try await session.text(first.url("/a")) == "elsewhere")
            #expect(first.requests.map(\.authorization) == [nil, Self.ada])
            #expect(second.requests.map(\.authorization) == [nil])
            #expect(second.requests[0].values(of: "Referer").allSatisfy { !$0.contains("ada") })
        }
    }

    @Test func `the other origin is challenged separately, without a proposed credential of the first origin`() async throws {
        let interview = Interview { challenge, _ in
            challenge.previousFailureCount == 0 && challenge.proposedCredential == nil
                ? (.useCredential, .ada()) : (.cancelAuthenticationChallenge, nil)
        }
        try await withTwo(
            delegate: TaskInterviewer(interview),
            first: { request, origin in BasicScript()({ _ in .redirect(307, to: "\(origin)/b") })(request) },
            second: BasicScript()({ _ in .ok("both") })
        ) { (first, second, session) async throws in
            #expect(try await session.text(first.url("/a")) == "both")
            #expect(interview.questions.map(\.port) == [first.port, second.port])
            #expect(second.requests.map(\.authorization) == [nil, Self.ada])
        }
    }

    @Test func `user info of the first URL does not answer the second origin's challenge`() async throws {
        try await withTwo(
            first: { _, origin in .redirect(302, to: "\(origin)/b") }, second: BasicScript()()
        ) { (first, second, session) async throws in
            #expect(try await session.text(first.url("/a", user: "ada:lovelace")) == "who are you?")
            #expect(second.requests.map(\.authorization) == [nil])
            #expect(second.requests.allSatisfy { !$0.headText.contains("lovelace") })
        }
    }

    @Test func `a request's own Authorization is not sent again when redirects lead back to its origin`() async throws {
        let origin = Watched("")
        try await withTwo(
            first: { request, origin in request.path == "/1" ? .redirect(302, to: "\(origin)/2") : .ok("back") },
            second: { _ in .redirect(302, to: origin.read { $0 } + "/3") }
        ) { (first, second, session) async throws in
            origin.change { $0 = first.url("").absoluteString }
            let request = URLRequest(first.url("/1"), headers: ["Authorization": "Bearer mine"])
            #expect(try await session.text(request).text == "back")
            #expect(first.requests.map(\.authorization) == ["Bearer mine", nil])
            #expect(second.requests.map(\.authorization) == [nil])
        }
    }

    @Test func `a challenge is answered again when redirects lead back to its origin`() async throws {
        let origin = Watched("")
        let interview = Interview(.ada(.none))
        try await withTwo(
            delegate: TaskInterviewer(interview),
            first: { request, origin in
                BasicScript()({ $0.path == "/1" ? .redirect(302, to: "\(origin)/2") : .ok("back") })(request)
            },
            second: { _ in .redirect(302, to: origin.read { $0 } + "/3") }
        ) { (first, second, session) async throws in
            origin.change { $0 = first.url("").absoluteString }
            #expect(try await session.text(first.url("/1")) == "back")
            #expect(first.requests.map(\.authorization) == [nil, Self.ada, nil, Self.ada])
            #expect(second.requests.map(\.authorization) == [nil])
            #expect(interview.failures == [0, 0])
        }
    }

    @Test func `a redirect within the protection space keeps the credential`() async throws {
        let interview = Interview(.ada())
        try await withScenario(
            delegate: TaskInterviewer(interview),
            reply: BasicScript()({ $0.path == "/a/1" ? .redirect(302, to: "2") : .ok("in") })
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a/1")) == "in")
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, Self.ada])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a redirect to a protected page is followed and authenticated`() async throws {
        let interview = Interview(.ada())
        let script = BasicScript()()
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: { $0.path == "/open" ? .redirect(302, to: "/a/in") : script($0) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/open")) == "in")
            #expect(server.requests.map(\.authorization) == [nil, nil, Self.ada])
        }
    }
}
