// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// WebSockets through proxies: both ws and wss use a tunnel (RFC 6455, section 4.1).
@Suite(.timeLimit(.minutes(1)))
struct WebSocketProxyTests {
    private static let refusal = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 3\r\n\r\nno!"
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// A server that sends a greeting, a proxy, and a session that uses the proxy.
    private func withTunnel(
        isSecure: Bool = false, delegate: WebSocketRecorder = WebSocketRecorder(),
        settings: @escaping (Int) -> [AnyHashable: Any] = { proxyDictionary(http: $0, https: $0) },
        proxy answer: @escaping @Sendable (TunnelProxy.Demand, _ port: Int) -> TunnelProxy.Answer = { .tunnel(to: $1) },
        test: (ScriptedServer, TunnelProxy, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(
            identity: isSecure ? certificates.valid : nil, reply: { .greeting($0).then(.stall) }
        ) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] in answer($0, port) }) { (proxy) async throws in
                try await withSession(delegate: delegate) {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = settings(proxy.port)
                } test: { (session) async throws in
                    try await test(server, proxy, session)
                }
            }
        }
    }

    @Test(arguments: [false, true]) func `ws and wss both use a tunnel`(isSecure: Bool) async throws {
        let recorder = WebSocketRecorder()
        try await withTunnel(isSecure: isSecure, delegate: recorder) { (server, proxy, session) async throws in
            let request = URLRequest(
                server.socketURL("/path?query", host: "localhost"),
                headers: ["Authorization": "Bearer mine", "X-Mine": "1", "Proxy-Authorization": "Basic stray"])
            let task = session.webSocketTask(with: request)
            task.resume()
            #expect(try await task.nextText() == "hello")
            let demand = try #require(proxy.demands.first)
            #expect(demand.head.hasPrefix("CONNECT localhost:\(server.port) HTTP/1.1\r\n"))
            for name in ["Authorization", "X-Mine", "Upgrade", "Sec-WebSocket-Key", "Cookie"] {
                #expect(demand.values(of: name) == [], "\(name)")
            }
            let seen = try #require(server.requests.first)
            #expect(seen.target == "/path?query" && seen.header("Host") == "localhost:\(server.port)")
            #expect(seen.authorization == "Bearer mine" && seen.proxyAuthorization == nil)
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.metrics?.transactionMetrics.map(\.isProxyConnection) == [true])
        }
    }

    @Test func `ws uses the proxy for http`() async throws {
        try await withTunnel(settings: { proxyDictionary(http: $0) }) { (server, proxy, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(proxy.demands.map(\.target) == ["127.0.0.1:\(server.port)"])
        }
    }

    @Test func `wss uses the proxy for https`() async throws {
        try await withTunnel(isSecure: true, settings: { proxyDictionary(https: $0) }) { (server, proxy, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(proxy.demands.map(\.target) == ["127.0.0.1:\(server.port)"])
        }
    }

    @Test func `a host in the exceptions list is connected directly`() async throws {
        try await withTunnel(settings: { proxyDictionary(http: $0, https: $0, ["ExceptionsList": ["localhost"]]) }) {
            (server, proxy, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/", host: "localhost"))
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(proxy.connectionCount == 0)
        }
    }

    @Test(arguments: [("ws", 80), ("wss", 443)]) func `a URL without a port uses the scheme's default`(
        scheme: String, port: Int
    ) async throws {
        let recorder = WebSocketRecorder()
        try await withTunnel(delegate: recorder, proxy: { _, _ in .say("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n") }) {
            (server, proxy, session) async throws in
            let task = session.webSocketTask(with: try #require(URL(string: "\(scheme)://printer/")))
            task.resume()
            #expect(try await recorder.completion(of: task).code == .cannotConnectToHost)
            #expect(proxy.demands.map(\.target) == ["printer:\(port)"])
            #expect(server.connectionCount == 0)
        }
    }

    @Test(arguments: [false, true]) func `the delegate answers a 407 to CONNECT`(isSecure: Bool) async throws {
        let spaces = Delivered<URLProtectionSpace>()
        var answers = WebSocketRecorder.Answers()
        answers.challenge = { challenge in
            guard challenge.protectionSpace.isProxy() else { return (.performDefaultHandling, nil) }
            spaces(challenge.protectionSpace)
            return (.useCredential, .ada())
        }
        let recorder = WebSocketRecorder(answers)
        try await withTunnel(
            isSecure: isSecure, delegate: recorder,
            proxy: { $0.authorization == basic("ada", "lovelace") ? .tunnel(to: $1) : .say(Self.refusal) }
        ) { (server, proxy, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(proxy.demands.map(\.authorization) == [nil, basic("ada", "lovelace")])
            #expect(server.requests.allSatisfy { $0.proxyAuthorization == nil && $0.authorization == nil })
            let space = try await spaces.value
            #expect(space.realm == "gate" && space.host == "127.0.0.1" && space.port == proxy.port)
        }
    }

    @Test func `an unanswered 407 fails the task, as for https`() async throws {
        let recorder = WebSocketRecorder()
        try await withTunnel(delegate: recorder, proxy: { _, _ in .say(Self.refusal) }) { (server, proxy, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .userAuthenticationRequired && record.letters == "cCME")
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `bytes after the proxy's 200 belong to the server`() async throws {
        // The proxy forges the server's response: the bytes directly after its 200 count as the server's.
        let recorder = WebSocketRecorder()
        try await withTunnel(
            delegate: recorder, proxy: { .tunnel(to: $1, extra: "HTTP/1.1 101 Forged\r\nUpgrade: websocket\r\n\r\n") }
        ) { (server, proxy, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(!record.letters.contains("o"))
            #expect(
                record.code == .badServerResponse || record.code == .cannotConnectToHost || record.code == .networkConnectionLost)
        }
    }

    @Test func `a SOCKS 5 proxy is sent the host name`() async throws {
        try await withScriptedServer(reply: { .greeting($0).then(.stall) }) { (server) async throws in
            let name = Array("origin.test".utf8)
            let steps: [SOCKSProxy.Step] = [
                .take(3), .say([5, 0]), .take(7 + name.count), .say([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]), .tunnel(server.port),
            ]
            try await withSOCKSProxy({ _ in steps }) { proxy in
                try await withSession {
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    $0.connectionProxyDictionary = ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": proxy.port]
                } test: { (session) async throws in
                    let task = session.webSocketTask(with: try #require(URL(string: "ws://origin.test/a")))
                    task.resume()
                    #expect(try await task.nextText() == "hello")
                    #expect(proxy.received == [[5, 1, 0, 5, 1, 0, 3, 11] + name + [0, 80]])
                    #expect(server.requests.map { $0.header("Host") } == ["origin.test"])
                }
            }
        }
    }

    @Test func `WebSockets through independent proxies`() async throws {
        let server = try WebSocketsServer.start(certificates.valid)
        defer { server.stop() }
        let tiny = try SmallServer.tinyproxy()
        let small = try SmallServer.microsocks(user: "ada", password: "lovelace")
        let dante = try SmallServer.dante()
        defer { for proxy in [tiny, small, dante] { proxy.stop() } }
        for settings in [
            ["http_proxy": "http://127.0.0.1:\(tiny.port)", "https_proxy": "http://127.0.0.1:\(tiny.port)"],
            ["all_proxy": "socks5h://ada:lovelace@127.0.0.1:\(small.port)"], ["all_proxy": "socks5://127.0.0.1:\(dante.port)"],
        ] {
            let recorder = WebSocketRecorder()
            try await withSession(delegate: recorder) {
                $0.tlsTrustRoots = [certificates.root]
                $0.proxyEnvironment = settings
            } test: { (session) async throws in
                for access in [WebSocketsServer.Access.clear, .secure] {
                    let task = session.webSocketTask(with: server.url("/echo", access))
                    task.resume()
                    for number in 0..<10 {
                        try await task.send(.string("\(number)"))
                        #expect(try await task.nextText() == "\(number)")
                    }
                    task.cancel(with: .normalClosure, reason: nil)
                    let record = try await recorder.completion(of: task)
                    #expect(record.error == nil)
                    #expect(record.metrics?.transactionMetrics.map(\.isProxyConnection) == [true], "\(settings)")
                }
            }
        }
    }
}
