// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// SOCKS proxies from `connectionProxyDictionary` and from the environment.
@Suite(.timeLimit(.minutes(1)))
struct SOCKSProxyTests {
    /// The steps of a SOCKS 5 proxy that requires no password.
    private static func five(to port: Int, requestLength: Int) -> [SOCKSProxy.Step] {
        [.take(3), .say([5, 0]), .take(requestLength), .say([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]), .tunnel(port)]
    }

    private static func dictionary(_ port: Int, _ more: [String: Any] = [:]) -> [AnyHashable: Any] {
        var dictionary: [AnyHashable: Any] = ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": port]
        for (key, value) in more { dictionary[key] = value }
        return dictionary
    }

    @Test func `http goes through the proxy, which receives the host name`() async throws {
        try await withScriptedServer(reply: { .ok($0.target) }) { (server) async throws in
            let name = Array("origin.test".utf8)
            try await withSOCKSProxy({ _ in Self.five(to: server.port, requestLength: 7 + name.count) }) { proxy in
                try await withSession {
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    $0.connectionProxyDictionary = Self.dictionary(proxy.port)
                } test: { (session) async throws in
                    for _ in 0..<2 { #expect(try await session.text(URL(string: "http://origin.test/a?b")!) == "/a?b") }
                    #expect(proxy.received == [[5, 1, 0, 5, 1, 0, 3, 11] + name + [0, 80]])
                    #expect(server.requests.map { $0.header("Host") } == ["origin.test", "origin.test"])
                }
            }
        }
    }

    @Test func `https to an address goes through the proxy with a password, and metrics report it`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("secret") }) { (server) async throws in
            let port = [UInt8(server.port >> 8), UInt8(server.port & 255)]
            try await withSOCKSProxy({ _ in
                [
                    .take(4), .say([5, 2]), .take(3 + 3 + 8), .say([1, 0]), .take(10),
                    .say([5, 0, 0, 4] + [UInt8](repeating: 0, count: 18)), .tunnel(server.port),
                ]
            }) { proxy in
                let recorder = MetricsDelegate()
                try await withSession(delegate: recorder) {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = Self.dictionary(
                        proxy.port, ["kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": "lovelace"])
                } test: { (session) async throws in
                    #expect(try await session.text(server.url()) == "secret")
                    let login = [1, 3] + Array("ada".utf8) + [8] + Array("lovelace".utf8)
                    #expect(proxy.received == [[5, 2, 0, 2] + login + [5, 1, 0, 1, 127, 0, 0, 1] + port])
                    #expect(try await recorder.metrics.value.transactionMetrics.map(\.isProxyConnection) == [true])
                }
            }
        }
    }

    @Test func `tasks with delegates of their own share a tunnel`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("secret") }) { (server) async throws in
            try await withSOCKSProxy({ _ in Self.five(to: server.port, requestLength: 10) }) { proxy in
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = Self.dictionary(proxy.port)
                } test: { (session) async throws in
                    let judges: [Judge] = [.trusting, .saying(.performDefaultHandling)]
                    for judge in judges { _ = try await session.data(from: server.url(), delegate: TaskJudge(judge)) }
                    #expect(judges.map(\.all.count) == [1, 1])
                    #expect(proxy.received.count == 1 && server.connectionCount == 1)
                }
            }
        }
    }

    @Test(arguments: [true, false]) func `SOCKS 4a receives the host name, SOCKS 4 the address`(_ isNamed: Bool) async throws {
        try await withScriptedServer(reply: { .ok($0.target) }) { (server) async throws in
            let port = [UInt8(server.port >> 8), UInt8(server.port & 255)]
            try await withSOCKSProxy({ _ in
                [.take(8), .takeStrings(isNamed ? 2 : 1), .say([0, 90, 0, 0, 0, 0, 0, 0]), .tunnel(server.port)]
            }) { proxy in
                try await withSession {
                    if isNamed {
                        $0.connectionProxyDictionary = Self.dictionary(
                            proxy.port,
                            [
                                "kCFStreamPropertySOCKSVersion": "kCFStreamSocketSOCKSVersion4",
                                "kCFStreamPropertySOCKSUser": "ada",
                            ])
                    } else {
                        $0.proxyEnvironment = ["http_proxy": "socks4://ada@127.0.0.1:\(proxy.port)"]
                    }
                } test: { (session) async throws in
                    #expect(try await session.text(server.url("/a", host: "localhost")) == "/a")
                    let place: [UInt8] = isNamed ? [0, 0, 0, 1] : [127, 0, 0, 1]
                    let name = isNamed ? Array("localhost".utf8) + [0] : []
                    #expect(proxy.received == [[4, 1] + port + place + Array("ada".utf8) + [0] + name])
                }
            }
        }
    }

    @Test func `socks5 looks up host names locally, and an unknown name is not blamed on the proxy`() async throws {
        try await withScriptedServer(reply: { .ok($0.target) }) { (server) async throws in
            try await withSOCKSProxy({ _ in Self.five(to: server.port, requestLength: 10) }) { proxy in
                try await withSession {
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    $0.proxyEnvironment = ["all_proxy": "socks5://127.0.0.1:\(proxy.port)"]
                } test: { (session) async throws in
                    #expect(try await session.text(server.url("/a", host: "localhost")) == "/a")
                    #expect(proxy.received.first?.dropFirst(3).prefix(8) == [5, 1, 0, 1, 127, 0, 0, 1])
                    await expectFailure(.cannotFindHost) { try await session.data(from: URL(string: "http://a.invalid/")!) }
                    #expect(proxy.connectionCount == 1)
                }
            }
        }
    }

    @Test(arguments: [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x55] as [UInt8])
    func `a refusal fails the load with its reason, and the connection is closed`(_ code: UInt8) async throws {
        try await withSOCKSProxy({ _ in
            [.take(3), .say([5, 0]), .take(10), .say([5, code, 0, 1, 0, 0, 0, 0, 0, 0]), .waitForClose]
        }) {
            proxy in
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(proxy.port)
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost) {
                    try await session.data(from: URL(string: "http://127.0.0.1:9/")!)
                }
                #expect(error?.localizedDescription.contains("127.0.0.1:\(proxy.port)") == true)
                try await proxy.waitForAllClosed()
                #expect(proxy.connectionCount == 1)
            }
        }
    }

    @Test func `a password that is missing or wrong fails the load with its own code`() async throws {
        let scripts: [[SOCKSProxy.Step]] = [
            [.take(3), .say([5, 0xFF]), .waitForClose], [.take(4), .say([5, 2]), .take(14), .say([1, 1]), .waitForClose],
        ]
        for (script, login) in zip(scripts, [nil, "ada:lovelace@"]) {
            try await withSOCKSProxy({ _ in script }) { proxy in
                try await withSession {
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    $0.proxyEnvironment = ["http_proxy": "socks5h://\(login ?? "")127.0.0.1:\(proxy.port)"]
                } test: { (session) async throws in
                    let error = await expectFailure(.userAuthenticationRequired) {
                        try await session.data(from: URL(string: "http://a.test/")!)
                    }
                    #expect(error?.localizedDescription.contains("lovelace") == false)
                    try await proxy.waitForAllClosed()
                }
            }
        }
    }

    /// The proxy's replies, cut after each byte: it closes the connection there, or falls silent.
    @Test(arguments: [false, true]) func `replies that are cut anywhere fail the load, and leave no connection open`(
        _ stalls: Bool
    ) async throws {
        let (method, verdict, reply): ([UInt8], [UInt8], [UInt8]) = ([5, 2], [1, 0], [5, 0, 0, 1, 127, 0, 0, 1, 0, 80])
        let whole = method + verdict + reply
        try await withGrowingTimes { scale in
            for cut in 0..<whole.count {
                let parts = [
                    Array(whole.prefix(min(cut, 2))), Array(whole[2...].prefix(max(0, min(cut, 4) - 2))),
                    Array(whole[4...].prefix(max(0, cut - 4))),
                ]
                var steps: [SOCKSProxy.Step] = [.take(4), .say(parts[0])]
                if cut >= 2 { steps += [.take(14), .say(parts[1])] }
                if cut >= 4 { steps += [.take(10), .say(parts[2])] }
                let script = steps + (stalls ? [.waitForClose] : [])
                var isAsExpected = true
                try await withSOCKSProxy({ _ in script }) { proxy in
                    try await withSession {
                        $0.timeoutIntervalForRequest = stalls ? 0.2 * scale : 20
                        $0.connectionProxyDictionary = Self.dictionary(
                            proxy.port, ["kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": "lovelace"])
                    } test: { (session) async throws in
                        let error = await expectFailure(.timedOut, .cannotConnectToHost, in: "cut \(cut)") {
                            try await session.data(from: URL(string: "http://127.0.0.1:9/")!)
                        }
                        isAsExpected = error?.code == (stalls ? .timedOut : .cannotConnectToHost)
                        try await proxy.waitForAllClosed()
                        #expect(proxy.connectionCount == 1)
                    }
                }
                if !isAsExpected { return false }
            }
            return true
        }
    }

    @Test(
        arguments: [
            [.take(3), .say(Array("HTTP/1.1 200 OK\r\n\r\n".utf8)), .waitForClose], [.take(3), .say([5, 0, 5]), .waitForClose],
            [.take(3), .say([5, 1]), .waitForClose], [.take(3), .say([5, 2]), .waitForClose],
            [.take(3), .say([4, 0]), .waitForClose],
            [.take(3), .say([5, 0]), .take(10), .say([5, 0, 0, 9, 0, 0, 0, 0, 0, 0]), .waitForClose],
            [.take(3), .say([5, 0]), .take(10), .say([5, 0, 0, 1, 0, 0, 0, 0, 0, 0] + Array("HTTP".utf8)), .waitForClose],
            [.say([5, 0, 5, 0]), .waitForClose],
        ] as [[SOCKSProxy.Step]])
    func `replies that are not SOCKS fail the load`(_ script: [SOCKSProxy.Step]) async throws {
        try await withSOCKSProxy({ _ in script }) { proxy in
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(proxy.port)
            } test: { (session) async throws in
                await expectFailure(.cannotConnectToHost) { try await session.data(from: URL(string: "http://127.0.0.1:9/")!) }
                try await proxy.waitForAllClosed()
            }
        }
    }

    @Test func `a connection through one proxy, or for one user, is not used for another`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.connection)") }) { (server) async throws in
            try await withSOCKSProxy({ _ in Self.five(to: server.port, requestLength: 10) }) { proxy in
                try await withSession {
                    $0.connectionProxyDictionary = Self.dictionary(
                        proxy.port, ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": 9])
                } test: { (session) async throws in
                    #expect(try await session.text(server.url()) == "0")
                    #expect(try await session.text(server.url()) == "0")
                    let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
                    await expectFailure(.cannotConnectToHost) { try await session.data(from: url) }
                    #expect(proxy.connectionCount == 1)
                }
            }
        }
    }
}

private final class MetricsDelegate: NSObject, URLSessionTaskDelegate {
    let metrics = Delivered<URLSessionTaskMetrics>()

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.metrics(metrics)
    }
}
