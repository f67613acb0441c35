// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Challenges and cookies in the WebSocket handshake follow the rules of http and https.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketCredentialTests {
    /// A recorder that answers challenges other than server trust with the given credentials in turn.
    private func recorder(
        _ answer: @escaping @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)
    ) -> WebSocketRecorder {
        var answers = WebSocketRecorder.Answers()
        answers.challenge = { challenge in
            challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust
                ? (.performDefaultHandling, nil) : answer(challenge)
        }
        return WebSocketRecorder(answers)
    }

    // MARK: Challenges

    @Test func `the delegate answers a Basic challenge before the 101`() async throws {
        let spaces = Delivered<URLProtectionSpace>()
        let recorder = recorder { challenge in
            spaces(challenge.protectionSpace)
            return (.useCredential, .ada())
        }
        try await withScenario(
            delegate: recorder, reply: BasicScript()({ ScriptedReply.greeting($0).then(.stall) })
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/a"))
            task.send(.string("early")) { _ in }
            task.resume()
            #expect(try await task.nextText() == "hello")
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cCoxME" && record.error == nil)
            #expect(server.requests.map(\.authorization) == [nil, basic("ada", "lovelace")])
            #expect(server.requests.map(\.target) == ["/a", "/a"])
            let keys = server.requests.compactMap { $0.header("Sec-WebSocket-Key") }
            #expect(keys.count == 2 && Set(keys).count == 2)
            let space = try await spaces.value
            #expect(space.host == "127.0.0.1" && space.port == server.port && space.realm == "tower")
            #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic && !space.isProxy())
            #expect(record.metrics?.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [401, 101])
        }
    }

    @Test func `a Digest challenge is answered with GET and the target`() async throws {
        let gate = DigestGate()
        let recorder = recorder { _ in
            (.useCredential, URLCredential(user: "Mufasa", password: "Circle of Life", persistence: .forSession))
        }
        try await withScenario(delegate: recorder, reply: gate.script { ScriptedReply.greeting($0).then(.stall) }) {
            (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/dir/chat?x=1"))
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(gate.problems.isEmpty)
            #expect(gate.proofs.map { $0["uri"] } == ["/dir/chat?x=1"])
        }
    }

    @Test func `credentials accepted over http are used for ws to the same server`() async throws {
        let asked = Delivered<Int>()
        let recorder = recorder { challenge in
            asked(challenge.previousFailureCount)
            return (.useCredential, .ada())
        }
        try await withScenario(
            delegate: recorder,
            reply: BasicScript()({ $0.path == "/socket" ? ScriptedReply.greeting($0).then(.stall) : .ok("in") })
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/page")) == "in")
            let task = session.webSocketTask(with: server.socketURL("/socket"))
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(asked.all == [0])
        }
    }

    @Test func `an unanswered 401 fails the task, which has the response`() async throws {
        for disposition in [URLSession.AuthChallengeDisposition.performDefaultHandling, .useCredential, .rejectProtectionSpace] {
            let recorder = recorder { _ in (disposition, nil) }
            try await withScenario(delegate: recorder, reply: BasicScript()()) { (server, session) async throws in
                let task = session.webSocketTask(with: server.socketURL())
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .badServerResponse && record.letters == "cCME")
                #expect((task.response as? HTTPURLResponse)?.statusCode == 401)
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `cancelling the challenge cancels the task`() async throws {
        let recorder = recorder { _ in (.cancelAuthenticationChallenge, nil) }
        try await withScenario(delegate: recorder, reply: BasicScript()()) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await recorder.completion(of: task).code == .cancelled)
        }
    }

    @Test func `user information in the URL and stored credentials answer a challenge`() async throws {
        let storage = URLCredentialStorage()
        try await withScenario(
            configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()({ ScriptedReply.greeting($0).then(.stall) })
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL(user: "ada:lovelace"))
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(server.requests.allSatisfy { !$0.headText.contains("lovelace") && $0.target == "/" })
        }
        try await withScenario(
            configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()({ ScriptedReply.greeting($0).then(.stall) })
        ) { (server, session) async throws in
            storage.set(.ada(), for: .of(server))
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await task.nextText() == "hello")
        }
    }

    // MARK: Cookies

    /// Opens a task at a path, and returns the cookies that the server received.
    private func cookies(
        _ server: ScriptedServer, _ session: URLSession, path: String = "/socket", change: (inout URLRequest) -> Void = { _ in }
    ) async throws -> [String] {
        var request = URLRequest(server.socketURL(path, host: "localhost"))
        change(&request)
        let task = session.webSocketTask(with: request)
        task.resume()
        #expect(try await task.nextText() == "hello")
        return try #require(server.requests.last).values(of: "Cookie")
    }

    @Test func `stored cookies are sent by path and name, besides the request's own`() async throws {
        try await withScenario(reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            let storage = try #require(session.configuration.httpCookieStorage)
            storage.setCookie(try cookie("a"))
            storage.setCookie(try cookie("hidden", "1", [.path: "/elsewhere"]))
            storage.setCookie(try cookie("other", "1", [.domain: "other.example"]))
            storage.setCookie(try cookie("secure", "1", [.secure: "TRUE"]))
            #expect(try await cookies(server, session) == ["a=1"])
            #expect(try await cookies(server, session) { $0.setValue("own=2", forHTTPHeaderField: "Cookie") } == ["own=2; a=1"])
            #expect(try await cookies(server, session) { $0.httpShouldHandleCookies = false } == [])
        }
        try await withScenario(
            configure: { $0.httpShouldSetCookies = false }, reply: { .greeting($0).then(.stall) }
        ) { (server, session) async throws in
            try #require(session.configuration.httpCookieStorage).setCookie(try cookie("a"))
            #expect(try await cookies(server, session) == [])
        }
    }

    @Test func `Secure cookies are sent and set over wss`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { .greeting($0, [("Set-Cookie", "new=1; Secure; HttpOnly")]).then(.stall) }
        ) { (server, session) async throws in
            let storage = try #require(session.configuration.httpCookieStorage)
            storage.setCookie(try cookie("secure", "1", [.secure: "TRUE"]))
            #expect(try await cookies(server, session) == ["secure=1"])
            #expect(try await cookies(server, session).map { Set($0.components(separatedBy: "; ")) } == [["secure=1", "new=1"]])
        }
    }

    @Test func `cookies of interim responses and of the 101 are stored before the task opens`() async throws {
        let stored = Delivered<[String]>()
        let session = Watched<HTTPCookieStorage?>(nil)
        var answers = WebSocketRecorder.Answers()
        answers.challenge = { _ in (.useCredential, .ada()) }
        answers.opened = { _ in stored(session.read { $0?.cookies?.map(\.name).sorted() } ?? []) }
        let recorder = WebSocketRecorder(answers)
        try await withScenario(
            delegate: recorder,
            reply: { request in
                switch request.order {
                case 0: .redirect(302, to: "/next", [("Set-Cookie", "redirect=1")])
                case 1:
                    .status(401, [("WWW-Authenticate", "Basic realm=\"tower\""), ("Set-Cookie", "challenge=1")])
                default: .greeting(request, [("Set-Cookie", "open=1"), ("Set-Cookie", "two=2")]).then(.stall)
                }
            }
        ) { (server, urlSession) async throws in
            session.change { $0 = urlSession.configuration.httpCookieStorage }
            let task = urlSession.webSocketTask(with: server.socketURL("/", host: "localhost"))
            task.resume()
            #expect(try await stored.value == ["challenge", "open", "redirect", "two"])
            #expect(
                server.requests.map { Set(($0.header("Cookie") ?? "").components(separatedBy: "; ")) } == [
                    [""], ["redirect=1"], ["redirect=1", "challenge=1"],
                ])
        }
    }

    @Test func `cookies of a refusal are stored unless the policy says never`() async throws {
        for policy in [HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain, .never] {
            let recorder = WebSocketRecorder()
            try await withScenario(
                delegate: recorder, configure: { $0.httpCookieAcceptPolicy = policy },
                reply: { _ in .status(403, [("Set-Cookie", "no=1"), ("Set-Cookie", "foreign=1; Domain=other.example")]) }
            ) { (server, session) async throws in
                let task = session.webSocketTask(with: server.socketURL("/", host: "localhost"))
                task.resume()
                try await recorder.completion(of: task)
                let names = try #require(session.configuration.httpCookieStorage?.cookies).map(\.name)
                #expect(names == (policy == .never ? [] : ["no"]))
            }
        }
    }

    @Test func `cookies from a server with a refused certificate are not stored`() async throws {
        // Cookies are not stored if the response's connection was refused.
        let certificates = try TestCertificates.shared.get()
        let recorder = WebSocketRecorder()
        try await withScenario(
            identity: certificates.valid, delegate: recorder,
            reply: { .greeting($0, [("Set-Cookie", "no=1")]).then(.stall) }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/", host: "localhost"))
            task.resume()
            let code = try await recorder.completion(of: task).code
            #expect(code == .serverCertificateUntrusted || code == .serverCertificateHasUnknownRoot)
            #expect(session.configuration.httpCookieStorage?.cookies?.isEmpty == true && server.requests.isEmpty)
        }
    }
}
