// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Many tasks of one session in one protection space.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct SharedSpaceTests {
    private func loadMany(_ count: Int, _ server: ScriptedServer, _ session: URLSession) async throws -> [String] {
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<count { group.addTask { try await session.text(server.url("/in/\(number)")) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test func `all tasks succeed, and the app is asked at most once per concurrent connection`() async throws {
        let interview = Interview(.ada())
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.httpMaximumConnectionsPerHost = 6 }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await loadMany(60, server, session) == Array(repeating: "in", count: 60))
            #expect((1...6).contains(interview.questions.count))
            #expect(interview.failures.allSatisfy { $0 == 0 })
        }
    }

    @Test func `Digest uses no nonce count twice, and every server proof is correct`() async throws {
        var rules = DigestGate.Rules()
        rules.proof = .right
        let gate = DigestGate(rules)
        let interview = Interview(user: "Mufasa", password: "Circle of Life")
        try await withScenario(delegate: TaskInterviewer(interview), reply: gate.script()) { (server, session) async throws in
            #expect(try await loadMany(30, server, session) == Array(repeating: "in", count: 30))
            #expect(try await loadMany(60, server, session) == Array(repeating: "in", count: 60))
            #expect(gate.problems == [])
            #expect(interview.failures.allSatisfy { $0 == 0 })
            #expect(interview.questions.count <= 6)
        }
    }

    @Test func `with Digest nonces that soon become stale, all tasks succeed, and the app is asked once`() async throws {
        var rules = DigestGate.Rules()
        rules.usesPerNonce = 5
        let gate = DigestGate(rules)
        let interview = Interview(user: "Mufasa", password: "Circle of Life")
        try await withScenario(delegate: TaskInterviewer(interview), reply: gate.script()) { (server, session) async throws in
            #expect(try await session.text(server.url("/in/first")) == "in")
            #expect(try await loadMany(60, server, session) == Array(repeating: "in", count: 60))
            #expect(gate.problems == [])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a wrong answer to one task does not fail the others`() async throws {
        let interview = Interview { _, number in (.useCredential, number == 0 ? .wrong() : .ada()) }
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            #expect(try await loadMany(30, server, session) == Array(repeating: "in", count: 30))
            #expect(interview.questions.count <= 7)
        }
    }
}
