// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which credentials are sent before a challenge, and which must not be.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct PreemptiveCredentialTests {
    private static let ada = basic("ada", "lovelace")

    @Test func `later requests within the space send the credential preemptively`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            for path in ["/a/b", "/a/c", "/a/", "/a/d/e?f=/../"] { #expect(try await session.text(server.url(path)) == "in") }
            #expect(server.requests.map(\.target) == ["/a/b", "/a/b", "/a/c", "/a/", "/a/d/e?f=/../"])
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, Self.ada, Self.ada, Self.ada])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `outside the space's path a challenge of the same realm is answered without asking the app`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            for path in ["/a/b", "/b/c", "/"] { #expect(try await session.text(server.url(path)) == "in") }
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, nil, Self.ada, nil, Self.ada])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `an unprotected part of the server does not receive the credential`() async throws {
        try await withScenario(
            delegate: TaskInterviewer(Interview(.ada())),
            reply: { $0.path.hasPrefix("/in/") ? BasicScript()()($0) : .ok("open") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/in/1")) == "in")
            for path in ["/", "/in", "/inn/", "/in2/1", "/In/1", "//in/1"] {
                _ = try await session.text(server.url(path))
                #expect(server.requests.last?.authorization == nil, "\(path)")
            }
        }
    }

    @Test func `the app is asked again for another realm of the same server`() async throws {
        let interview = Interview { challenge, _ in
            challenge.protectionSpace.realm == "tower"
                ? (.useCredential, .ada()) : (.useCredential, URLCredential(user: "bob", password: "x", persistence: .forSession))
        }
        let tower = BasicScript()()
        let cellar = BasicScript(user: "bob", password: "x", realm: "cellar")()
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: { $0.path.hasPrefix("/t/c/") ? cellar($0) : tower($0) }
        ) { (server, session) async throws in
            for path in ["/t/1", "/t/c/1", "/t/c/2", "/t/2"] {
                #expect(try await session.text(server.url(path)) == "in", "\(path)")
            }
            #expect(interview.questions.map(\.realm) == ["tower", "cellar"])
            #expect(interview.failures == [0, 0])
            #expect(interview.questions.map(\.proposed) == [nil, nil])
            // The deeper space is known by now.
            #expect(server.requests.suffix(2).map(\.authorization) == [basic("bob", "x"), Self.ada])
        }
    }

    @Test func `the app is asked again for another port, another host name and https`() async throws {
        let certificates = try TestCertificates.shared.get()
        let interview = Interview(.ada())
        let secure = try await ScriptedServer.start(identity: certificates.valid, reply: BasicScript()())
        let other = try await ScriptedServer.start(reply: BasicScript()())
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.tlsTrustRoots = [certificates.root] }, reply: BasicScript()()
        ) { (server, session) async throws in
            for url in [server.url(), other.url(), server.url(host: "localhost"), secure.url()] {
                #expect(try await session.text(url) == "in")
            }
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, nil, Self.ada])
            #expect(other.requests.map(\.authorization) == [nil, Self.ada])
            #expect(secure.requests.map(\.authorization) == [nil, Self.ada])
            #expect(interview.questions.map(\.proposed) == [nil, nil, nil, nil])
        }
        try await other.close()
        try await secure.close()
    }

    @Test func `a credential without persistence is asked for again`() async throws {
        let interview = Interview(.ada(.none))
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(server.url()) == "in") }
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, nil, Self.ada])
            #expect(interview.failures == [0, 0])
            #expect(interview.questions.map(\.proposed) == [nil, nil])
        }
    }

    @Test func `another session does not know the credential`() async throws {
        try await withScenario(delegate: TaskInterviewer(Interview(.ada())), reply: BasicScript()()) {
            (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            try await withSession { (session) async throws in
                #expect(try await session.text(server.url()) == "who are you?")
                #expect(server.requests.last?.authorization == nil)
            }
        }
    }

    @Test func `after a password change the app is asked again, and the old credential is proposed`() async throws {
        let password = Watched("lovelace")
        let interview = Interview { _, number in
            (.useCredential, number == 0 ? .ada() : URLCredential(user: "ada", password: "king", persistence: .forSession))
        }
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: { BasicScript(password: password.read { $0 })()($0) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            password.change { $0 = "king" }
            #expect(try await session.text(server.url()) == "in")
            #expect(try await session.text(server.url()) == "in")
            #expect(
                server.requests.map(\.authorization) == [nil, Self.ada, Self.ada, basic("ada", "king"), basic("ada", "king")])
            #expect(interview.questions.map(\.proposed) == [nil, "ada:lovelace"])
            #expect(interview.failures == [0, 1])
        }
    }

    @Test func `the app is asked again after a reset`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            await session.reset()
            #expect(try await session.text(server.url()) == "in")
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, nil, Self.ada])
            #expect(interview.questions.count == 2)
        }
    }

    @Test func `user info of a URL is remembered like other credentials`() async throws {
        try await withScenario(reply: BasicScript()()) { (server, session) async throws in
            #expect(try await session.text(server.url(user: "ada:lovelace")) == "in")
            #expect(try await session.text(server.url()) == "in")
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, Self.ada])
        }
    }

    @Test func `a request's own Authorization is replaced only when it is refused`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            let request = URLRequest(server.url(), headers: ["Authorization": "Bearer mine"])
            let text = try await session.text(request).text
            #expect(server.requests[2].values(of: "Authorization") == ["Bearer mine"])
            // The request's own field is replaced when the server refuses it; no request has two field lines.
            #expect(text == "in")
            #expect(server.requests.map { $0.values(of: "Authorization").count } == [0, 1, 1, 1])
        }
    }
}
