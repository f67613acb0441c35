// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `proxyConfigurations`: CONNECT for all schemes, domains, failover, credentials.
@Suite(.timeLimit(.minutes(1)))
struct ProxyConfigurationTests {
    private static func connect(_ port: Int, failover: Bool = false) -> ProxyConfiguration {
        var proxy = ProxyConfiguration(
            httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: NWEndpoint.Port(rawValue: UInt16(port))))
        proxy.allowFailover = failover
        return proxy
    }

    private func withServer(
        proxies: [@Sendable (TunnelProxy.Demand, Int) -> TunnelProxy.Answer] = [{ .tunnel(to: $1) }],
        test: (ScriptedServer, [TunnelProxy]) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: { .ok("\($0.method) \($0.target) \($0.bodyText)") }) { (server) async throws in
            let running = try proxies.map { answer in try TunnelProxy { [port = server.port] in answer($0, port) } }
            defer { for proxy in running { proxy.stop() } }
            try await test(server, running)
        }
    }

    @Test func `http goes through a tunnel, too`() async throws {
        try await withServer { (server, proxies) async throws in
            try await withSession {
                $0.proxyConfigurations = [Self.connect(proxies[0].port)]
                $0.connectionProxyDictionary = ["HTTPEnable": 1]
            } test: { (session) async throws in
                for _ in 0..<2 { #expect(try await session.text(server.url("/a")) == "GET /a ") }
                #expect(proxies[0].demands.map(\.target) == ["127.0.0.1:\(server.port)"])
                #expect(proxies[0].demands.map(\.method) == ["CONNECT"])
            }
        }
    }

    @Test func `domains decide which proxy a request uses`() async throws {
        try await withServer(proxies: [{ .tunnel(to: $1) }, { .tunnel(to: $1) }]) { (server, proxies) async throws in
            var (one, two) = (Self.connect(proxies[0].port), Self.connect(proxies[1].port))
            one.matchDomains = ["one.test"]
            one.excludedDomains = ["not.one.test"]
            two.excludedDomains = ["127.0.0.1"]
            try await withSession {
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                $0.proxyConfigurations = [one, two]
            } test: { (session) async throws in
                for host in ["one.test", "a.one.test", "not.one.test", "b.test", "127.0.0.1"] {
                    #expect(try await session.text(server.url("/a", host: host)) == "GET /a ")
                }
                let port = server.port
                #expect(proxies[0].demands.map(\.target) == ["one.test:\(port)", "a.one.test:\(port)"])
                #expect(proxies[1].demands.map(\.target) == ["not.one.test:\(port)", "b.test:\(port)"])
            }
        }
    }

    /// Responses of broken proxies.
    private static let broken: [@Sendable (TunnelProxy.Demand, Int) -> TunnelProxy.Answer] = [
        { _, _ in .say("", closes: true) }, { _, _ in .say("HTTP/1.1 200 OK\r\nX: ", closes: true) },
        { _, _ in .say("SSH-2.0-OpenSSH_9.2\r\n") },
    ]

    @Test(arguments: 0..<3) func `the next proxy replaces a broken one, and is tried first from then on`(
        _ row: Int
    ) async throws {
        try await withServer(proxies: [Self.broken[row], { .tunnel(to: $1) }]) { (server, proxies) async throws in
            try await withSession {
                $0.proxyConfigurations = [Self.connect(proxies[0].port, failover: true), Self.connect(proxies[1].port)]
            } test: { (session) async throws in
                var request = URLRequest(server.url("/a"), method: "POST")
                request.httpBodyStream = InputStream(data: Data("body".utf8))
                #expect(try await session.text(request).text == "POST /a body")
                #expect(try await session.text(server.url("/b", host: "localhost")) == "GET /b ")
                #expect(proxies[0].demands.count == 1)
                #expect(proxies[1].demands.count == 2)
                #expect(server.requests.count == 2)
            }
        }
    }

    @Test func `a direct connection replaces the last proxy if it allows failover`() async throws {
        try await withServer { (server, _) async throws in
            let gone = try RefusingPort()
            try await withSession {
                $0.proxyConfigurations = [Self.connect(gone.number, failover: true)]
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/a")) == "GET /a ")
            }
            try await withSession {
                $0.proxyConfigurations = [Self.connect(gone.number), Self.connect(1)]
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost) { try await session.data(from: server.url()) }
                #expect(error?.localizedDescription.contains("the proxy 127.0.0.1:\(gone.number)") == true)
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a proxy that refuses a request is not bypassed`() async throws {
        let refusals = ["403 No", "407 Who", "502 Bad"]
        for refusal in refusals {
            try await withServer(proxies: [{ _, _ in .say("HTTP/1.1 \(refusal)\r\nContent-Length: 0\r\n\r\n") }]) {
                (server, proxies) async throws in
                try await withSession {
                    $0.proxyConfigurations = [Self.connect(proxies[0].port, failover: true)]
                } test: { (session) async throws in
                    await expectFailure(.cannotConnectToHost, .userAuthenticationRequired) {
                        try await session.data(from: server.url())
                    }
                    #expect(server.connectionCount == 0 && proxies[0].demands.count == 1)
                }
            }
        }
    }

    @Test func `a credential is only sent to its own proxy`() async throws {
        let gate: @Sendable (TunnelProxy.Demand, Int) -> TunnelProxy.Answer = {
            $0.authorization == nil
                ? .say("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"g\"\r\nContent-Length: 0\r\n\r\n") : .tunnel(to: $1)
        }
        try await withServer(proxies: [gate, gate]) { (server, proxies) async throws in
            var one = Self.connect(proxies[0].port)
            one.matchDomains = ["localhost"]
            one.applyCredential(username: "ada", password: "lovelace")
            #expect(!one.debugDescription.contains("lovelace"))
            try await withSession {
                $0.proxyConfigurations = [one, Self.connect(proxies[1].port)]
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/a", host: "localhost")) == "GET /a ")
                await expectFailure(.userAuthenticationRequired) { try await session.data(from: server.url("/a")) }
                #expect(proxies[0].demands.map(\.authorization) == [nil, basic("ada", "lovelace")])
                #expect(proxies[1].demands.map(\.authorization) == [nil])
            }
        }
    }

    @Test func `SOCKS 5 supports host names, users and passwords`() async throws {
        let socks = try SmallServer.microsocks(user: "ada", password: "lovelace")
        defer { socks.stop() }
        try await withServer { (server, _) async throws in
            for password in ["lovelace", "wrong"] {
                var proxy = ProxyConfiguration(
                    socksv5Proxy: .hostPort(host: "127.0.0.1", port: NWEndpoint.Port(rawValue: UInt16(socks.port))))
                proxy.applyCredential(username: "ada", password: password)
                proxy.allowFailover = true
                try await withSession {
                    $0.proxyConfigurations = [proxy]
                } test: { (session) async throws in
                    if password == "lovelace" {
                        #expect(try await session.text(server.url("/a", host: "localhost")) == "GET /a ")
                    } else {
                        await expectFailure(.userAuthenticationRequired) { try await session.data(from: server.url("/a")) }
                    }
                }
            }
        }
    }

    @Test func `an invalid host or port fails the load`() async throws {
        try await withServer { (server, _) async throws in
            for endpoint: NWEndpoint in [
                .hostPort(host: "", port: 80), .hostPort(host: "http://127.0.0.1", port: 80),
                .hostPort(host: "127.0.0.1", port: 0),
            ] {
                try await withSession {
                    var proxy = ProxyConfiguration(httpCONNECTProxy: endpoint)
                    proxy.allowFailover = true
                    $0.proxyConfigurations = [proxy]
                } test: { (session) async throws in
                    let error = await expectFailure(.cannotConnectToHost) { try await session.data(from: server.url()) }
                    #expect(error?.localizedDescription.hasPrefix("proxyConfigurations: ") == true)
                }
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `a configuration and its copies keep the proxies`() {
        let configuration = URLSessionConfiguration.ephemeral
        #expect(configuration.proxyConfigurations.isEmpty)
        configuration.proxyConfigurations = [Self.connect(8_080, failover: true)]
        let copy = configuration.copy() as? URLSessionConfiguration
        #expect(copy?.proxyConfigurations.map(\.debugDescription) == ["HTTP CONNECT proxy 127.0.0.1:8080, allows failover"])
    }

    @Test func `a response to CONNECT that is cut anywhere fails the load`() async throws {
        let answer = "HTTP/1.1 200 Fine\r\nVia: x\r\n\r\n"
        for cut in 0..<answer.count {
            try await withServer(proxies: [{ _, _ in .say(String(answer.prefix(cut)), closes: true) }]) {
                (server, proxies) async throws in
                try await withSession {
                    $0.proxyConfigurations = [Self.connect(proxies[0].port)]
                } test: { (session) async throws in
                    await expectFailure(.cannotConnectToHost, in: "cut \(cut)") { try await session.data(from: server.url()) }
                    try await proxies[0].waitForAllClosed()
                    #expect(proxies[0].connectionCount == 1)
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `a load through a relay fails, and does not bypass it`(failover: Bool) async throws {
        let relay = ProxyConfiguration.RelayHop(http2RelayEndpoint: .hostPort(host: "127.0.0.1", port: 9))
        var relays = ProxyConfiguration(relayHops: [relay])
        relays.allowFailover = failover
        var oblivious = ProxyConfiguration(
            obliviousHTTPRelay: relay, relayResourcePath: "/", gatewayKeyConfig: Data(), matchDomains: ["127.0.0.1"])
        oblivious.allowFailover = failover
        for (name, configuration) in [("a relay", relays), ("Oblivious HTTP", oblivious)] {
            try await withServer { (server, _) async throws in
                try await withSession {
                    $0.proxyConfigurations = [configuration]
                } test: { (session) async throws in
                    let error = await expectFailure(.cannotConnectToHost) { try await session.text(server.url("/a")) }
                    #expect(error?.localizedDescription.contains(name) == true)
                    #expect(server.connectionCount == 0)
                }
            }
        }
    }
}
