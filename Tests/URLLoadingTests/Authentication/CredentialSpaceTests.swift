// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A credential is only used for the scheme and the realm that it was given for.
///
/// A challenge for another scheme or realm does not receive the credential, even if an attacker between the client and the server
/// inserted that challenge.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CredentialSpaceTests {
    /// A credential that the session knows, for a scheme that does not reveal the password, and the script of the server.
    private struct Known: Sendable {
        var name: String
        var method: String
        var realm: String?
        var credential: @Sendable () -> URLCredential
        var script: @Sendable () -> @Sendable (RecordedRequest) -> ScriptedReply
    }

    private static let known = [
        Known(
            name: "Digest", method: NSURLAuthenticationMethodHTTPDigest, realm: "digest realm",
            credential: { URLCredential(user: "Mufasa", password: "Circle of Life", persistence: .forSession) },
            script: { DigestGate().script() }
        ),
        Known(
            name: "NTLM", method: NSURLAuthenticationMethodNTLM, realm: nil, credential: { .ada() },
            script: { NTLMScript().script() }
        ),
    ]
    private static let bob = basic("bob", "x")

    /// Runs a test with a server that accepts the known credential, except below `/mallory/`, where it accepts bob with Basic.
    private func withMallory(
        _ known: Known, _ delegate: (any URLSessionDelegate)?,
        test: (ScriptedServer, URLSession, URLCredentialStorage) async throws -> Void
    ) async throws {
        let storage = URLCredentialStorage()
        let script = known.script()
        try await withScenario(
            delegate: delegate, configure: { $0.urlCredentialStorage = storage },
            reply: { request in
                guard request.path.hasPrefix("/mallory/") else { return script(request) }
                return request.authorization == Self.bob ? .ok("in as bob") : .unauthorized("Basic realm=\"B\"")
            }
        ) { (server, session) async throws in
            storage.set(known.credential(), for: .of(server, realm: known.realm, method: known.method))
            #expect(try await session.text(URLRequest(server.url("/"))).response.statusCode == 200, "\(known.name)")
            try await test(server, session, storage)
        }
    }

    @Test func `a credential accepted for one scheme is neither sent nor proposed for another`() async throws {
        for known in Self.known where known.name != "NTLM" || ScriptedVersion.current?.isMultiplexed != true {
            for isSilent in [true, false] {
                let interview = Interview(.performDefaultHandling)
                try await withMallory(known, isSilent ? nil : Interviewer(interview)) { (server, session, _) async throws in
                    let (text, response) = try await session.text(URLRequest(server.url("/mallory/x")))
                    #expect(response.statusCode == 401 && text == "who are you?", "\(known.name)")
                    #expect(server.requests.allSatisfy { $0.authorization?.hasPrefix("Basic") != true }, "\(known.name)")
                    if !isSilent {
                        let question = try #require(interview.questions.last)
                        #expect(question.method == "HTTPBasic" && question.realm == "B" && question.failures == 0)
                        #expect(question.proposed == nil, "\(known.name)")
                    }
                    // The server's own space still works as before.
                    let count = server.requests.count
                    #expect(try await session.text(URLRequest(server.url("/"))).response.statusCode == 200, "\(known.name)")
                    #expect(server.requests.count == count + 1 && interview.questions.count <= 2, "\(known.name)")
                }
            }
        }
    }

    @Test func `the credential stored for the space of the other scheme is proposed and sent`() async throws {
        for known in Self.known where known.name != "NTLM" || ScriptedVersion.current?.isMultiplexed != true {
            for isSilent in [true, false] {
                let interview = Interview(.performDefaultHandling)
                try await withMallory(known, isSilent ? nil : Interviewer(interview)) { (server, session, storage) async throws in
                    storage.set(URLCredential(user: "bob", password: "x", persistence: .forSession), for: .of(server, realm: "B"))
                    #expect(try await session.text(server.url("/mallory/x")) == "in as bob", "\(known.name)")
                    #expect(Set(server.requests.compactMap(\.authorization).filter { $0.hasPrefix("Basic") }) == [Self.bob])
                    if !isSilent { #expect(interview.questions.last?.proposed == "bob:x", "\(known.name)") }
                }
            }
        }
    }

    @Test func `the process's Kerberos ticket is used unless the app disables it`() {
        let configuration = URLSessionConfiguration.ephemeral
        #expect(configuration.usesKerberosTickets && URLSessionConfiguration.default.usesKerberosTickets)
        configuration.usesKerberosTickets = false
        let session = URLSession(configuration: configuration)
        #expect(!session.configuration.usesKerberosTickets)
        session.invalidateAndCancel()
    }

    @Test func `a second realm's challenge starts with no failures and with its own credential`() async throws {
        for isSilent in [true, false] {
            let interview = Interview(.performDefaultHandling)
            let storage = URLCredentialStorage()
            try await withScenario(
                delegate: isSilent ? nil : TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage },
                reply: { request in
                    switch request.authorization {
                    case nil: .unauthorized("Basic realm=\"tower\"")
                    case Self.bob: .ok("in")
                    default: .unauthorized("Basic realm=\"cellar\"")
                    }
                }
            ) { (server, session) async throws in
                storage.set(.ada(), for: .of(server))
                storage.set(
                    URLCredential(user: "bob", password: "x", persistence: .forSession), for: .of(server, realm: "cellar"))
                #expect(try await session.text(server.url()) == "in")
                #expect(server.requests.map(\.authorization) == [nil, basic("ada", "lovelace"), Self.bob])
                #expect(interview.questions.map(\.proposed) == (isSilent ? [] : ["ada:lovelace", "bob:x"]))
                #expect(interview.failures.allSatisfy { $0 == 0 })
            }
        }
    }
}
