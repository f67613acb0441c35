// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Stream tasks through proxies: CONNECT tunnels and SOCKS.
@Suite(.timeLimit(.minutes(1)))
struct StreamProxyTests {
    /// An echo server, a proxy that tunnels to it, and a session that uses the proxy.
    private func withTunnel(
        delegate: StreamRecorder = StreamRecorder(),
        settings: @escaping (Int) -> [AnyHashable: Any] = { proxyDictionary(http: $0, https: $0) },
        proxy answer: @escaping @Sendable (TunnelProxy.Demand, _ port: Int) -> TunnelProxy.Answer = { .tunnel(to: $1) },
        test: (StreamPeer, TunnelProxy, URLSession) async throws -> Void
    ) async throws {
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        try await withTunnelProxy({ [port = peer.port] in answer($0, port) }) { (proxy) async throws in
            try await withSession(delegate: delegate) {
                $0.connectionProxyDictionary = settings(proxy.port)
            } test: { (session) async throws in
                try await test(peer, proxy, session)
            }
        }
    }

    private func exchange(_ task: URLSessionStreamTask, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        task.resume()
        for text in ["hello", "again"] {
            try await task.send(text)
            #expect(try await task.text(5) == text, sourceLocation: sourceLocation)
        }
    }

    @Test func `CONNECT names the host and port, for names and for addresses`() async throws {
        let recorder = StreamRecorder()
        try await withTunnel(delegate: recorder) { (_, proxy, session) async throws in
            for (host, port, target) in [
                ("mail.test", 25, "mail.test:25"), ("127.0.0.1", 7, "127.0.0.1:7"), ("::1", 7, "[::1]:7"),
                ("localhost", 443, "localhost:443"),
            ] {
                let task = session.stream(to: port, host: host)
                try await exchange(task)
                let demand = try #require(proxy.demands.last)
                #expect(demand.head.hasPrefix("CONNECT \(target) HTTP/1.1\r\n"), "\(demand.head)")
                task.closeWrite()
                let record = try await recorder.completion(of: task)
                #expect(record.metrics?.transactionMetrics.map(\.isProxyConnection) == [true])
            }
        }
    }

    @Test func `stream tasks use the proxy for https`() async throws {
        try await withTunnel(settings: { proxyDictionary(https: $0) }) { (_, proxy, session) async throws in
            try await exchange(session.stream(to: 25, host: "mail.test"))
            #expect(proxy.demands.map(\.target) == ["mail.test:25"])
        }
    }

    @Test func `a host in the exceptions list is connected directly`() async throws {
        try await withTunnel(settings: { proxyDictionary(http: $0, https: $0, ["ExceptionsList": ["localhost"]]) }) {
            (peer, proxy, session) async throws in
            try await exchange(session.stream(to: peer.port, host: "localhost"))
            #expect(proxy.connectionCount == 0)
        }
    }

    @Test func `bytes after the proxy's 200 belong to the server`() async throws {
        try await withTunnel(proxy: { .tunnel(to: $1, extra: "220 ready\r\n") }) { (_, _, session) async throws in
            let task = session.stream(to: 25, host: "mail.test")
            task.resume()
            #expect(try await task.line() == "220 ready\r\n")
            try await exchange(task)
        }
    }

    @Test func `bytes that a proxy adds after its 200 fail the TLS handshake`() async throws {
        let recorder = StreamRecorder()
        try await withTunnel(delegate: recorder, proxy: { .tunnel(to: $1, extra: "INJECTED") }) { (_, _, session) async throws in
            let task = session.stream(to: 465, host: "mail.test")
            task.startSecureConnection()
            let calls = StreamCalls()
            calls.read(task, 1, 100)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .secureConnectionFailed, "\(String(describing: record.error))")
            #expect(try await calls.ends().allSatisfy { $0.piece == nil })
        }
    }

    @Test func `a proxy that refuses the tunnel fails the task`() async throws {
        let recorder = StreamRecorder()
        try await withTunnel(delegate: recorder, proxy: { _, _ in .say("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n") }) {
            (peer, _, session) async throws in
            let task = session.stream(to: 25, host: "mail.test")
            let calls = StreamCalls()
            calls.read(task)
            calls.write(task, "secret")
            task.resume()
            let code = try #require(try await recorder.completion(of: task).code)
            #expect(code == .cannotConnectToHost, "\(code.rawValue)")
            #expect(try await calls.ends().map(\.code) == [code, code])
            #expect(peer.connectionCount == 0)
        }
    }

    @Test func `a proxy that cannot be reached fails the task`() async throws {
        let port = try RefusingPort()
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) {
            $0.connectionProxyDictionary = proxyDictionary(http: port.number, https: port.number)
        } test: { (session) async throws in
            let task = session.stream(to: 25, host: "mail.test")
            task.resume()
            await expectFailure(.cannotConnectToHost) { try await task.piece() }
            #expect(try await recorder.completion(of: task).code == .cannotConnectToHost)
        }
    }

    @Test func `the delegate answers a 407`() async throws {
        let recorder = StreamRecorder { challenge in
            challenge.protectionSpace.isProxy()
                ? (.useCredential, URLCredential(user: "ada", password: "lovelace", persistence: .none))
                : (.performDefaultHandling, nil)
        }
        let refusal = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 0\r\n\r\n"
        try await withTunnel(
            delegate: recorder,
            proxy: { $0.authorization == basic("ada", "lovelace") ? .tunnel(to: $1) : .say(refusal) }
        ) { (_, proxy, session) async throws in
            try await exchange(session.stream(to: 25, host: "mail.test"))
            #expect(proxy.demands.map(\.authorization) == [nil, basic("ada", "lovelace")])
        }
        let silent = StreamRecorder()
        try await withTunnel(delegate: silent, proxy: { _, _ in .say(refusal) }) { (peer, _, session) async throws in
            let task = session.stream(to: 25, host: "mail.test")
            task.resume()
            #expect(try await silent.completion(of: task).code == .userAuthenticationRequired)
            #expect(peer.connectionCount == 0)
        }
    }

    @Test func `a SOCKS 5 proxy is sent the host name`() async throws {
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        let name = Array("mail.test".utf8)
        let steps: [SOCKSProxy.Step] = [
            .take(3), .say([5, 0]), .take(7 + name.count), .say([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]), .tunnel(peer.port),
        ]
        try await withSOCKSProxy({ _ in steps }) { (proxy) async throws in
            try await withSession {
                $0.connectionProxyDictionary = ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": proxy.port]
            } test: { (session) async throws in
                try await exchange(session.stream(to: 25, host: "mail.test"))
                #expect(proxy.received == [[5, 1, 0, 5, 1, 0, 3, 9] + name + [0, 25]])
            }
        }
    }

    @Test func `stream tasks work through independent proxies`() async throws {
        let peer = try StreamPeer(streamEcho)
        let tiny = try SmallServer.tinyproxy()
        let small = try SmallServer.microsocks(user: "ada", password: "lovelace")
        let dante = try SmallServer.dante()
        defer {
            peer.stop()
            for proxy in [tiny, small, dante] { proxy.stop() }
        }
        for settings in [
            ["http_proxy": "http://127.0.0.1:\(tiny.port)", "https_proxy": "http://127.0.0.1:\(tiny.port)"],
            ["all_proxy": "socks5h://ada:lovelace@127.0.0.1:\(small.port)"], ["all_proxy": "socks5://127.0.0.1:\(dante.port)"],
            ["all_proxy": "socks4://127.0.0.1:\(dante.port)"],
        ] {
            let recorder = StreamRecorder()
            try await withSession(delegate: recorder) {
                $0.proxyEnvironment = settings
            } test: { (session) async throws in
                for host in ["127.0.0.1", "localhost"] {
                    let task = session.stream(to: peer.port, host: host)
                    try await exchange(task)
                    task.closeWrite()
                    #expect(try await task.piece() == .end, "\(settings)")
                    let record = try await recorder.completion(of: task)
                    #expect(record.metrics?.transactionMetrics.map(\.isProxyConnection) == [true], "\(settings) \(host)")
                }
            }
        }
    }
}
