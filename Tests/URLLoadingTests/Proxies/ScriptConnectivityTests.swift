// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Scripts at a URL while there is no network.
@Suite(.timeLimit(.minutes(2)))
struct ScriptConnectivityTests {
    private static let proxied = "the proxy's"

    /// A server that is only reachable through the script's proxy, and a session with that script.
    private func withScript(
        _ network: TestNetwork, delegate: (any URLSessionDelegate)? = nil,
        _ configure: (URLSessionConfiguration) -> Void = { _ in },
        test: (_ session: URLSession, _ url: URL, _ scriptServer: ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: { _ in .ok(Self.proxied) }) { (proxy) async throws in
            let script = "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(proxy.port)' }"
            try await withScriptedServer(reply: { _ in .ok(script) }) { (scriptServer) async throws in
                try await withSession(delegate: delegate) {
                    $0.networkPathMonitor = network
                    $0.connectionProxyDictionary = [
                        "ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": scriptServer.url("/proxy.pac").absoluteString,
                    ]
                    configure($0)
                } test: { session in
                    try await test(session, try #require(URL(string: "http://127.0.0.1:1/")), scriptServer)
                }
            }
        }
    }

    @Test func `tasks wait for a network if their script is unreachable, report that once, and then continue`() async throws {
        let network = TestNetwork(nil)
        let waiting = WaitingRecorder()
        try await withScript(network, delegate: waiting) {
            $0.waitsForConnectivity = true
        } test: { (session, url, scriptServer) async throws in
            let tasks = (0..<20).map { _ in session.dataTask(with: url) }
            for task in tasks { task.resume() }
            try await waiting.waitingTasks.count(reaches: 20)
            network.change(to: NetworkPath(interfaces: [ConnectivityTests.ethernet], isSatisfied: false))
            let cancelled = session.dataTask(with: url)
            cancelled.resume()
            try await waiting.waitingTasks.count(reaches: 21)
            cancelled.cancel()
            #expect((try await waiting.ended.value as? URLError)?.code == .cancelled)
            #expect(scriptServer.requests.isEmpty)
            network.change(to: .over(ConnectivityTests.ethernet))
            try await waiting.ended.count(reaches: 21)
            #expect(waiting.ended.all.dropFirst().allSatisfy { $0 == nil }, "\(waiting.ended.all)")
            #expect(waiting.body.read { $0 } == Data(String(repeating: Self.proxied, count: 20).utf8))
            #expect(waiting.waitingTasks.all.sorted() == (tasks + [cancelled]).map(\.taskIdentifier).sorted())
            #expect(scriptServer.requests.count == 1)
        }
    }

    @Test func `loads fail without a network if the session does not wait for connectivity`() async throws {
        try await withScript(TestNetwork(nil)) { (session, url, scriptServer) async throws in
            let error = await expectFailure(.notConnectedToInternet) { try await session.data(from: url) }
            #expect(error?.failingURL == url)
            #expect(error?.localizedDescription.contains("the proxy script") == true)
            #expect(scriptServer.connectionCount == 0)
        }
        try await withScript(TestNetwork(ConnectivityTests.mobile)) {
            $0.allowsCellularAccess = false
        } test: { (session, url, _) async throws in
            let error = await expectFailure(.notConnectedToInternet) { try await session.data(from: url) }
            #expect(error?.networkUnavailableReason == .cellular)
        }
    }

    @Test func `waiting for the script suspends the request timeout, but not the resource timeout`() async throws {
        try await withScript(TestNetwork(nil)) {
            $0.waitsForConnectivity = true
            $0.timeoutIntervalForRequest = 0.05
            $0.timeoutIntervalForResource = 0.6
        } test: { (session, url, _) async throws in
            let error = await expectFailure(.timedOut) { try await session.data(from: url) }
            #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
        }
    }
}
