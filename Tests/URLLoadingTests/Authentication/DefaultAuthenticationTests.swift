// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How a challenge is answered without a delegate: by the URL's user info, then by the credential storage.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DefaultAuthenticationTests {
    static let delegates: [(String, @Sendable () -> (any URLSessionDelegate)?)] = [
        ("no delegate", { nil }), ("a delegate without the methods", { SilentDelegate() }),
        ("a delegate that leaves it to the default", { TaskInterviewer(Interview(.performDefaultHandling)) }),
    ]

    @Test func `a 401 without an answer is delivered with its body`() async throws {
        for (name, delegate) in Self.delegates {
            try await withScenario(delegate: delegate(), reply: BasicScript()()) { (server, session) async throws in
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text == "who are you?", "\(name)")
                #expect(response.statusCode == 401)
                #expect(response.value(forHTTPHeaderField: "WWW-Authenticate") == "Basic realm=\"tower\"")
                #expect(server.requests.map(\.authorization) == [nil])
            }
        }
    }

    @Test func `the URL's user info answers, percent-decoded, and is not on the request line`() async throws {
        for (name, delegate) in Self.delegates {
            try await withScenario(
                delegate: delegate(), reply: BasicScript(user: "a@b", password: "p:\u{E9} w")()
            ) { (server, session) async throws in
                #expect(try await session.text(server.url("/x", user: "a%40b:p%3A%C3%A9%20w")) == "in", "\(name)")
                #expect(server.requests.map(\.target) == ["/x", "/x"])
                for request in server.requests {
                    #expect(request.header("Host") == "127.0.0.1:\(server.port)")
                    #expect(request.header("Referer") == nil)
                }
            }
        }
    }

    @Test func `refused user info is not retried endlessly`() async throws {
        try await withScenario(reply: BasicScript()()) { (server, session) async throws in
            let (_, response) = try await session.text(URLRequest(server.url(user: "ada:wrong")))
            #expect(response.statusCode == 401)
            #expect(server.requests.map(\.authorization) == [nil, basic("ada", "wrong")])
        }
    }

    @Test func `user info also answers Digest`() async throws {
        let gate = DigestGate()
        try await withScenario(reply: gate.script()) { (server, session) async throws in
            #expect(try await session.text(server.url("/d?x=1", user: "Mufasa:Circle%20of%20Life")) == "in")
            #expect(gate.problems == [])
        }
    }

    @Test func `the default credential of the storage answers, or its only credential`() async throws {
        for isDefault in [true, false] {
            for (name, delegate) in Self.delegates {
                let storage = URLCredentialStorage()
                try await withScenario(
                    delegate: delegate(), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
                ) { (server, session) async throws in
                    if isDefault {
                        storage.set(URLCredential(user: "b", password: "x", persistence: .forSession), for: .of(server))
                        storage.setDefaultCredential(.ada(), for: .of(server))
                    } else {
                        storage.set(.ada(), for: .of(server))
                    }
                    #expect(try await session.text(server.url()) == "in", "\(name)")
                    #expect(server.requests.map(\.authorization) == [nil, basic("ada", "lovelace")])
                }
            }
        }
    }

    @Test func `of several stored credentials, the first one is tried`() async throws {
        let storage = URLCredentialStorage()
        try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
            (server, session) async throws in
            storage.set(.ada(), for: .of(server))
            storage.set(URLCredential(user: "b", password: "x", persistence: .forSession), for: .of(server))
            #expect(try await session.text(server.url()) == "in")
        }
    }

    @Test func `of several stored credentials without a default, no credential is tried`() async throws {
        let storage = URLCredentialStorage()
        try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
            (server, session) async throws in
            let first = URLCredential(user: "a", password: "x", persistence: .forSession)
            storage.set(first, for: .of(server))
            storage.set(.ada(), for: .of(server))
            storage.set(URLCredential(user: "b", password: "x", persistence: .forSession), for: .of(server))
            storage.remove(first, for: .of(server))
            #expect(try await session.text(server.url()) == "who are you?")
        }
    }

    @Test func `a credential of another space is not used`() async throws {
        let storage = URLCredentialStorage()
        try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
            (server, session) async throws in
            storage.set(.ada(), for: .of(server, realm: "Tower"))
            storage.set(.ada(), for: .of(server, realm: nil))
            storage.set(.ada(), for: .of(server, port: server.port + 1))
            storage.set(.ada(), for: .of(server, host: "localhost"))
            storage.set(.ada(), for: .of(server, method: NSURLAuthenticationMethodHTTPDigest))
            storage.set(
                .ada(),
                for: URLProtectionSpace(
                    proxyHost: "127.0.0.1", port: server.port, type: "http", realm: "tower",
                    authenticationMethod: NSURLAuthenticationMethodHTTPBasic))
            storage.set(
                .ada(),
                for: URLProtectionSpace(
                    host: "127.0.0.1", port: server.port, protocol: server.isSecure ? "http" : "https", realm: "tower",
                    authenticationMethod: NSURLAuthenticationMethodHTTPBasic))
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a session without a storage looks up no credential`() async throws {
        try await withScenario(configure: { $0.urlCredentialStorage = nil }, reply: BasicScript()()) {
            (server, session) async throws in
            #expect(session.configuration.urlCredentialStorage == nil)
            #expect(try await session.text(server.url()) == "who are you?")
        }
    }

    @Test func `a refused stored credential is not retried`() async throws {
        let storage = URLCredentialStorage()
        try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
            (server, session) async throws in
            storage.set(.wrong(), for: .of(server))
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.map(\.authorization) == [nil, basic("ada", "byron")])
        }
    }

    @Test func `the storage answers exactly once if the user info of the URL is refused`() async throws {
        let old = basic("ada", "byron")
        for (name, delegate) in Self.delegates {
            for isRight in [true, false] {
                let storage = URLCredentialStorage()
                try await withScenario(
                    delegate: delegate(), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
                ) { (server, session) async throws in
                    storage.set(isRight ? .ada() : .wrong(), for: .of(server))
                    #expect(try await session.text(server.url(user: "ada:byron")) == (isRight ? "in" : "who are you?"), "\(name)")
                    #expect(server.requests.map(\.authorization) == [nil, old] + (isRight ? [basic("ada", "lovelace")] : []))
                }
            }
        }
        let storage = URLCredentialStorage()
        try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript(password: "king")()) {
            (server, session) async throws in
            storage.set(.ada(), for: .of(server))
            #expect(try await session.text(server.url(user: "ada:byron")) == "who are you?")
            #expect(server.requests.map(\.authorization) == [nil, old, basic("ada", "lovelace")])
        }
    }

    @Test func `the storage answers if the credential that the session remembers is refused`() async throws {
        let password = Watched("lovelace")
        for (name, delegate) in Self.delegates {
            password.change { $0 = "lovelace" }
            let storage = URLCredentialStorage()
            try await withScenario(
                delegate: delegate(), configure: { $0.urlCredentialStorage = storage },
                reply: { BasicScript(password: password.read { $0 })()($0) }
            ) { (server, session) async throws in
                storage.set(.ada(), for: .of(server))
                #expect(try await session.text(server.url()) == "in")
                password.change { $0 = "king" }
                storage.set(URLCredential(user: "ada", password: "king", persistence: .forSession), for: .of(server))
                #expect(try await session.text(server.url()) == "in", "\(name)")
                let ada = basic("ada", "lovelace")
                #expect(server.requests.map(\.authorization) == [nil, ada, ada, basic("ada", "king")])
            }
        }
    }

    @Test func `a 401 without a challenge, or with an unknown scheme only, is delivered`() async throws {
        let interview = Interview(.ada())
        for lines in [
            [], [""], [","], ["Bearer realm=\"x\""], ["Hoba key=1", "Mutual realm=\"x\""], ["Digest realm=\"no nonce\""],
        ] {
            try await withScenario(
                delegate: Interviewer(interview), reply: { _ in .unauthorized(lines: lines) }
            ) { (server, session) async throws in
                let (text, response) = try await session.text(URLRequest(server.url(user: "ada:lovelace")))
                #expect(text == "who are you?" && response.statusCode == 401, "\(lines)")
                #expect(server.requests.count == 1, "\(lines)")
            }
        }
        #expect(interview.questions == [])
    }
}
