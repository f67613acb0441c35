// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// NTLM authenticates a connection for one user.
@Suite(.timeLimit(.minutes(1)))
struct NTLMAuthenticationTests {
    private let interview = Interview(user: "ada", password: "lovelace")

    @Test func `all legs use one connection, and later requests reuse it`() async throws {
        let script = NTLMScript()
        try await withScenario(delegate: Interviewer(interview), reply: script.script()) { (server, session) async throws in
            for number in 0..<3 { #expect(try await session.text(server.url("/in/\(number)")) == "in as ada") }
            #expect(interview.questions.map(\.by) == ["session"])
            #expect(interview.questions.map(\.realm) == [nil])
            let messages = script.legs.filter { $0.message > 0 }
            #expect(messages.map(\.message) == [1, 3])
            #expect(Set(messages.map(\.connection)).count == 1)
            #expect(Set(script.legs.suffix(3).map(\.connection)) == Set(messages.map(\.connection)))
        }
    }

    @Test func `a domain before the user, and a principal name, are sent correctly`() async throws {
        for (user, name) in [("TOWER\\ada", "ada"), ("ada@tower.example", "ada@tower.example")] {
            let script = NTLMScript(users: [name])
            try await withScenario(delegate: Interviewer(Interview(user: user, password: "x")), reply: script.script()) {
                (server, session) async throws in
                #expect(try await session.text(server.url()) == "in as \(name)")
            }
        }
    }

    @Test func `the body of a POST arrives completely`() async throws {
        let body = Data(ScriptedFile.pattern(100_000))
        let script = NTLMScript()
        try await withScenario(delegate: Interviewer(interview), reply: script.script { request, _ in .ok(request.body) }) {
            (server, session) async throws in
            #expect(try await session.data(for: URLRequest(server.url(), method: "POST", body: body)).0 == body)
            #expect(try await session.data(for: URLRequest(server.url(), method: "POST", body: body)).0 == body)
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a request without the credential does not use an authenticated connection`() async throws {
        let script = NTLMScript()
        try await withScenario(
            delegate: Interviewer(interview), reply: { $0.path.hasPrefix("/open") ? .ok("open") : script.script()($0) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/in/1")) == "in as ada")
            #expect(try await session.text(server.url("/open")) == "open")
            let owned = Set(script.owners.keys)
            let connection = try #require(server.requests.last?.connection)
            #expect(!owned.contains(connection))
        }
    }

    @Test func `another user of the same server gets separate connections`() async throws {
        let script = NTLMScript(users: ["ada", "bob"])
        let ask = Interview { challenge, number in
            (.useCredential, URLCredential(user: number == 0 ? "ada" : "bob", password: "x", persistence: .none))
        }
        try await withScenario(delegate: Interviewer(ask), reply: script.script()) { (server, session) async throws in
            #expect(try await session.text(server.url("/in/1")) == "in as ada")
            #expect(try await session.text(server.url("/in/2")) == "in as bob")
            #expect(Set(script.owners.values) == ["ada", "bob"])
        }
    }

    @Test func `another session gets separate connections`() async throws {
        let script = NTLMScript(users: ["ada", "bob"])
        try await withScenario(delegate: Interviewer(interview), reply: script.script()) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in as ada")
            try await withSession(delegate: Interviewer(Interview(user: "bob", password: "x"))) { (session) async throws in
                #expect(try await session.text(server.url()) == "in as bob")
            }
        }
    }

    @Test func `many concurrent requests all authenticate their own connections`() async throws {
        let script = NTLMScript()
        try await withScenario(delegate: Interviewer(interview), reply: script.script()) { (server, session) async throws in
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<40 { group.addTask { try await session.text(server.url("/in/\(number)")) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "in as ada", count: 40))
            #expect(interview.questions.count <= 6)
            // No connection mixes the legs of two requests.
            for (_, legs) in Dictionary(grouping: script.legs.filter { $0.message > 0 }, by: \.connection) {
                #expect(legs.map(\.message) == [1, 3])
            }
        }
    }

    @Test func `a wrong user is challenged again, on any connection`() async throws {
        let script = NTLMScript()
        let ask = Interview { _, number in
            (.useCredential, URLCredential(user: number < 2 ? "eve" : "ada", password: "x", persistence: .forSession))
        }
        try await withScenario(delegate: Interviewer(ask), reply: script.script()) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in as ada")
            #expect(ask.failures == [0, 1, 2])
            #expect(ask.questions.map(\.proposed) == [nil, "eve:x", "eve:x"])
        }
    }

    @Test func `a server that closes between the legs fails the task, and no leg moves to another connection`() async throws {
        let script = NTLMScript(breaksBetweenLegs: true)
        let ask = Interview { _, number in (.useCredential, number < 5 ? .ada() : nil) }
        try await withScenario(delegate: Interviewer(ask), reply: script.script()) { (server, session) async throws in
            do {
                let (_, response) = try await session.text(URLRequest(server.url()))
                #expect(response.statusCode == 401)
            } catch let error as URLError {
                #expect(error.code == .networkConnectionLost)
            }
            #expect(server.requests.count <= 30)
            #expect(script.owners.isEmpty)
        }
    }

    @Test func `a new connection authenticates without asking the app after the authenticated one is closed`() async throws {
        let script = NTLMScript()
        try await withScenario(
            delegate: Interviewer(interview), reply: script.script { _, user in ScriptedReply.ok("in as \(user)").then(.close) }
        ) { (server, session) async throws in
            for number in 0..<3 {
                #expect(try await session.text(server.url("/in/\(number)")) == "in as ada")
                let last = try #require(server.requests.last)
                try await server.waitForClose(last.connection)
            }
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a new connection authenticates without asking the app after all authenticated ones are closed`() async throws {
        let script = NTLMScript()
        let count = 4
        let early = Watched<Set<Int>>([])
        let reply = script.script { request, user in
            if request.path == "/late", early.read({ $0.contains(request.connection) }) { return [.close] }
            if request.path == "/early" { early.change { _ = $0.insert(request.connection) } }
            return .ok("in as \(user)").after(.gate(request.path))
        }
        try await withScenario(delegate: Interviewer(interview), reply: reply) { (server, session) async throws in
            // From here on the requests share the accepted credential.
            server.open("/first")
            #expect(try await session.text(server.url("/first")) == "in as ada")
            let texts = Delivered<Bool>()
            for _ in 0..<count { session.dataTask(with: server.url("/early")) { texts($2 == nil) }.resume() }
            try await server.reached("/early", times: count)
            server.open("/early")
            server.open("/late")
            try await texts.count(reaches: count)
            let (asked, connections) = (interview.questions.count, server.connectionCount)
            #expect(try await session.text(server.url("/late")) == "in as ada")
            #expect(interview.questions.count == asked)
            #expect(early.read(\.count) == count)
            #expect(server.connectionCount == connections + 1)
        }
    }

    @Test func `a server that authenticates each request is answered without asking the app`() async throws {
        let script = NTLMScript(authenticatesEachRequest: true)
        try await withScenario(delegate: Interviewer(interview), reply: script.script()) { (server, session) async throws in
            for number in 0..<20 { #expect(try await session.text(server.url("/in/\(number)")) == "in as ada") }
            #expect(interview.failures == [0])
            // Connections are reused where possible.
            #expect(server.connectionCount <= 10)
        }
    }

    @Test func `the loss of the last NTLM message does not count as a refusal`() async throws {
        let script = NTLMScript(losses: 1)
        try await withScenario(delegate: Interviewer(interview), reply: script.script()) { (server, session) async throws in
            #expect(try await session.text(server.url("/in/1")) == "in as ada")
            #expect(interview.failures == [0])
            #expect(try await session.text(server.url("/in/2")) == "in as ada")
            #expect(interview.failures == [0])
        }
    }

    @Test func `at the limit a connection that replaces an authenticated one authenticates without asking the app`() async throws
    {
        let script = NTLMScript()
        try await withScenario(
            delegate: Interviewer(interview), configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: script.script { request, user in
                request.path == "/in/first" ? .ok("in as \(user)") : ScriptedReply.ok("in as \(user)").then(.close)
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/in/first")) == "in as ada")
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<10 { group.addTask { try await session.text(server.url("/in/\(number)")) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "in as ada", count: 10))
            #expect(interview.failures == [0])
        }
    }

    @Test func `hostile NTLM messages from the server end with the 401`() async throws {
        let rows = [
            "NTLM", "NTLM =", "NTLM AAAA", "NTLM TlRMTVNTUAACAAAA",
            "NTLM " + Data("NTLMSSP\0\u{2}\0\0\0".utf8).base64EncodedString(),
            "NTLM " + Data(Array("NTLMSSP\0".utf8) + [2, 0, 0, 0] + Array(repeating: 0xFF, count: 44)).base64EncodedString(),
        ]
        for row in rows {
            let ask = Interview { _, number in (.useCredential, number < 3 ? .ada() : nil) }
            try await withScenario(
                delegate: Interviewer(ask), reply: { .unauthorized($0.authorization == nil ? "NTLM" : row) }
            ) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "who are you?", "\(row)")
                #expect(server.requests.count < 20)
            }
        }
    }
}
