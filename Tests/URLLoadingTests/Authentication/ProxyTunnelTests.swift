// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Requests for `https` URLs through a proxy (CONNECT), and the proxy's own challenges.
@Suite(.timeLimit(.minutes(1)))
struct ProxyTunnelTests {
    private static let ada = basic("ada", "lovelace")
    private static let refusal = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 3\r\n\r\nno!"
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a secure server, a proxy, and a session that uses the proxy.
    private func withTunnel(
        delegate: (any URLSessionDelegate)? = nil, _ more: [String: Any] = [:],
        configure: @escaping (URLSessionConfiguration) -> Void = { _ in },
        proxy answer: @escaping @Sendable (TunnelProxy.Demand, _ port: Int) -> TunnelProxy.Answer = { .tunnel(to: $1) },
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply = { _ in .ok("secret") },
        test: (ScriptedServer, TunnelProxy, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(identity: certificates.valid, reply: reply) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] in answer($0, port) }) { (proxy) async throws in
                try await withSession(delegate: delegate) {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port, more)
                    configure($0)
                } test: { (session) async throws in
                    try await test(server, proxy, session)
                }
            }
        }
    }

    private static func gate(_ demand: TunnelProxy.Demand, _ port: Int) -> TunnelProxy.Answer {
        demand.authorization == ada ? .tunnel(to: port) : .say(refusal)
    }

    @Test func `CONNECT names host and port, and reveals nothing of the request`() async throws {
        try await withTunnel { (server, proxy, session) async throws in
            let storage = try #require(session.configuration.httpCookieStorage)
            let cookie = try #require(
                HTTPCookie(properties: [.name: "c", .value: "v", .domain: "localhost", .path: "/"]))
            storage.setCookie(cookie)
            let request = URLRequest(
                server.url("/path?query", host: "localhost"),
                headers: ["Authorization": "Bearer mine", "X-Mine": "1", "Referer": "https://a.example/"])
            #expect(try await session.text(request).text == "secret")
            let demand = try #require(proxy.demands.first)
            #expect(demand.head.hasPrefix("CONNECT localhost:\(server.port) HTTP/1.1\r\n"))
            #expect(demand.values(of: "Host") == ["localhost:\(server.port)"])
            for name in ["Authorization", "Cookie", "X-Mine", "Referer", "Proxy-Authorization"] {
                #expect(demand.values(of: name) == [])
            }
            #expect(!demand.head.contains("path") && !demand.head.contains("mine"))
            let seen = try #require(server.requests.first)
            #expect(seen.target == "/path?query")
            #expect(seen.authorization == "Bearer mine" && seen.header("Cookie") == "c=v" && seen.proxyAuthorization == nil)
        }
    }

    @Test func `the proxy resolves the host name, and the certificate is the origin's`() async throws {
        try await withTunnel { (server, proxy, session) async throws in
            let url = try #require(URL(string: "https://origin.invalid/x"))
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: url) }
            #expect(proxy.demands.map(\.target) == ["origin.invalid:443"])
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the tunnel is reused for its host`() async throws {
        try await withTunnel { (server, proxy, session) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "secret") }
            #expect(proxy.demands.count == 1)
            #expect(try await session.text(server.url(host: "localhost")) == "secret")
            #expect(proxy.demands.map(\.target) == ["127.0.0.1:\(server.port)", "localhost:\(server.port)"])
        }
    }

    @Test func `hosts in the exceptions list are reached directly`() async throws {
        try await withTunnel(["ExceptionsList": ["localhost"]]) { (server, proxy, session) async throws in
            #expect(try await session.text(server.url(host: "localhost")) == "secret")
            #expect(proxy.demands.isEmpty)
        }
    }

    @Test func `the delegate answers the proxy's challenge, and the credential is remembered`() async throws {
        let interview = Interview(.ada())
        try await withTunnel(delegate: Interviewer(interview), proxy: Self.gate) { (server, proxy, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            #expect(try await session.text(server.url(host: "localhost")) == "secret")
            #expect(proxy.demands.map(\.authorization) == [nil, Self.ada, Self.ada])
            #expect(interview.questions.count == 1)
            let question = try #require(interview.questions.first)
            #expect(question.by == "task" && question.method == "HTTPBasic" && question.realm == "gate")
            #expect(question.isProxy && question.host == "127.0.0.1" && question.port == proxy.port && question.kind == "https")
            #expect(question.status == 407 && question.failures == 0)
            #expect(server.requests.allSatisfy { $0.proxyAuthorization == nil && $0.authorization == nil })
        }
    }

    @Test func `the user name and password of the proxy dictionary answer the challenge of the proxy`() async throws {
        try await withTunnel(["kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": "lovelace"], proxy: Self.gate) {
            (server, proxy, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            #expect(proxy.demands.map(\.authorization) == [nil, Self.ada])
        }
    }

    @Test func `the stored credential answers the challenge of the proxy`() async throws {
        let storage = URLCredentialStorage()
        try await withTunnel(configure: { $0.urlCredentialStorage = storage }, proxy: Self.gate) {
            (server, proxy, session) async throws in
            let space = URLProtectionSpace(
                proxyHost: "127.0.0.1", port: proxy.port, type: NSURLProtectionSpaceHTTPSProxy, realm: "gate",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            storage.set(.ada(), for: space)
            #expect(try await session.text(server.url()) == "secret")
        }
    }

    @Test func `a proxy challenge without an answer fails the task with its own error`() async throws {
        for delegate in [nil, TaskInterviewer(Interview(.useCredential)), TaskInterviewer(Interview(.rejectProtectionSpace))] {
            try await withTunnel(delegate: delegate, proxy: Self.gate) { (server, proxy, session) async throws in
                let error = await expectFailure(.userAuthenticationRequired) { try await session.data(from: server.url()) }
                #expect(error?.localizedDescription.contains("127.0.0.1:\(proxy.port)") == true)
                #expect(error?.failingURL == server.url())
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `cancelling a challenge of the proxy fails the load with a separate error code`() async throws {
        try await withTunnel(delegate: TaskInterviewer(Interview(.cancelAuthenticationChallenge)), proxy: Self.gate) {
            (server, proxy, session) async throws in
            await expectFailure(.userCancelledAuthentication) { try await session.data(from: server.url()) }
            #expect(proxy.demands.count == 1)
        }
    }

    @Test func `wrong passwords are challenged again, and finally fail the task`() async throws {
        let corrected = Interview { _, number in (.useCredential, number < 2 ? .wrong() : .ada()) }
        try await withTunnel(delegate: TaskInterviewer(corrected), proxy: Self.gate) { (server, proxy, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            #expect(corrected.failures == [0, 1, 2])
            #expect(corrected.questions.map(\.proposed) == [nil, "ada:byron", "ada:byron"])
        }
        let stubborn = Interview(.wrong())
        try await withTunnel(delegate: TaskInterviewer(stubborn), proxy: Self.gate) { (server, proxy, session) async throws in
            await expectFailure(.userAuthenticationRequired) { try await session.data(from: server.url()) }
            #expect(stubborn.failures == Array(0..<stubborn.questions.count))
            #expect((2...50).contains(stubborn.questions.count))
        }
    }

    @Test func `the proxy is dialled again, with the credential, if it closes the connection after its 407`() async throws {
        for text in [
            Self.refusal,
            "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\n\r\nuntil the end",
            "HTTP/1.0 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 0\r\n\r\n",
        ] {
            let interview = Interview(.ada())
            try await withTunnel(
                delegate: TaskInterviewer(interview),
                proxy: { demand, port in demand.authorization == Self.ada ? .tunnel(to: port) : .say(text, closes: true) }
            ) { (server, proxy, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
                #expect(proxy.demands.map(\.authorization) == [nil, Self.ada])
                #expect(proxy.connectionCount == 2)
                #expect(interview.questions.count == 1)
            }
        }
    }

    @Test func `the proxy is dialled again, but not endlessly, if it closes the connection after the credential`() async throws {
        for isForEver in [false, true] {
            let interview = Interview(.ada())
            try await withTunnel(
                delegate: TaskInterviewer(interview),
                proxy: { demand, port in
                    if demand.authorization == nil { return .say(Self.refusal) }
                    return isForEver || demand.number > 0 ? .say("", closes: true) : .tunnel(to: port)
                }
            ) { (server, proxy, session) async throws in
                if isForEver {
                    await expectFailure(.cannotConnectToHost) { try await session.data(from: server.url()) }
                } else {
                    #expect(try await session.text(server.url()) == "secret")
                }
                #expect(proxy.demands.map(\.authorization) == [nil, Self.ada, Self.ada])
                #expect(proxy.connectionCount == 2 && interview.questions.count == 1)
            }
        }
    }

    @Test func `a proxy that keeps its connection receives the credential on it`() async throws {
        for text in [
            Self.refusal,
            "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        ] {
            try await withTunnel(
                delegate: TaskInterviewer(Interview(.ada())),
                proxy: { demand, port in demand.authorization == Self.ada ? .tunnel(to: port) : .say(text) }
            ) { (server, proxy, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
                #expect(proxy.connectionCount == 1)
            }
        }
    }

    @Test func `Digest for a tunnel is computed over CONNECT and the authority`() async throws {
        var rules = DigestGate.Rules()
        rules.isProxy = true
        let gate = DigestGate(rules)
        let interview = Interview(user: rules.user, password: rules.password)
        try await withTunnel(
            delegate: TaskInterviewer(interview),
            proxy: { $0.answer(by: gate.script(), to: $1) }
        ) { (server, proxy, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            #expect(try await session.text(server.url(host: "localhost")) == "secret")
            #expect(gate.problems == [])
            #expect(gate.proofs.map { $0["uri"] } == ["127.0.0.1:\(server.port)", "localhost:\(server.port)"])
            #expect(gate.proofs.map { $0["nc"] } == ["00000001", "00000002"])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `NTLM starts on a new connection if the proxy closes with its first 407`() async throws {
        for closesFirst in [false, true] {
            let script = NTLMScript(isProxy: true)
            let interview = Interview(.ada())
            try await withTunnel(
                delegate: Interviewer(interview),
                proxy: { demand, port in
                    guard case .say(let text, _) = demand.answer(by: script.script(), to: port) else { return .tunnel(to: port) }
                    return .say(text, closes: closesFirst && demand.authorization == nil)
                }
            ) { (server, proxy, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
                #expect(interview.failures == [0])
                #expect(interview.questions.map(\.by) == ["session"])
                #expect(script.legs.map(\.message) == [0, 1, 3])
                #expect(proxy.connectionCount == (closesFirst ? 2 : 1))
                // The next tunnel is a new connection, and the app is not asked.
                #expect(try await session.text(server.url(host: "localhost")) == "secret")
                #expect(script.legs.map(\.message) == [0, 1, 3, 1, 3])
                #expect(interview.failures == [0])
            }
        }
    }

    @Test func `the proxy's Authentication-Info in its 200 is verified`() async throws {
        for proof in [DigestGate.Proof.right, .wrong] {
            var rules = DigestGate.Rules()
            rules.isProxy = true
            rules.proof = proof
            let gate = DigestGate(rules)
            let interview = Interview(user: rules.user, password: rules.password)
            try await withTunnel(
                delegate: TaskInterviewer(interview),
                proxy: { $0.answer(by: gate.script(), to: $1) }
            ) { (server, proxy, session) async throws in
                if proof == .right {
                    #expect(try await session.text(server.url()) == "secret")
                } else {
                    let error = await expectFailure(.badServerResponse) { try await session.data(from: server.url()) }
                    #expect(error?.failingURL == server.url())
                    #expect(server.requests.isEmpty)
                }
            }
        }
    }

    @Test func `the origin behind the tunnel is answered with its own credential`() async throws {
        let interview = Interview { challenge, _ in
            challenge.protectionSpace.isProxy()
                ? (.useCredential, .ada()) : (.useCredential, URLCredential(user: "bob", password: "x", persistence: .forSession))
        }
        try await withTunnel(
            delegate: TaskInterviewer(interview), proxy: Self.gate,
            reply: BasicScript(user: "bob", password: "x", realm: "gate")()
        ) { (server, proxy, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.questions.map(\.isProxy) == [true, false])
            #expect(interview.questions.map(\.port) == [proxy.port, server.port])
            #expect(server.requests.map(\.authorization) == [nil, basic("bob", "x")])
            #expect(server.requests.allSatisfy { $0.proxyAuthorization == nil })
        }
    }

    @Test func `a 407 through the tunnel is from the origin, and is not answered with the proxy credential`() async throws {
        let interview = Interview(.ada())
        try await withTunnel(
            delegate: TaskInterviewer(interview), proxy: Self.gate, reply: { _ in .proxyUnauthorized("Basic realm=\"gate\"") }
        ) { (server, proxy, session) async throws in
            #expect(try await session.text(URLRequest(server.url())).response.statusCode == 407)
            #expect(interview.questions.count == 1)
            #expect(server.requests.map(\.proxyAuthorization) == [nil])
        }
    }

    @Test func `a refused CONNECT and malformed responses fail the task`() async throws {
        let rows: [(String, Bool)] = [
            ("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", false), ("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 0\r\n\r\n", false),
            ("SSH-2.0-OpenSSH_9.2\r\n\r\n", false), ("\r\n\r\n\u{1}\u{2}\u{3}\r\n\r\n", true), ("", true),
            ("HTTP/1.1 200 OK\r\n", true), ("HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", false),
            ("HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 9\r\n\r\nno", true),
        ]
        for (text, closes) in rows {
            let interview = Interview(.useCredential)
            try await withTunnel(delegate: Interviewer(interview), proxy: { _, _ in .say(text, closes: closes) }) {
                (server, proxy, session) async throws in
                let error = await expectFailure(
                    .cannotConnectToHost, .userAuthenticationRequired, .networkConnectionLost, .secureConnectionFailed, in: text
                ) {
                    try await session.data(from: server.url())
                }
                #expect(error?.failingURL == server.url())
                #expect(interview.questions.map(\.isProxy).contains(false) == false, "\(text)")
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `bytes after the proxy's 200 are not taken for the server's`() async throws {
        for extra in ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", "\u{16}\u{3}\u{3}"] {
            try await withTunnel(proxy: { .tunnel(to: $1, extra: extra) }) { (server, proxy, session) async throws in
                await expectFailure(.cannotConnectToHost, .secureConnectionFailed) { try await session.data(from: server.url()) }
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `a 200 to CONNECT has no body, despite Content-Length or chunked coding`() async throws {
        for fields in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            try await withTunnel(proxy: { .tunnel(to: $1, fields: fields) }) { (server, proxy, session) async throws in
                #expect(try await session.text(server.url()) == "secret")
            }
        }
    }

    @Test func `cancelling a task while its delegate has the challenge of the proxy ends the task once`() async throws {
        let pending = Delivered<Interview.Reply>()
        try await withTunnel(delegate: TaskInterviewer(Interview(whenever: { _, _, reply in pending(reply) })), proxy: Self.gate)
        {
            (server, proxy, session) async throws in
            let ends = Delivered<URLError.Code?>()
            let task = session.dataTask(with: server.url()) { _, _, error in ends((error as? URLError)?.code) }
            task.resume()
            let reply = try await pending.value
            task.cancel()
            #expect(try await ends.value == .cancelled)
            reply(.useCredential, .ada())
            #expect(ends.all == [.cancelled])
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `after the asked task is cancelled, the next queued task is asked and gets the tunnel`() async throws {
        let pending = Delivered<Interview.Reply>()
        let interview = Interview(whenever: { _, number, reply in
            if number == 0 { pending(reply) } else { reply(.useCredential, .ada()) }
        })
        try await withTunnel(
            delegate: TaskInterviewer(interview), configure: { $0.httpMaximumConnectionsPerHost = 1 }, proxy: Self.gate
        ) { (server, proxy, session) async throws in
            let ends = Delivered<URLError.Code?>()
            let first = session.dataTask(with: server.url("/1")) { _, _, error in ends((error as? URLError)?.code) }
            first.resume()
            _ = try await pending.value
            let texts = Delivered<String>()
            let second = session.dataTask(with: server.url("/2")) { data, _, error in
                texts(error.map { "\($0)" } ?? String(decoding: data ?? Data(), as: UTF8.self))
            }
            second.priority = URLSessionTask.highPriority
            second.resume()
            // The session processes orders in sequence, so the second task is queued when this load has ended.
            _ = try await session.data(from: try #require(URL(string: "data:,x")))
            first.cancel()
            #expect(try await ends.value == .cancelled)
            #expect(try await texts.value == "secret")
            #expect(interview.questions.count == 2)
            #expect(server.requests.map(\.path) == ["/2"])
        }
    }

    @Test func `many concurrent loads all pass the proxy`() async throws {
        let interview = Interview(.ada())
        try await withTunnel(delegate: TaskInterviewer(interview), proxy: Self.gate) { (server, proxy, session) async throws in
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<30 { group.addTask { try await session.text(server.url("/\(number)")) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "secret", count: 30))
            #expect(interview.questions.count <= 6)
            #expect(interview.failures.allSatisfy { $0 == 0 })
        }
    }

    @Test func `metrics report that a proxy was used`() async throws {
        let recorder = EventRecorder()
        try await withTunnel(delegate: recorder) { (server, proxy, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let metrics = try #require(try await recorder.completion(of: task).metrics)
            #expect(metrics.transactionMetrics.map(\.isProxyConnection) == [true])
            #expect(metrics.transactionMetrics.map(\.remotePort) == [proxy.port])
            #expect(metrics.transactionMetrics.allSatisfy { $0.secureConnectionStartDate != nil })
        }
    }
}
