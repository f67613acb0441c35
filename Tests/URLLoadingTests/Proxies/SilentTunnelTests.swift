// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Proxies that accept connections but make no tunnel.
///
/// Runs in its own process, whose clock the tests advance.
@Suite(.timeLimit(.minutes(5))) struct SilentTunnelProcessTests {
    @Test func `a silent proxy is bypassed if there is another way`() async throws {
        let library = try PreloadedLibrary(source: TestClock.source)
        try await SeparateProcess.run(
            "SilentTunnelTests", environment: library.environment.merging(["NSAllowsArbitraryLoads": "YES"]) { $1 })
    }
}

/// Proxies that make tunnels, used for `localhost` only.
///
/// The time limits use the clock that the tests advance.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SilentTunnelTests")), .timeLimit(.minutes(12))) struct SilentTunnelTests {
    private static func port(_ number: Int) -> NWEndpoint {
        .hostPort(host: "127.0.0.1", port: NWEndpoint.Port(rawValue: UInt16(number)))
    }

    private static func connect(_ port: Int, failover: Bool = false, overTLS: Bool = false) -> ProxyConfiguration {
        var proxy = ProxyConfiguration(httpCONNECTProxy: Self.port(port), tlsOptions: overTLS ? NWProtocolTLS.Options() : nil)
        proxy.allowFailover = failover
        proxy.matchDomains = ["localhost"]
        return proxy
    }

    private func withSession(
        _ server: ScriptedServer, _ proxies: [ProxyConfiguration], delegate: (any URLSessionDelegate)? = nil,
        test: (URLSession) async throws -> Void
    ) async throws {
        let certificates = try TestCertificates.shared.get()
        try await URLLoadingTests.withSession(delegate: delegate) {
            $0.timeoutIntervalForRequest = 60
            $0.tlsTrustRoots = [certificates.root]
            $0.proxyConfigurations = proxies
        } test: { session in
            try await test(session)
        }
    }

    private func withServer(isSecure: Bool = false, _ test: (ScriptedServer) async throws -> Void) async throws {
        let identity = isSecure ? try TestCertificates.shared.get().valid : nil
        try await withScriptedServer(identity: identity, reply: { .ok("\($0.method) \($0.target) \($0.bodyText)") }, test: test)
    }

    private static func post(_ text: String, to url: URL, by session: URLSession) async throws -> String {
        var request = URLRequest(url, method: "POST")
        request.httpBodyStream = InputStream(data: Data(text.utf8))
        return try await session.text(request).text
    }

    @Test func `an unanswered CONNECT moves to the next proxy, which is tried first for five minutes`() async throws {
        try await withServer { (server) async throws in
            let silent = try TunnelProxy { _ in .say("") }
            let good = try TunnelProxy { [port = server.port] _ in .tunnel(to: port) }
            defer {
                silent.stop()
                good.stop()
            }
            let proxies = [Self.connect(silent.port, failover: true), Self.connect(good.port)]
            try await withSession(server, proxies) { session in
                let posted = server.url("/a", host: "localhost")
                async let first = Self.post("body", to: posted, by: session)
                try await silent.waitForDemands(1)
                try await TestClock.leap(11)
                #expect(try await first == "POST /a body")
                let request = URLRequest(
                    server.url("/b", host: "localhost"), headers: ["Proxy-Authorization": "another tunnel"])
                #expect(try await session.text(request).text == "GET /b ")
                #expect(silent.demands.count == 1)
                #expect(good.demands.count == 2)
                try await TestClock.leap(300)
                let url = server.url("/c", host: "localhost")
                async let later = session.text(url)
                try await silent.waitForDemands(2)
                try await TestClock.leap(11)
                #expect(try await later == "GET /c ")
                try await silent.waitForAllClosed()
            }
        }
    }

    @Test func `a load without another way waits for the proxy`() async throws {
        let gate = DispatchSemaphore(value: 0)
        try await withServer { (server) async throws in
            let slow = try TunnelProxy { [port = server.port] _ in
                gate.wait()
                return .tunnel(to: port)
            }
            defer { slow.stop() }
            try await withSession(server, [Self.connect(slow.port)]) { session in
                let url = server.url("/a", host: "localhost")
                async let text = session.text(url)
                try await slow.waitForDemands(1)
                try await TestClock.leap(30)
                #expect(try await session.text(server.url("/beside")) == "GET /beside ")
                gate.signal()
                #expect(try await text == "GET /a ")
                #expect(slow.connectionCount == 1)
            }
        }
    }

    @Test func `the time limit of the proxy does not run during a challenge, and starts anew afterwards`() async throws {
        let gate = DispatchSemaphore(value: 0)
        let asked = ProxyQuestions()
        try await withServer { (server) async throws in
            let proxy = try TunnelProxy { [port = server.port] demand in
                guard demand.authorization != nil else {
                    return .say("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"g\"\r\nContent-Length: 0\r\n\r\n")
                }
                gate.wait()
                return .tunnel(to: port)
            }
            defer { proxy.stop() }
            try await withSession(server, [Self.connect(proxy.port, failover: true)], delegate: asked) { session in
                let url = server.url("/a", host: "localhost")
                async let text = session.text(url)
                let answer = try await asked.answers.value
                try await TestClock.leap(30)
                #expect(try await session.text(server.url("/beside")) == "GET /beside ")
                answer(.useCredential, URLCredential(user: "ada", password: "lovelace", persistence: .none))
                try await proxy.waitForDemands(2)
                try await TestClock.leap(9)
                #expect(try await session.text(server.url("/beside")) == "GET /beside ")
                gate.signal()
                #expect(try await text == "GET /a ")
                #expect(proxy.demands.count == 2)
            }
        }
    }

    /// If HTTP/2 is possible, all loads share one dial; otherwise six of them have their own.
    @Test(arguments: [true, false], [false, true])
    func `all loads that wait for a silent SOCKS proxy wait only once`(isSecure: Bool, beginsToTalk: Bool) async throws {
        let script: [SOCKSProxy.Step] =
            beginsToTalk ? [.take(3), .say([5, 0]), .take(7), .waitForClose] : [.take(3), .waitForClose]
        try await withServer(isSecure: isSecure) { (server) async throws in
            try await withSOCKSProxy({ _ in script }) { proxy in
                var configuration = ProxyConfiguration(socksv5Proxy: Self.port(proxy.port))
                configuration.allowFailover = true
                configuration.matchDomains = ["localhost"]
                try await withSession(server, [configuration]) { session in
                    let texts = Delivered<String>()
                    for _ in 0..<8 {
                        let task = session.dataTask(with: server.url("/a", host: "localhost")) { data, _, error in
                            texts(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(String(describing: error))")
                        }
                        task.resume()
                    }
                    let dialCount = isSecure ? 1 : 6
                    try await proxy.waitForBytes(beginsToTalk ? 10 : 3, connections: dialCount)
                    try await TestClock.leap(11)
                    try await texts.count(reaches: 8)
                    #expect(texts.all.allSatisfy { $0 == "GET /a " }, "\(texts.all)")
                    #expect(proxy.connectionCount == dialCount)
                    try await proxy.waitForAllClosed()
                }
            }
        }
    }

    @Test func `a proxy that is silent in the TLS handshake is bypassed`() async throws {
        try await withServer { (server) async throws in
            try await withSOCKSProxy({ _ in [.take(1), .waitForClose] }) { proxy in
                try await withSession(server, [Self.connect(proxy.port, failover: true, overTLS: true)]) { session in
                    let url = server.url("/a", host: "localhost")
                    async let text = session.text(url)
                    try await proxy.waitForBytes(1)
                    try await TestClock.leap(11)
                    #expect(try await text == "GET /a ")
                }
            }
        }
    }
}

private final class ProxyQuestions: NSObject, URLSessionTaskDelegate, Sendable {
    let answers = Delivered<@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void>()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        answers(completionHandler)
    }
}
