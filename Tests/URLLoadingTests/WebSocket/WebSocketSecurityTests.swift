// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// WebSockets over TLS: trust, HSTS and App Transport Security.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketSecurityTests {
    private static let field = "Strict-Transport-Security"
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private static func socket(_ request: RecordedRequest) -> ScriptedReply { .greeting(request).then(.stall) }

    // MARK: Trust

    @Test func `wss uses TLS, and the delegate is asked about trust`() async throws {
        let spaces = Delivered<URLProtectionSpace>()
        var answers = WebSocketRecorder.Answers()
        answers.challenge = { challenge in
            spaces(challenge.protectionSpace)
            return (.performDefaultHandling, nil)
        }
        let recorder = WebSocketRecorder(answers)
        try await withScenario(
            identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: Self.socket
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/", host: "localhost"))
            task.resume()
            #expect(try await task.nextText() == "hello")
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cCoxME")
            let space = try await spaces.value
            #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust && space.serverTrust != nil)
            #expect(space.host == "localhost" && space.port == server.port)
            let one = try #require(record.metrics?.transactionMetrics.first)
            #expect(one.negotiatedTLSProtocolVersion != nil && one.networkProtocolName == "http/1.1")
            #expect(one.secureConnectionStartDate != nil)
        }
    }

    @Test func `an untrusted certificate fails the task unless the delegate trusts it`() async throws {
        for (identity, code) in [
            (certificates.unknownAuthority, URLError.Code.serverCertificateHasUnknownRoot),
            (certificates.expired, .serverCertificateHasBadDate), (certificates.wrongHost, .serverCertificateUntrusted),
            (certificates.selfSigned, .serverCertificateUntrusted),
        ] {
            let recorder = WebSocketRecorder()
            try await withScenario(
                identity: identity, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: Self.socket
            ) { (server, session) async throws in
                let task = session.webSocketTask(with: server.socketURL("/", host: "localhost"))
                task.send(.string("secret")) { _ in }
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == code || record.code == .serverCertificateUntrusted)
                #expect(record.letters == "cCME" && server.requests.isEmpty)
            }
            for judge in [SessionJudge(.trusting) as any URLSessionDelegate, TaskJudge(.trusting)] {
                try await withScenario(identity: identity, delegate: judge, reply: Self.socket) {
                    (server, session) async throws in
                    let task = session.webSocketTask(with: server.socketURL("/", host: "localhost"))
                    task.resume()
                    #expect(try await task.nextText() == "hello")
                }
            }
        }
    }

    @Test func `a delegate that refuses trust cancels the task`() async throws {
        var answers = WebSocketRecorder.Answers()
        answers.challenge = { _ in (.cancelAuthenticationChallenge, nil) }
        let recorder = WebSocketRecorder(answers)
        try await withScenario(
            identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: Self.socket
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await recorder.completion(of: task).code == .cancelled)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `small and large messages pass over TLS`() async throws {
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { request in
                let frame = WebSocketPeer.frame(2, [UInt8](repeating: 7, count: 300_000))
                return .webSocket(request).then(.repeat(frame, count: 20), .write(WebSocketPeer.frame(8, [0x03, 0xE8])), .stall)
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            for number in 0..<20 {
                let count = try await task.next().payload.count
                try #require(count == 300_000, "message \(number)")
            }
            await expectFailure(.networkConnectionLost) { try await task.receive() }
        }
    }

    @Test func `a TLS connection that closes without a close frame fails the task`() async throws {
        for isAbrupt in [false, true] {
            let recorder = WebSocketRecorder()
            try await withScenario(
                identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { .webSocket($0).then(isAbrupt ? .closeAbruptly : .close) }
            ) { (server, session) async throws in
                let task = session.webSocketTask(with: server.socketURL())
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .networkConnectionLost && task.closeCode == .abnormalClosure)
            }
        }
    }

    @Test func `wss to a cleartext server and ws to a TLS server fail`() async throws {
        var recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder, greeting: { _ in [.awaitBytes(5), .write("HTTP/1.1 400 No\r\n\r\n"), .close] }, reply: Self.socket
        ) { (server, session) async throws in
            let url = try #require(URL(string: "wss://127.0.0.1:\(server.port)/"))
            let task = session.webSocketTask(with: url)
            task.resume()
            #expect(try await recorder.completion(of: task).code == .secureConnectionFailed)
        }
        recorder = WebSocketRecorder()
        try await withScenario(identity: certificates.valid, delegate: recorder, reply: Self.socket) {
            (server, session) async throws in
            let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)/"))
            let task = session.webSocketTask(with: url)
            task.resume()
            let code = try await recorder.completion(of: task).code
            #expect(code == .badServerResponse || code == .networkConnectionLost, "\(String(describing: code))")
        }
    }

    @Test func `only http/1.1 is offered, even besides an HTTP/2 connection`() async throws {
        let caddy = try CaddyServer.start(certificates.valid)
        defer { caddy.stop() }
        try caddy.put(Array("page".utf8), at: "/page")
        let recorder = WebSocketRecorder()
        try await withSession(delegate: recorder) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            #expect(try await session.text(caddy.url("/page")) == "page")
            let url = try #require(URL(string: "wss://localhost:\(caddy.securePort)/page"))
            let task = session.webSocketTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            // Caddy's file server does not support WebSockets: it responds 200 over HTTP/1.1.
            #expect(record.code == .badServerResponse)
            #expect(record.metrics?.transactionMetrics.map(\.networkProtocolName) == ["http/1.1"])
            #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
            // http loads still use the existing connection.
            #expect(try await session.text(caddy.url("/page")) == "page")
        }
    }

    // MARK: HSTS

    @Test func `a ws URL of an HSTS host uses wss`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { $0.path == "/page" ? .ok("", [(Self.field, "max-age=1000")]) : Self.socket($0) }
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url("/page", host: "localhost"))
            let url = try #require(URL(string: "ws://localhost:\(server.port)/socket"))
            let task = session.webSocketTask(with: url)
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(task.currentRequest?.url == server.socketURL("/socket", host: "localhost"))
            #expect(task.originalRequest?.url == url)
            #expect(task.response?.url == server.socketURL("/socket", host: "localhost"))
            let record = try await recorder.completion(of: task)
            #expect(record.redirects.isEmpty && record.metrics?.redirectCount == 0)
        }
    }

    @Test func `an HSTS field in a 101 counts over wss, and is ignored over ws`() async throws {
        try await withScriptedServer(reply: { .greeting($0, [(Self.field, "max-age=1000")]).then(.stall) }) {
            (clear) async throws in
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { request in
                    request.path == "/page" ? .ok("secret") : .greeting(request, [(Self.field, "max-age=1000")]).then(.stall)
                }
            ) { (server, session) async throws in
                for url in [clear.socketURL("/", host: "localhost"), clear.socketURL("/", host: "localhost")] {
                    let task = session.webSocketTask(with: url)
                    task.resume()
                    #expect(try await task.nextText() == "hello", "in clear, again")
                }
                let task = session.webSocketTask(with: server.socketURL("/socket", host: "localhost"))
                task.resume()
                #expect(try await task.nextText() == "hello")
                let url = try #require(URL(string: "http://localhost:\(server.port)/page"))
                #expect(try await session.text(url) == "secret")
            }
        }
    }

    @Test func `no cleartext is sent to an HSTS host`() async throws {
        let recorder = WebSocketRecorder()
        try await withScriptedServer(greeting: { _ in [.awaitBytes(5), .reset] }, reply: Self.socket) { (clear) async throws in
            try await withScenario(
                identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { _ in .ok("", [(Self.field, "max-age=1000")]) }
            ) { (server, session) async throws in
                _ = try await session.data(from: server.url("/", host: "localhost"))
                let task = session.webSocketTask(with: clear.socketURL("/secret", host: "localhost"))
                task.resume()
                let code = try await recorder.completion(of: task).code
                #expect(code == .secureConnectionFailed || code == .networkConnectionLost)
                #expect(clear.requests.isEmpty)
                for connection in 0..<clear.connectionCount {
                    let bytes = clear.received(on: connection)
                    #expect(bytes.isEmpty || bytes.first == 0x16)
                }
            }
        }
    }

    // MARK: App Transport Security

    /// A session that uses the server as a proxy for all requests: names need no lookup.
    private func withProxy(
        _ dictionary: [String: Any]?, delegate: WebSocketRecorder, test: (TunnelProxy, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: Self.socket) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] _ in .tunnel(to: port) }) { (proxy) async throws in
                try await withSession(delegate: delegate) {
                    if let dictionary { $0.appTransportSecurity = dictionary }
                    $0.usesHTTPStrictTransportSecurity = false
                    $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
                } test: { (session) async throws in
                    try await test(proxy, session)
                }
            }
        }
    }

    @Test func `ws to a host name is refused, and nothing is sent`() async throws {
        let recorder = WebSocketRecorder()
        try await withProxy(nil, delegate: recorder) { (proxy, session) async throws in
            for host in ["www.example.com", "WWW.Example.COM", "localhost.example"] {
                let url = try #require(URL(string: "ws://\(host)/"))
                let task = session.webSocketTask(with: url)
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .appTransportSecurityRequiresSecureConnection && record.letters == "cME")
                #expect((record.error as? URLError)?.failingURL == url)
                await expectFailure(.appTransportSecurityRequiresSecureConnection) { try await task.receive() }
            }
            #expect(proxy.connectionCount == 0)
        }
    }

    @Test func `local names, addresses and exceptions are exempt`() async throws {
        let recorder = WebSocketRecorder()
        try await withProxy(nil, delegate: recorder) { (proxy, session) async throws in
            for host in ["printer", "printer.local", "10.0.0.1", "[2001:db8::1]"] {
                let task = session.webSocketTask(with: try #require(URL(string: "ws://\(host)/")))
                task.resume()
                #expect(try await task.nextText() == "hello", "\(host)")
            }
        }
        let rows: [[String: Any]] = [
            ["NSAllowsArbitraryLoads": true],
            ["NSExceptionDomains": ["example.com": ["NSExceptionAllowsInsecureHTTPLoads": true]]],
        ]
        for dictionary in rows {
            try await withProxy(dictionary, delegate: WebSocketRecorder()) { (proxy, session) async throws in
                let task = session.webSocketTask(with: try #require(URL(string: "ws://example.com/")))
                task.resume()
                #expect(try await task.nextText() == "hello")
                #expect(proxy.demands.map(\.target) == ["example.com:80"])
            }
        }
    }

    @Test func `a redirect to ws is refused`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { _ in .redirect(302, to: "ws://www.example.com/") }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .appTransportSecurityRequiresSecureConnection)
        }
    }
}
