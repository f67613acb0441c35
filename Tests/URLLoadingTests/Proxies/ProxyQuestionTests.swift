// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `URLSession.proxies(for:)`: the proxies that a load would use, without loading.
@Suite struct ProxyQuestionTests {
    private func proxies(
        of text: String, _ configure: (URLSessionConfiguration) -> Void
    ) async throws -> [String?] {
        var found: [String?] = []
        try await withSession(configure) { (session) async throws in
            found = try await session.proxies(for: try #require(URL(string: text))).map { $0?.absoluteString }
        }
        return found
    }

    @Test func `environment, dictionaries and scripts are evaluated`() async throws {
        #expect(try await proxies(of: "https://a.test/") { $0.proxyEnvironment = [:] } == [nil])
        #expect(
            try await proxies(of: "https://a.test/") { $0.proxyEnvironment = ["all_proxy": "[::1]:3128"] } == [
                "http://[::1]:3128"
            ])
        #expect(
            try await proxies(of: "https://a.test/") {
                var first = ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "p.test", port: 8080))
                first.allowFailover = true
                first.applyCredential(username: "ali", password: "sesame")
                $0.proxyConfigurations = [first]
            } == ["http://p.test:8080", nil])
        let script =
            "function FindProxyForURL(u, h) { return h == 'a.test' ? 'SOCKS p.test; HTTPS q.test:443; DIRECT' : 'DIRECT' }"
        let dictionary: [AnyHashable: Any] = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigJavaScript": script]
        #expect(
            try await proxies(of: "https://a.test/") { $0.connectionProxyDictionary = dictionary }
                == ["socks5h://p.test:1080", "https://q.test:443", nil])
        #expect(try await proxies(of: "https://b.test/") { $0.connectionProxyDictionary = dictionary } == [nil])
    }

    @Test func `the error that a load would fail with is thrown`() async throws {
        let rows: [([AnyHashable: Any], String, URLError.Code)] = [
            (["HTTPSEnable": 1, "HTTPSProxy": "p.test", "HTTPSPort": 99_999], "https://a.test/", .cannotConnectToHost),
            (["ProxyAutoConfigEnable": 1, "ProxyAutoConfigJavaScript": "7"], "https://a.test/", .cannotConnectToHost),
            ([:], "http://a.test/", .appTransportSecurityRequiresSecureConnection), ([:], "ftp://a.test/", .unsupportedURL),
        ]
        for (dictionary, text, code) in rows {
            try await withSession {
                $0.connectionProxyDictionary = dictionary
                $0.appTransportSecurity = [:]
            } test: { (session) async throws in
                let url = try #require(URL(string: text))
                let error = await expectFailure(code, in: text) { try await session.proxies(for: url) }
                #expect(error?.failingURL == url)
            }
        }
    }

    /// Runs a test with a proxy script that its server sends when the test opens a gate.
    private func withDelayedScript(test: (_ scriptServer: ScriptedServer, URLSession, URL) async throws -> Void) async throws {
        let script = ScriptedReply.ok("function FindProxyForURL() { return 'PROXY p.test:1' }")
        try await withScriptedServer(reply: { _ in ScriptedReply([.gate("script")] + script.effects) }) {
            (scriptServer) async throws in
            try await withSession {
                let place = scriptServer.url("/proxy.pac").absoluteString
                $0.connectionProxyDictionary = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": place]
            } test: { (session) async throws in
                try await test(scriptServer, session, try #require(URL(string: "https://a.test/")))
            }
        }
    }

    @Test(arguments: [true, false]) func `cancelling the Swift task ends the call`(isUnderWay: Bool) async throws {
        try await withDelayedScript { (scriptServer, session, url) async throws in
            let question = Task {
                if !isUnderWay { withUnsafeCurrentTask { $0?.cancel() } }
                return try await session.proxies(for: url)
            }
            if isUnderWay {
                try await scriptServer.reached("script")
                question.cancel()
            }
            await expectFailure(.cancelled) { try await question.value }
        }
    }

    @Test func `a script that arrives after a reset is not kept`() async throws {
        try await withDelayedScript { (scriptServer, session, url) async throws in
            async let first = session.proxies(for: url)
            try await scriptServer.reached("script")
            await session.reset()
            scriptServer.open("script")
            let proxies = try await first
            #expect(proxies.map { $0?.absoluteString } == ["http://p.test:1"])
            for _ in 0..<2 { #expect(try await session.proxies(for: url) == proxies) }
            #expect(scriptServer.requests.count == 2)
        }
    }

    @Test func `concurrent calls succeed, and calls after invalidation throw`() async throws {
        let session = URLSession(configuration: .ephemeral)
        let url = try #require(URL(string: "https://a.test/"))
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<1000 { group.addTask { (try? await session.proxies(for: url).count) ?? 0 } }
            for await count in group { #expect(count == 1) }
        }
        session.invalidateAndCancel()
        await expectFailure(.cancelled) { try await session.proxies(for: url) }
    }
}
