// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Proxy settings that are invalid: no load bypasses the proxy.
@Suite(.timeLimit(.minutes(1)))
struct ProxySettingTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var description: String
        var key: String
        let make: @Sendable () -> [AnyHashable: Any]

        init(_ key: String, _ make: @escaping @Sendable () -> [AnyHashable: Any]) {
            description = "\(make())"
            self.key = key
            self.make = make
        }

        var testDescription: String { description }
    }

    private static let rows: [Row] = [
        Row("HTTPPort") { ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": 0] },
        Row("HTTPPort") { ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": 99_999] },
        Row("HTTPPort") { ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": "http"] },
        Row("HTTPPort") { ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": NSNull()] },
        Row("HTTPProxy") { ["HTTPEnable": 1, "HTTPProxy": 7, "HTTPPort": 80] },
        Row("HTTPProxy") { ["HTTPEnable": 1, "HTTPProxy": URL(filePath: "/127.0.0.1"), "HTTPPort": 80] },
        Row("HTTPProxy") { ["HTTPEnable": true, "HTTPPort": 80] },
        Row("HTTPProxy") { ["HTTPEnable": true, "HTTPProxy": "", "HTTPPort": 80] },
        Row("HTTPProxy") { ["HTTPEnable": true, "HTTPProxy": "http://127.0.0.1:80", "HTTPPort": 80] },
        Row("HTTPProxy") { ["HTTPEnable": true, "HTTPProxy": "127.0.0.1:80"] },
        Row("HTTPProxy") { ["HTTPEnable": true, "HTTPProxy": "a\r\nb"] },
        Row("HTTPEnable") { ["HTTPEnable": "yes", "HTTPProxy": "127.0.0.1", "HTTPPort": 80] },
        Row("HTTPEnable") { ["HTTPProxy": "127.0.0.1", "HTTPPort": 80] },
        Row("SOCKSPort") { ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": -1] },
        Row("SOCKSProxy") { ["SOCKSEnable": 1] },
        Row("SOCKSVersion") {
            ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": 9, "kCFStreamPropertySOCKSVersion": "6"]
        },
        Row("ProxyAutoConfigURLString") { ["ProxyAutoConfigEnable": 1] },
        Row("ProxyAutoConfigURLString") { ["ProxyAutoConfigURLString": "http://127.0.0.1/"] },
        Row("ProxyAutoDiscoveryEnable") { ["ProxyAutoDiscoveryEnable": 1] },
        Row("kCFProxyTypeKey") { ["kCFProxyTypeKey": "kCFProxyTypeHTTP", "kCFProxyHostNameKey": "127.0.0.1"] },
    ]

    @Test(arguments: rows) func `an invalid setting fails the load, and nothing is sent to the server`(_ row: Row) async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
            try await withSession {
                $0.connectionProxyDictionary = row.make()
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost, in: row.description) {
                    try await session.data(from: server.url())
                }
                #expect(error?.localizedDescription.contains("connectionProxyDictionary: ") == true)
                #expect(error?.localizedDescription.contains(row.key) == true, "\(String(describing: error))")
                #expect(error?.failingURL == server.url())
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test(
        arguments: [
            "gopher://127.0.0.1:80", "http://127.0.0.1:0", "http://127.0.0.1:99999", "http://:80", "127.0.0.1:80/path",
            "[::1", "http://a b:80", "http://ada:lovelace@:80", "::1:80:",
        ])
    func `an invalid variable fails the load, and the error reveals no password`(_ value: String) async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
            try await withSession {
                $0.proxyEnvironment = ["http_proxy": value]
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost, in: value) { try await session.data(from: server.url()) }
                #expect(error?.localizedDescription.hasPrefix("http_proxy ") == true, "\(String(describing: error))")
                #expect(error?.localizedDescription.contains("lovelace") == false)
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `disabled proxies and exceptions mean a direct connection`() async throws {
        let dictionaries: [[String: Any]] = [
            [:], ["HTTPEnable": 0, "HTTPProxy": "127.0.0.1", "HTTPPort": 0],
            ["HTTPSEnable": 1, "HTTPSProxy": "", "HTTPSPort": 0],
            ["HTTPEnable": 1, "HTTPProxy": "", "ExceptionsList": ["127.0.0.0/8"]],
            ["SOCKSEnable": 1, "SOCKSProxy": "a", "ExceptionsList": ["127.*"]], ["ProxyAutoConfigEnable": 0],
            ["FTPEnable": 1, "FTPProxy": 7],
        ]
        try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
            for dictionary in dictionaries {
                try await withSession {
                    $0.connectionProxyDictionary = dictionary
                    $0.proxyEnvironment = ["all_proxy": "http://127.0.0.1:9"]
                } test: { (session) async throws in
                    #expect(try await session.text(server.url()) == "direct", "\(dictionary)")
                }
            }
        }
    }

    @Test func `the environment names the proxy and its exceptions`() async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
            try await withScriptedServer(reply: { .ok("proxy \($0.target)") }) { (proxy) async throws in
                let rows: [([String: String], isDirect: Bool)] = [
                    (["http_proxy": "127.0.0.1:\(proxy.port)"], false), (["HTTP_PROXY": "127.0.0.1:\(proxy.port)"], true),
                    (["ALL_PROXY": "http://127.0.0.1:\(proxy.port)/"], false), (["https_proxy": "127.0.0.1:9"], true),
                    (["http_proxy": "", "all_proxy": "127.0.0.1:\(proxy.port)"], false),
                    (["http_proxy": "127.0.0.1:\(proxy.port)", "no_proxy": "a.test, 127.0.0.1"], true),
                    (["http_proxy": "127.0.0.1:\(proxy.port)", "no_proxy": "", "NO_PROXY": "*"], true),
                    (["http_proxy": "127.0.0.1:\(proxy.port)", "no_proxy": "10.0.0.0/8,27.0.0.1"], false),
                ]
                for (variables, isDirect) in rows {
                    try await withSession {
                        $0.proxyEnvironment = variables
                    } test: { (session) async throws in
                        let text = try await session.text(server.url("/a"))
                        #expect(text == (isDirect ? "direct" : "proxy \(server.url("/a"))"), "\(variables)")
                    }
                }
            }
        }
    }
}
