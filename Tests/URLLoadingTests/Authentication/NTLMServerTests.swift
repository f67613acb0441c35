// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// NTLM against an independent server (pyspnego).
@Suite(.timeLimit(.minutes(1)))
struct NTLMServerTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withServer(
        _ interview: Interview, isSecure: Bool = false, test: (NTLMServer, URLSession) async throws -> Void
    ) async throws {
        let server = try NTLMServer.start(isSecure ? certificates.valid : nil)
        defer { server.stop() }
        try await withSession(delegate: Interviewer(interview)) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            try await test(server, session)
        }
    }

    @Test func `the right password authenticates, in clear text and over TLS`() async throws {
        for isSecure in [false, true] {
            let interview = Interview(user: "\(NTLMServer.domain)\\ada", password: "lovelace")
            try await withServer(interview, isSecure: isSecure) { (server, session) async throws in
                for place in ["ntlm", "ntlm-or-basic", "closing"] + (isSecure ? ["bound"] : []) {
                    for number in 0..<2 {
                        let (text, response) = try await session.text(URLRequest(server.url("/\(place)/\(number)")))
                        #expect(response.statusCode == 200, "\(place)")
                        #expect(text == "GET /\(place)/\(number) 0 -")
                        #expect(response.value(forHTTPHeaderField: "X-User") == "\(NTLMServer.domain)\\ada")
                    }
                }
                #expect(interview.failures.allSatisfy { $0 == 0 })
                #expect(Set(interview.methods) == ["NTLM"])
            }
        }
    }

    @Test func `a wrong password is challenged again, and without a credential the 401 is delivered`() async throws {
        let interview = Interview { _, number in
            (
                .useCredential,
                number == 0
                    ? .wrong() : URLCredential(user: "\(NTLMServer.domain)\\ada", password: "lovelace", persistence: .none)
            )
        }
        try await withServer(interview) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url("/ntlm"))).response.statusCode == 200)
            #expect(interview.failures == [0, 1])
        }
        let stubborn = Interview { challenge, _ in (.useCredential, challenge.previousFailureCount < 3 ? .wrong() : nil) }
        try await withServer(stubborn) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url("/ntlm")))
            #expect(response.statusCode == 401 && text == "who are you?")
            #expect(stubborn.failures == [0, 1, 2, 3])
        }
    }

    @Test func `a POST arrives, and unprotected pages do not use the authenticated connection`() async throws {
        let interview = Interview(user: "\(NTLMServer.domain)\\ada", password: "lovelace")
        let body = Data(ScriptedFile.pattern(100_000))
        let hash = TestCertificates.sha256(body).map { String(format: "%02x", $0) }.joined()
        try await withServer(interview) { (server, session) async throws in
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url("/ntlm/p"), method: "POST", body: body))
                #expect(response.statusCode == 200)
                #expect(text == "POST /ntlm/p \(body.count) \(hash)")
            }
            let open = try await session.text(URLRequest(server.url("/open"))).response
            #expect(open.value(forHTTPHeaderField: "X-User") == "")
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `many concurrent requests all authenticate`() async throws {
        let interview = Interview(user: "\(NTLMServer.domain)\\ada", password: "lovelace")
        try await withServer(interview) { (server, session) async throws in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<30 {
                    group.addTask { try await session.text(URLRequest(server.url("/ntlm/\(number)"))).response.statusCode }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 200, count: 30))
            #expect(interview.questions.count <= 6)
        }
    }
}
