// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which of a server's challenges is answered first, and which one follows a rejection (RFC 9110, section 11).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct ChallengeOfferTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var lines: [String]
        /// The methods of the challenges that the app receives, in order, if it rejects all of them.
        var asked: [String]
        var realms: [String?]
        var testDescription: String { lines.joined(separator: " | ") }
    }

    private static let digest = "Digest realm=\"d\", nonce=\"n,=\", qop=\"auth,auth-int\""

    @Test(arguments: [
        Row(lines: ["Basic realm=\"b\"", digest], asked: ["HTTPDigest", "HTTPBasic"], realms: ["d", "b"]),
        Row(lines: ["Basic realm=\"b\", " + digest], asked: ["HTTPDigest", "HTTPBasic"], realms: ["d", "b"]),
        Row(lines: [digest + ", Basic realm=\"b\""], asked: ["HTTPDigest", "HTTPBasic"], realms: ["d", "b"]),
        Row(lines: ["Basic realm=\"b\", NTLM, " + digest], asked: ["NTLM", "HTTPDigest", "HTTPBasic"], realms: [nil, "d", "b"]),
        Row(lines: ["NTLM", "Basic realm=\"b\""], asked: ["NTLM", "HTTPBasic"], realms: [nil, "b"]),
        Row(lines: ["Bearer realm=\"x\", error=\"y\", Basic realm=\"b\""], asked: ["HTTPBasic"], realms: ["b"]),
        Row(
            lines: ["Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\""],
            asked: ["HTTPBasic"], realms: ["simple"]),
        Row(lines: ["BASIC REALM=plain"], asked: ["HTTPBasic"], realms: ["plain"]),
        Row(lines: ["basic   realm = \"b\" , charset=\"UTF-8\""], asked: ["HTTPBasic"], realms: ["b"]),
        Row(lines: [",, ,Basic realm=\"b\",,"], asked: ["HTTPBasic"], realms: ["b"]),
        Row(
            lines: ["Basic realm=\"Digest realm=\\\"x\\\", nonce=n\""], asked: ["HTTPBasic"],
            realms: ["Digest realm=\"x\", nonce=n"]),
        Row(
            lines: ["Digest realm=\"d\", nonce=\"n\", algorithm=WHIRLPOOL", "Basic realm=\"b\""], asked: ["HTTPBasic"],
            realms: ["b"]),
        Row(
            lines: ["Digest realm=\"d\", nonce=\"n\", qop=\"auth-conf\"", "Basic realm=\"b\""], asked: ["HTTPBasic"],
            realms: ["b"]),
        Row(lines: ["Basic realm=\"b\"", "Basic realm=\"b\""], asked: ["HTTPBasic"], realms: ["b"]),
        // The host replaces a missing realm.
        Row(lines: ["Basic"], asked: ["HTTPBasic"], realms: ["127.0.0.1"]),
        Row(lines: ["Basic charset=\"UTF-8\"", "NTLM"], asked: ["NTLM", "HTTPBasic"], realms: [nil, "127.0.0.1"]),
        Row(lines: ["Basic realm=\"\""], asked: ["HTTPBasic"], realms: [""]),
    ])
    func `the strongest challenge comes first, and the next one follows a rejection`(row: Row) async throws {
        let interview = Interview(.rejectProtectionSpace)
        try await withScenario(delegate: Interviewer(interview), reply: { _ in .unauthorized(lines: row.lines) }) {
            (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "who are you?" && response.statusCode == 401)
            #expect(interview.methods == row.asked)
            #expect(interview.questions.map(\.realm) == row.realms)
            #expect(interview.failures.allSatisfy { $0 == 0 })
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a scheme that the app did not reject is used`() async throws {
        let interview = Interview { challenge, _ in
            challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic
                ? (.useCredential, .ada()) : (.rejectProtectionSpace, nil)
        }
        let script = BasicScript()()
        try await withScenario(
            delegate: Interviewer(interview),
            reply: { $0.authorization == nil ? .unauthorized("NTLM", Self.digest, "Basic realm=\"tower\"") : script($0) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.methods == ["NTLM", "HTTPDigest", "HTTPBasic"])
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: ["MD5, SHA-256", "SHA-256, MD5", "MD5-sess, SHA-512-256, SHA-256", "MD5, TIGER"])
    func `the strongest known algorithm is used among several Digest challenges`(algorithms: String) async throws {
        let names = algorithms.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        let strongest = names.contains("SHA-512-256") ? "SHA-512-256" : names.contains("SHA-256") ? "SHA-256" : "MD5"
        let interview = Interview(.ada())
        try await withScenario(
            delegate: TaskInterviewer(interview),
            reply: { request in
                guard request.authorization == nil else { return .ok("in") }
                return .unauthorized(lines: names.map { "Digest realm=\"d\", nonce=\"n\($0)\", qop=\"auth\", algorithm=\($0)" })
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            let sent = try #require(server.requests.last?.authorization)
            #expect(DigestGate.fields(sent)["algorithm"] == strongest)
            #expect(DigestGate.fields(sent)["nonce"] == "n\(strongest)")
        }
    }

    @Test func `Basic is not tried over http after Digest was refused`() async throws {
        let interview = Interview(.wrong())
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: { _ in .unauthorized(Self.digest, "Basic realm=\"b\"") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(Set(interview.methods) == ["HTTPDigest"])
            #expect(server.requests.allSatisfy { $0.authorization?.hasPrefix("Basic") != true })
        }
    }

    @Test(.over(.http1)) func `a server that offers Digest first and Basic later does not receive the password in clear text`()
        async throws
    {
        let interview = Interview(.ada())
        let storage = URLCredentialStorage()
        for delegate in [TaskInterviewer(interview), nil] {
            try await withScenario(
                delegate: delegate, configure: { $0.urlCredentialStorage = storage },
                reply: { .unauthorized($0.authorization == nil ? Self.digest : "Basic realm=\"d\"") }
            ) { (server, session) async throws in
                storage.set(.ada(), for: .of(server, realm: "d"))
                storage.set(.ada(), for: .of(server, realm: "d", method: NSURLAuthenticationMethodHTTPDigest))
                #expect(try await session.text(server.url(user: delegate == nil ? "ada:lovelace" : nil)) == "who are you?")
                #expect(server.requests.count >= 2)
                #expect(server.requests.allSatisfy { $0.authorization?.hasPrefix("Basic") != true })
            }
        }
        #expect(Set(interview.methods) == ["HTTPDigest"])
    }

    @Test(.over(.http1)) func `Basic is not used in a known Digest space without asking the app`() async throws {
        let gate = DigestGate()
        let hasSwitchedToBasic = Watched(false)
        try await withScenario(
            reply: { request in
                if hasSwitchedToBasic.read({ $0 }) { return .unauthorized("Basic realm=\"digest realm\"") }
                return gate.script()(request)
            }
        ) { (server, session) async throws in
            let url = server.url("/", user: "Mufasa:Circle%20of%20Life")
            #expect(try await session.text(url) == "in")
            hasSwitchedToBasic.change { $0 = true }
            // The space is known for Digest; the server now replies to its proof with a Basic challenge over http.
            #expect(try await session.text(url) == "who are you?")
            #expect(server.requests.suffix(from: 2).allSatisfy { $0.authorization?.hasPrefix("Basic") != true })
        }
    }

    @Test func `a non-ASCII user and password are sent in UTF-8`() async throws {
        let interview = Interview(user: "J\u{FC}rgen", password: "\u{20AC} \u{1F511}")
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: BasicScript(user: "J\u{FC}rgen", password: "\u{20AC} \u{1F511}")()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
        }
    }

    @Test func `an empty password, or one with colons, is sent unchanged`() async throws {
        for password in ["", ":", "a:b:"] {
            let interview = Interview(user: "ada", password: password)
            try await withScenario(
                delegate: TaskInterviewer(interview), reply: BasicScript(password: password)()
            ) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "in", "'\(password)'")
            }
        }
    }
}
