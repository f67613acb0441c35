// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which delegate method receives a challenge.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct ChallengeRoutingTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var challenge: String
        var method: String
        /// The method that is called if the delegate has both methods.
        var both: String
        /// The method that is called if the delegate has only the session's method.
        var session: String?
        /// The method that is called if the delegate has only the task's method.
        var task: String?
        var testDescription: String { method }
    }

    static let rows = [
        Row(challenge: "Basic realm=\"r\"", method: "HTTPBasic", both: "task", session: nil, task: "task"),
        Row(
            challenge: "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"", method: "HTTPDigest", both: "task", session: nil,
            task: "task"),
        Row(challenge: "NTLM", method: "NTLM", both: "session", session: "session", task: "task"),
        Row(challenge: "Negotiate", method: "Negotiate", both: "session", session: "session", task: "task"),
    ]

    private func asked(
        _ delegate: (Interview) -> any URLSessionDelegate, by challenge: String,
        own: ((Interview) -> any URLSessionTaskDelegate)? = nil
    ) async throws -> [Interview.Question] {
        let interview = Interview(.useCredential)
        try await withScenario(
            delegate: delegate(interview), reply: { _ in .unauthorized(challenge) }
        ) { (server, session) async throws in
            let (data, response) = try await session.data(from: server.url(), delegate: own?(interview))
            #expect((response as? HTTPURLResponse)?.statusCode == 401)
            #expect(String(decoding: data, as: UTF8.self) == "who are you?")
            #expect(server.requests.count == 1)
        }
        return interview.questions
    }

    @Test(arguments: rows)
    func `the authentication method decides which delegate method is called`(row: Row) async throws {
        for (delegate, expected) in [
            ({ Interviewer($0) as any URLSessionDelegate }, row.both), ({ SessionInterviewer($0) }, row.session),
            ({ TaskInterviewer($0) }, row.task),
        ] as [((Interview) -> any URLSessionDelegate, String?)] {
            let asked = try await asked(delegate, by: row.challenge)
            #expect(asked.map(\.by) == (expected.map { [$0] } ?? []))
            #expect(asked.allSatisfy { $0.method == row.method })
        }
    }

    @Test(arguments: rows)
    func `a task delegate takes precedence over the session delegate for a method of the same kind`(row: Row) async throws {
        let own: (Interview) -> any URLSessionTaskDelegate = { TaskInterviewer($0, name: "own") }
        let besideTask = try await asked({ TaskInterviewer($0) }, by: row.challenge, own: own)
        #expect(besideTask.map(\.by) == ["own"])
        let besideBoth = try await asked({ Interviewer($0) }, by: row.challenge, own: own)
        #expect(besideBoth.map(\.by) == [row.both == "session" ? "session" : "own"])
    }

    @Test func `a challenge goes to the session delegate if the task's own delegate lacks the method`() async throws {
        let asked = try await asked({ TaskInterviewer($0) }, by: "Basic realm=\"r\"", own: { _ in SilentDelegate() })
        #expect(asked.map(\.by) == ["task"])
    }

    @Test func `a challenge describes its server, realm, response and proposed credential`() async throws {
        let interview = Interview(.useCredential)
        let isComplete = Delivered<Bool>()
        let isSecure = ScriptedVersion.current?.isSecure == true
        let look = Interview { challenge, _ in
            let response = challenge.failureResponse as? HTTPURLResponse
            isComplete(
                response?.value(forHTTPHeaderField: "X-Why") == "because" && challenge.error == nil
                    && challenge.protectionSpace.proxyType == nil && challenge.protectionSpace.serverTrust == nil
                    && challenge.protectionSpace.receivesCredentialSecurely == isSecure
            )
            return (.useCredential, nil)
        }
        for interview in [interview, look] {
            try await withScenario(
                delegate: TaskInterviewer(interview),
                reply: { _ in
                    .status(401, [("WWW-Authenticate", "Basic realm=\"the \\\"big\\\" one, r\u{E9}al\""), ("X-Why", "because")])
                }
            ) { (server, session) async throws in
                _ = try await session.data(from: server.url("/x", host: "localhost"))
                #expect(
                    interview.questions == [
                        Interview.Question(
                            by: "task", method: "HTTPBasic", realm: "the \"big\" one, r\u{E9}al", host: "localhost",
                            port: server.port,
                            kind: server.isSecure ? "https" : "http", isProxy: false, failures: 0, proposed: nil, status: 401
                        )
                    ])
            }
        }
        #expect(try await isComplete.value)
    }

    @Test func `the protection space of a TLS connection has the protocol https`() async throws {
        let certificates = try TestCertificates.shared.get()
        let interview = Interview(.ada())
        try await withScenario(
            identity: certificates.valid, delegate: Interviewer(interview), configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.questions.map(\.kind) == ["https"])
            #expect(interview.questions.map(\.by) == ["task"])
        }
    }

    @Test func `the async form of the method is called`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: AsyncInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a task with a completion handler also asks the delegate`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            let bodies = Delivered<String>()
            session.dataTask(with: server.url("/1")) { data, _, _ in bodies(String(decoding: data ?? Data(), as: UTF8.self)) }
                .resume()
            #expect(try await bodies.value == "in")
            #expect(interview.questions.count == 1)
        }
    }
}
