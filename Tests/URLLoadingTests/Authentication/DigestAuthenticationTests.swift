// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Digest (RFC 7616) against a server that verifies every response.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DigestAuthenticationTests {
    private let interview = Interview(user: "Mufasa", password: "Circle of Life")

    private func withGate(
        _ rules: DigestGate.Rules, _ interview: Interview? = nil,
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply = { _ in .ok("in") },
        test: (ScriptedServer, URLSession, DigestGate) async throws -> Void
    ) async throws {
        let gate = DigestGate(rules)
        try await withScenario(
            delegate: TaskInterviewer(interview ?? self.interview), reply: gate.script(reply)
        ) { (server, session) async throws in
            try await test(server, session, gate)
            #expect(gate.problems == [])
        }
    }

    private func rules(_ change: (inout DigestGate.Rules) -> Void) -> DigestGate.Rules {
        var rules = DigestGate.Rules()
        change(&rules)
        return rules
    }

    // Session keys require a `qop` (RFC 7616, section 3.4.2).
    static let algorithmsAndProtections: [(String?, String?)] =
        ([nil, "MD5", "SHA-256"] as [String?]).map { ($0, nil) }
        + ([nil, "MD5", "MD5-sess", "SHA-256", "SHA-256-sess"] as [String?]).flatMap { algorithm in
            ["auth", "auth,auth-int", "auth-int"].map { (algorithm, $0) }
        }

    @Test(arguments: algorithmsAndProtections)
    func `each algorithm and quality of protection is correct for methods, queries and bodies`(
        algorithm: String?, qop: String?
    ) async throws {
        let rules = rules {
            $0.algorithm = algorithm
            $0.qop = qop
        }
        try await withGate(rules, reply: { .ok($0.body) }) { (server, session, gate) async throws in
            let body = Data(ScriptedFile.pattern(5_000))
            let post = URLRequest(server.url("/a/b%20c?d=%22e%22&f"), method: "POST", body: body)
            #expect(try await session.data(for: post).0 == body)
            #expect(try await session.text(URLRequest(server.url("/g"), method: "DELETE")).response.statusCode == 200)
            #expect(try await session.data(for: post).0 == body)
            #expect(server.requests.count == 4)
            #expect(gate.proofs.count == 3)
            #expect(gate.proofs.allSatisfy { $0["qop"] == (qop == "auth-int" ? "auth-int" : qop == nil ? nil : "auth") })
            if qop != nil { #expect(gate.proofs.map { $0["nc"] } == ["00000001", "00000002", "00000003"]) }
            #expect(interview.questions.map(\.realm) == ["digest realm"])
        }
    }

    @Test func `auth-int covers the body of a file upload`() async throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(3_000_000)
        let file = try directory.write(content, to: "body")
        try await withGate(rules { $0.qop = "auth-int" }, reply: { .ok("\($0.bodyLength)") }) {
            (server, session, gate) async throws in
            for _ in 0..<2 {
                let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "PUT"), fromFile: file)
                #expect(String(decoding: data, as: UTF8.self) == "\(content.count)")
            }
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `the user name is hashed if the challenge requests it`() async throws {
        for algorithm in [nil, "SHA-256"] as [String?] {
            let rules = rules {
                $0.hashesUser = true
                $0.algorithm = algorithm
            }
            try await withGate(rules) { (server, session, gate) async throws in
                #expect(try await session.text(server.url()) == "in")
                #expect(server.requests.allSatisfy { !$0.headText.contains("Mufasa") })
            }
        }
    }

    @Test func `a realm, a user and a path may contain quotes and commas`() async throws {
        let rules = rules {
            $0.user = "a\"b\\c, d=e"
            $0.opaque = nil
        }
        let interview = Interview(user: rules.user, password: rules.password)
        try await withGate(rules, interview) { (server, session, gate) async throws in
            #expect(try await session.text(server.url("/x,y=%22z%22;q?a=b,c=d")) == "in")
        }
    }

    @Test func `a stale nonce is replaced without asking the app`() async throws {
        try await withGate(rules { $0.usesPerNonce = 2 }) { (server, session, gate) async throws in
            for number in 0..<7 { #expect(try await session.text(server.url("/\(number)")) == "in") }
            #expect(gate.staleAnswers == 3)
            #expect(interview.questions.count == 1)
            #expect(server.requests.count == 1 + 7 + 3)
            #expect(
                gate.proofs.map { $0["nc"] } == [
                    "00000001", "00000002", "00000001", "00000002", "00000001", "00000002", "00000001",
                ])
        }
    }

    @Test(arguments: [true, false])
    func `nonces that serve once cost one exchange more, whether they are called stale or not`(saysStale: Bool) async throws {
        let rules = rules {
            $0.usesPerNonce = 1
            $0.saysStale = saysStale
        }
        try await withGate(rules) { (server, session, gate) async throws in
            for number in 1...4 {
                let (text, response) = try await session.text(URLRequest(server.url("/\(number)")))
                #expect(text == "in" && response.statusCode == 200)
                #expect(server.requests.count == 2 * number)
            }
            #expect(interview.failures == [0])
        }
    }

    @Test func `a redirect and a retry do not use up the password`() async throws {
        let rules = rules {
            $0.usesPerNonce = 1
            $0.saysStale = false
        }
        let wasBusy = Watched(false)
        try await withGate(
            rules,
            reply: { request in
                if request.path == "/1" { return .redirect(302, to: "/2") }
                guard !wasBusy.read({ $0 }) else { return .ok("in") }
                wasBusy.change { $0 = true }
                return [.close]
            }
        ) { (server, session, gate) async throws in
            #expect(try await session.text(server.url("/1")) == "in")
            #expect(interview.failures == [0])
        }
    }

    @Test func `concurrent loads get through with nonces that serve once`() async throws {
        let rules = rules {
            $0.usesPerNonce = 1
            $0.saysStale = false
        }
        try await withGate(rules) { (server, session, gate) async throws in
            #expect(try await session.text(server.url("/first")) == "in")
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<20 { group.addTask { try await session.text(server.url("/\(number)")) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "in", count: 20))
            #expect(interview.failures == [0])
        }
    }

    @Test func `a password that was changed is asked for after one more exchange`() async throws {
        let gates = Watched([DigestGate(DigestGate.Rules())])
        let interview = Interview { challenge, number in
            (
                .useCredential,
                URLCredential(user: "Mufasa", password: number == 0 ? "Circle of Life" : "new", persistence: .forSession)
            )
        }
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: { request in gates.read { $0.last }?.script()(request) ?? .status(500) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            gates.change { $0.append(DigestGate(DigestGate.Rules(password: "new", nonceName: "other"))) }
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.failures == [0, 1])
            #expect(server.requests.count == 5)
        }
    }

    @Test func `the body is sent again after a stale nonce`() async throws {
        try await withGate(
            rules {
                $0.usesPerNonce = 1
                $0.qop = "auth-int"
            }, reply: { .ok($0.body) }
        ) { (server, session, gate) async throws in
            for text in ["one", "two"] {
                let request = URLRequest(server.url(), method: "POST", body: Data(text.utf8))
                #expect(try await session.text(request).text == text)
            }
            #expect(gate.staleAnswers == 1 && interview.questions.count == 1)
        }
    }

    @Test func `nextnonce is used for the next request, with its count starting at one`() async throws {
        try await withGate(rules { $0.namesNext = true }) { (server, session, gate) async throws in
            for number in 0..<3 { #expect(try await session.text(server.url("/\(number)")) == "in") }
            #expect(gate.proofs.map { $0["nonce"] } == ["nonce1/==", "nonce2/==", "nonce3/=="])
            #expect(gate.proofs.map { $0["nc"] } == ["00000001", "00000001", "00000001"])
            #expect(server.requests.count == 4)
        }
    }

    @Test func `a correct Authentication-Info is accepted, and a wrong one fails the load`() async throws {
        try await withGate(rules { $0.proof = .right }) { (server, session, gate) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "in") }
        }
        try await withGate(rules { $0.proof = .wrong }) { (server, session, gate) async throws in
            await expectFailure(.badServerResponse) { try await session.data(from: server.url()) }
        }
    }

    @Test func `a wrong password is challenged again`() async throws {
        let interview = Interview { _, number in
            (
                .useCredential,
                URLCredential(user: "Mufasa", password: number < 2 ? "wrong" : "Circle of Life", persistence: .forSession)
            )
        }
        try await withGate(rules { _ in }, interview) { (server, session, gate) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.failures == [0, 1, 2])
            #expect(interview.questions.map(\.proposed) == [nil, "Mufasa:wrong", "Mufasa:wrong"])
        }
    }

    @Test func `the protection space is the whole server, or the paths in the domain parameter`() async throws {
        for (domain, expected) in [(nil, true), ("/a /b", false), ("http://other.example/", false)] as [(String?, Bool)] {
            let gate = DigestGate(rules { $0.domain = domain })
            try await withScenario(
                delegate: TaskInterviewer(interview), reply: { $0.path.hasPrefix("/open") ? .ok("open") : gate.script()($0) }
            ) { (server, session) async throws in
                #expect(try await session.text(server.url("/a/1")) == "in")
                #expect(try await session.text(server.url("/open/1")) == "open")
                #expect((server.requests.last?.authorization != nil) == expected, "\(domain ?? "none")")
                #expect(server.requests.allSatisfy { $0.values(of: "Authorization").count <= 1 })
                #expect(gate.problems == [])
            }
        }
    }

    @Test func `the Authentication-Info of a stored response is not checked against later requests`() async throws {
        try await withGate(
            rules {
                $0.proof = .right
                $0.namesNext = true
            },
            reply: { request in
                guard request.header("If-None-Match") == nil else {
                    return .bare(304, [("ETag", "\"e\"")])
                }
                let fields = request.path == "/fresh" ? ("Cache-Control", "max-age=1000") : ("Cache-Control", "no-cache")
                return .ok("in", [fields, ("ETag", "\"e\"")])
            }
        ) { (server, session, gate) async throws in
            for path in ["/fresh", "/fresh", "/checked", "/checked", "/checked"] {
                #expect(try await session.text(server.url(path)) == "in")
            }
            #expect(server.requests.map(\.path) == ["/fresh", "/fresh", "/checked", "/checked", "/checked"])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a credential is remembered if the response that accepts it is a 304`() async throws {
        let ask = Interview(.ada())
        try await withScenario(
            delegate: TaskInterviewer(ask),
            reply: { request in
                if request.path == "/a/1", request.authorization == nil, request.order > 0 {
                    return .unauthorized("Basic realm=\"tower\"")
                }
                if request.header("If-None-Match") != nil { return .bare(304, [("ETag", "\"e\"")]) }
                return .ok("in", [("Cache-Control", "no-cache"), ("ETag", "\"e\"")])
            }
        ) { (server, session) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url("/a/1")) == "in") }
            #expect(server.requests.map { $0.authorization != nil } == [false, false, true, true])
            #expect(ask.questions.count == 1)
        }
    }

    @Test func `a redirected request gets its own Digest response`() async throws {
        try await withGate(rules { _ in }, reply: { $0.path == "/1" ? .redirect(302, to: "/2?x") : .ok("in") }) {
            (server, session, gate) async throws in
            #expect(try await session.text(server.url("/1")) == "in")
            #expect(gate.proofs.map { $0["uri"] } == ["/1", "/2?x"])
            #expect(gate.proofs.map { $0["nc"] } == ["00000001", "00000002"])
        }
    }

    @Test func `a retry over a new connection gets a new Digest response`() async throws {
        let isBroken = Watched(false)
        try await withGate(
            rules { _ in },
            reply: { request in
                guard request.path == "/2", !isBroken.read({ $0 }) else { return .ok("in") }
                isBroken.change { $0 = true }
                return [.close]
            }
        ) { (server, session, gate) async throws in
            #expect(try await session.text(server.url("/1")) == "in")
            #expect(try await session.text(server.url("/2")) == "in")
            #expect(gate.proofs.map { $0["nc"] } == ["00000001", "00000002", "00000003"])
        }
    }

    @Test func `hostile challenges end with the 401`() async throws {
        let rows = [
            "Digest", "Digest realm", "Digest nonce=\"\"", "Digest realm=\"r\", nonce=\"n\", qop=\"\u{0}\"",
            "Digest realm=\"r, nonce=\"n\"", "Digest realm=\"r\", nonce=\"\\",
            "Digest " + String(repeating: "a=b, ", count: 2_000),
            "Digest realm=\"\(String(repeating: "x", count: 20_000))\", nonce=\"\(String(repeating: "n", count: 20_000))\", qop=auth",
        ]
        for row in rows where !row.contains("\u{0}") {
            let interview = Interview { _, number in (.useCredential, number < 3 ? .ada() : nil) }
            try await withScenario(delegate: TaskInterviewer(interview), reply: { _ in .unauthorized(row) }) {
                (server, session) async throws in
                #expect(try await session.text(server.url()) == "who are you?", "\(row.prefix(60))")
            }
        }
    }
}
