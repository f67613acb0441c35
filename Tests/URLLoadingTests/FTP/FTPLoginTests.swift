// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which user name and password a load logs in with.
@Suite(.timeLimit(.minutes(1)))
struct FTPLoginTests {
    private let hello = Data("hello".utf8)

    /// A server that only accepts the user ada.
    private static let strict: ScriptedFTP.Rule = { visit, order in
        switch order.word {
        case "USER":
            visit.folder = order.argument == "ada" ? "/home" : "/nowhere"
            return false
        case "PASS":
            let isRight = visit.folder == "/home" && order.argument == "secret"
            visit.folder = "/home"
            try visit.say(isRight ? "230 welcome" : "530 who are you?")
            return true
        default: return false
        }
    }

    private func space(_ server: ScriptedFTP) -> URLProtectionSpace {
        URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceFTP, realm: nil,
            authenticationMethod: NSURLAuthenticationMethodDefault
        )
    }

    @Test func `the user of the URL logs in`() async throws {
        try await withFTP(rule: Self.strict) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin", user: "ada:secret@")).0 == hello)
            #expect(server.commands("USER") == ["USER ada"])
            #expect(server.commands("PASS") == ["PASS secret"])
        }
    }

    @Test func `percent codes in the user of the URL are decoded`() async throws {
        try await withFTP { (server, session) async throws in
            let url = try server.url("/a.bin", user: "ada%40corp%3A%C3%BC:p%40s%3As%2F%25%20@")
            #expect(try await session.data(from: url).0 == hello)
            #expect(server.commands("USER") == ["USER ada@corp:ü"])
            #expect(server.commands("PASS") == ["PASS p@s:s/% "])
        }
    }

    @Test func `an anonymous login does not reveal the local user`() async throws {
        try await withFTP { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.commands("USER") == ["USER anonymous"])
            let password = try #require(server.commands("PASS").first)
            #expect(!password.contains(NSUserName()))
            #expect(!password.contains(ProcessInfo.processInfo.hostName))
        }
    }

    @Test func `the stored credential for the server is used`() async throws {
        let storage = URLCredentialStorage()
        try await withFTP(configure: { $0.urlCredentialStorage = storage }, rule: Self.strict) { (server, session) async throws in
            storage.setDefaultCredential(
                URLCredential(user: "ada", password: "secret", persistence: .forSession), for: space(server))
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.commands("USER").contains("USER ada"))
        }
    }

    @Test func `a credential stored for another port is not sent`() async throws {
        let storage = URLCredentialStorage()
        try await withFTP(configure: { $0.urlCredentialStorage = storage }) { (server, session) async throws in
            for (port, kind) in [(server.port + 1, NSURLProtectionSpaceFTP), (server.port, NSURLProtectionSpaceHTTP)] {
                storage.setDefaultCredential(
                    URLCredential(user: "ada", password: "secret", persistence: .forSession),
                    for: URLProtectionSpace(
                        host: "127.0.0.1", port: port, protocol: kind, realm: nil,
                        authenticationMethod: NSURLAuthenticationMethodDefault))
            }
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.commands("USER") == ["USER anonymous"])
        }
    }

    @Test func `the delegate answers a refused login, and the session keeps its credential`() async throws {
        let interview = Interview { _, number in
            (
                .useCredential,
                URLCredential(user: "ada", password: number < 2 ? "wrong\(number)" : "secret", persistence: .forSession)
            )
        }
        try await withFTP(delegate: TaskInterviewer(interview), rule: Self.strict) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(interview.methods == ["Default", "Default", "Default"])
            #expect(interview.failures == [0, 1, 2])
            #expect(interview.questions.allSatisfy { $0.host == "127.0.0.1" && $0.port == server.port && $0.kind == "ftp" })
            #expect(interview.questions.allSatisfy { $0.realm == nil && !$0.isProxy })
            #expect(server.commands("PASS").suffix(3) == ["PASS wrong0", "PASS wrong1", "PASS secret"])
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(interview.questions.count == 3)
            #expect(server.commands("PASS").last == "PASS secret")
        }
    }

    @Test func `a refused credential from the URL is proposed to the delegate`() async throws {
        let interview = Interview(user: "ada", password: "secret")
        try await withFTP(delegate: TaskInterviewer(interview), rule: Self.strict) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin", user: "ada:wrong@")).0 == hello)
            let question = try #require(interview.questions.first)
            #expect(interview.questions.count == 1)
            #expect(question.failures == 1)
            #expect(question.proposed == "ada:wrong")
        }
    }

    @Test(arguments: [
        (URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, URLError.Code.cancelled),
        (.performDefaultHandling, .userAuthenticationRequired), (.rejectProtectionSpace, .userAuthenticationRequired),
    ])
    func `a challenge may be answered without a credential`(
        answer: URLSession.AuthChallengeDisposition, code: URLError.Code
    ) async throws {
        let interview = Interview(answer)
        try await withFTP(delegate: TaskInterviewer(interview), rule: Self.strict) { (server, session) async throws in
            await expectFailure(code) { try await session.data(from: try server.url("/a.bin")) }
            #expect(interview.questions.count == 1)
            try await server.waitForEnds()
        }
    }

    @Test func `without a delegate a refused login fails the load`() async throws {
        try await withFTP(rule: Self.strict) { (server, session) async throws in
            for user in ["", "ada:wrong@", "ada@"] {
                await expectFailure(.userAuthenticationRequired, in: user) {
                    try await session.data(from: try server.url("/a.bin", user: user))
                }
            }
        }
    }

    @Test func `the session's method is not asked for a login`() async throws {
        let interview = Interview(user: "ada", password: "secret")
        try await withFTP(delegate: SessionInterviewer(interview), rule: Self.strict) { (server, session) async throws in
            // As for HTTP, a login challenge goes to the task's method; the session's method is for server trust and identities.
            await expectFailure(.userAuthenticationRequired) { try await session.data(from: try server.url("/a.bin")) }
            #expect(interview.questions == [])
            #expect(server.commands("USER") == ["USER anonymous"])
        }
    }

    @Test func `a credential for one server is not sent to another`() async throws {
        let interview = Interview(user: "ada", password: "secret")
        try await withFTP(delegate: TaskInterviewer(interview), rule: Self.strict) { (server, session) async throws in
            _ = try await session.data(from: try server.url("/a.bin"))
            let other = try ScriptedFTP(
                ["/home/a.bin": ScriptedFTP.File(content: [1])], isSplit: false, greeting: { try $0.say("220 ready") },
                rule: { _, _ in false })
            defer { other.stop() }
            _ = try await session.data(from: try other.url("/a.bin"))
            #expect(other.commands("USER") == ["USER anonymous"])
            #expect(other.commands("PASS").allSatisfy { !$0.contains("secret") })
        }
    }

    @Test func `each load logs in as the user of its own URL`() async throws {
        try await withFTP { (server, session) async throws in
            _ = try await session.data(from: try server.url("/a.bin", user: "ada:secret@"))
            _ = try await session.data(from: try server.url("/a.bin", user: "bob:other@"))
            _ = try await session.data(from: try server.url("/a.bin"))
            let users = server.commands.filter { $0.hasPrefix("USER") || $0.hasPrefix("RETR") }
            #expect(users.prefix(4) == ["USER ada", "RETR a.bin", "USER bob", "RETR a.bin"])
            #expect(users.last == "RETR a.bin" && users.count == 6, "\(users)")
        }
    }

    @Test func `a server that asks for an account fails the load`() async throws {
        try await withFTP { visit, order in
            guard order.word == "PASS" else { return false }
            try visit.say("332 and the account?")
            return true
        } test: { (server, session) async throws in
            await expectFailure(.badServerResponse) {
                try await session.data(from: try server.url("/a.bin", user: "ada:secret@"))
            }
        }
    }

    @Test func `a refusal at USER counts as a refused login`() async throws {
        let interview = Interview(.performDefaultHandling)
        try await withFTP(delegate: TaskInterviewer(interview)) { visit, order in
            guard order.word == "USER" else { return false }
            try visit.say("530 no anonymous users")
            return true
        } test: { (server, session) async throws in
            await expectFailure(.userAuthenticationRequired) { try await session.data(from: try server.url("/a.bin")) }
            #expect(interview.questions.count == 1)
            #expect(server.commands("PASS") == [])
        }
    }

    @Test(arguments: FTPServersTests.Product.allCases.filter { $0 != .vsftpd })
    func `real servers refuse wrong passwords and accept right ones`(product: FTPServersTests.Product) async throws {
        var options = SmallServer.FTPOptions()
        options.allowsAnonymous = false
        let server = try product.start(options)
        defer { server.stop() }
        try server.put(hello, at: "a.bin")
        let interview = Interview { _, number in
            (.useCredential, URLCredential(user: "ada", password: number == 0 ? "wrong" : "secret", persistence: .forSession))
        }
        try await withSession(delegate: TaskInterviewer(interview)) { (session) async throws in
            let url = try #require(URL(string: "ftp://localhost:\(server.port)/a.bin"))
            #expect(try await session.data(from: url).0 == hello)
            #expect(try await session.data(from: url).0 == hello)
            #expect(interview.failures == [0, 1])
        }
    }
}
