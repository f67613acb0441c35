// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SystemLibraries
import Testing

/// The GSSAPI initiator against a real KDC, in separate processes, because the library reads its configuration only once.
@Suite(.timeLimit(.minutes(1))) struct GSSAPITests {
    @Test func `a user without a ticket needs a password`() async throws {
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        try await SeparateProcess.run("WithoutTicketTests", environment: realm.environment)
    }

    @Test func `a user with a ticket authenticates`() async throws {
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let apache = try ApacheServer.start(TestCertificates.shared.get(), realm: realm)
        defer { apache.stop() }
        var environment = try realm.ticket(for: "ada", password: "lovelace")
        environment["KRB5_KTNAME"] = realm.keytab.path
        environment[Negotiation.variable] = apache.url("/negotiate/page.txt").absoluteString
        try await SeparateProcess.run("WithTicketTests", environment: environment)
        #expect(realm.log.contains("HTTP/localhost@\(KerberosRealm.name)"))
    }

    @Test func `an unreachable KDC fails the handshake`() async throws {
        let realm = try KerberosRealm.start()
        let environment = try realm.ticket(for: "ada", password: "lovelace")
        realm.stop()
        try await SeparateProcess.run("WithoutKDCTests", environment: environment)
    }

    @Test func `the library is available`() { #expect(GSSAPI.isAvailable) }
}

private func reason(_ result: Result<GSSAPI.Step, GSSAPI.Failure>) -> GSSAPI.Failure.Reason? {
    guard case .failure(let failure) = result else { return nil }
    #expect(!failure.text.isEmpty && !failure.description.contains("lovelace"), "\(failure)")
    return failure.reason
}

private func context(
    _ service: String = "HTTP@localhost", _ credential: (user: String, password: String)? = nil, binding: [UInt8]? = nil
) -> GSSAPI.Context {
    let octets = credential.map { (user: Array($0.user.utf8), password: Array($0.password.utf8)) }
    return GSSAPI.Context(service: service, credential: octets, channelBinding: binding)
}

/// Whether a token is SPNEGO's NegTokenInit in GSSAPI's framing (RFC 4178, section 4.2; RFC 2743, section 3.1).
private func isInitial(_ token: [UInt8]?) -> Bool {
    token?.first == 0x60 && token?.firstRange(of: [0x06, 0x06, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x02]) != nil
}

/// Sends a token to the Apache server of the parent process with curl.
private enum Negotiation {
    static let variable = "URL_LOADING_NEGOTIATE_URL"

    /// Returns the status, and the server's token.
    static func answer(to token: [UInt8]) throws -> (status: String, token: [UInt8]) {
        let directory = try TemporaryDirectory()
        let url = try #require(ProcessInfo.processInfo.environment[variable])
        let text = try ServerProcess.run(
            ServerProcess.Command(
                [
                    ServerProcess.program("curl", package: "curl"), "-q", "-sS", "-4", "-o", directory.file("page").path,
                    "-H", "Authorization: Negotiate \(Data(token).base64EncodedString())",
                    "-w", "%{http_code}|%header{www-authenticate}", url,
                ],
                output: directory.file("output")
            )
        )
        let fields = text.split(separator: "|", omittingEmptySubsequences: false)
        let value = fields[1].split(separator: " ").last.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) } ?? ""
        return (String(fields[0]), Array(Data(base64Encoded: value) ?? Data()))
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("WithoutTicketTests"))) struct WithoutTicketTests {
    @Test func `without a password there is no credential`() {
        #expect(reason(context().step(nil)) == .hasNoCredential)
    }

    @Test(arguments: ["ada", "ada@\(KerberosRealm.name)"]) func `a password is sufficient without a ticket`(user: String) throws {
        let step = try context("HTTP@localhost", (user, "lovelace")).step(nil).get()
        #expect(isInitial(step.token) && !step.isDone && !step.isMutual)
    }

    @Test(arguments: [("ada", "wrong"), ("bob", "lovelace"), ("ada", "")])
    func `the KDC refuses a wrong user or password`(user: String, password: String) {
        #expect(reason(context("HTTP@localhost", (user, password)).step(nil)) == .credentialIsRefused)
    }

    @Test func `an unknown realm is unreachable`() {
        #expect(reason(context("HTTP@localhost", ("ada@NOWHERE.TEST", "x")).step(nil)) == .kdcIsUnreachable)
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("WithTicketTests"))) struct WithTicketTests {
    @Test func `a handshake begins, with and without a channel binding`() throws {
        for binding in [nil, Array("tls-server-end-point:".utf8) + [UInt8](repeating: 7, count: 32)] {
            let step = try context(binding: binding).step(nil).get()
            #expect(isInitial(step.token) && !step.isDone)
        }
    }

    @Test(arguments: [nil, "ada"], [nil, Array("tls-server-end-point:0123456789".utf8)])
    func `a handshake ends when the server has proved its identity`(user: String?, binding: [UInt8]?) throws {
        let context = context("HTTP@localhost", user.map { ($0, "lovelace") }, binding: binding)
        let answer = try Negotiation.answer(to: #require(try context.step(nil).get().token))
        #expect(answer.status == "200")
        let end = try context.step(answer.token).get()
        #expect(end == GSSAPI.Step(token: nil, isDone: true, isMutual: true))
        // The handshake is over.
        #expect(reason(context.step(answer.token)) == .serverIsRefused)
    }

    @Test func `the server compares the channel binding`() throws {
        let binding = Array("tls-server-end-point:".utf8) + [UInt8](0..<32)
        let other = Array("tls-server-end-point:".utf8) + [UInt8](1..<33)
        let token = try #require(try context(binding: binding).step(nil).get().token)
        #expect(try GSSAPIAcceptor.error(of: token, binding: binding) == "0")
        let again = try #require(try context(binding: binding).step(nil).get().token)
        // The error 4 is GSS_S_BAD_BINDINGS.
        #expect(try GSSAPIAcceptor.error(of: again, binding: other) == "4")
    }

    @Test func `a server that does not prove its identity is refused`() throws {
        let context = context()
        var answer = try Negotiation.answer(to: #require(try context.step(nil).get().token))
        let last = try #require(answer.token.indices.last)
        answer.token[last] ^= 1
        #expect(reason(context.step(answer.token)) == .serverIsRefused)
    }

    @Test func `a server unknown to the KDC fails the handshake`() {
        #expect(reason(context("HTTP@127.0.0.2").step(nil)) == .serverIsUnknown)
    }

    @Test(arguments: [[], [0x60], Array("garbage".utf8), [0x6F, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]])
    func `an invalid token from the server is refused`(token: [UInt8]) throws {
        let context = context()
        _ = try context.step(nil).get()
        #expect(reason(context.step(token)) == .serverIsRefused)
        #expect(reason(context.step(token)) == .serverIsRefused)
    }

    @Test func `a missing token and an unsolicited token are refused`() throws {
        let begun = context()
        _ = try begun.step(nil).get()
        #expect(reason(begun.step(nil)) == .serverIsRefused)
        #expect(reason(context().step([1, 2, 3])) == .serverIsRefused)
    }

    @Test func `handshakes can run concurrently`() async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 { group.addTask { isInitial(try context().step(nil).get().token) } }
            for try await isGood in group { #expect(isGood) }
        }
    }

    @Test func `of concurrent steps of one handshake all but one fail`() async {
        let context = context()
        let count = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 { group.addTask { (try? context.step(nil).get()) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(count == 1)
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("WithoutKDCTests"))) struct WithoutKDCTests {
    @Test func `a service ticket cannot be obtained if the KDC is unreachable`() {
        #expect(reason(context().step(nil)) == .kdcIsUnreachable)
        #expect(reason(context("HTTP@localhost", ("ada", "lovelace")).step(nil)) == .kdcIsUnreachable)
    }
}
