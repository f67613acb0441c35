//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing

/// Loads in network namespaces of the test's own, whose links and routes come and go.
@Suite(.timeLimit(.minutes(3)))
struct NetworkTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func tool(_ arguments: [String], in namespaces: NetworkNamespaces) throws -> Tool {
        try Tool(arguments, in: folder, preparation: namespaces.enteringClient)
    }

    @Test func `a name and a far address fail for want of a network, a near address does not`() async throws {
        let namespaces = try await NetworkNamespaces()
        let server = try await namespaces.serveTenBytes()
        defer { server.stop() }
        for url in ["https://name.example/", "http://198.51.100.7/"] {
            let result = try await tool(["get", url], in: namespaces).result()
            #expect(result.code == 7, "\(url): \(result.errors)")
        }
        let near = try await tool(["get", namespaces.url()], in: namespaces).result()
        #expect(near.text == "half-whole", "\(near.errors)")
    }

    @Test func `with --wait a load goes on as soon as the link is up`() async throws {
        let namespaces = try await NetworkNamespaces()
        let server = try await namespaces.serveTenBytes()
        defer { server.stop() }
        try await namespaces.client("link set cable0 down")
        let waiting = try tool(
            ["get", "-v", "--wait", "--idle-time", "0.2", "--connect-timeout", "0.2", namespaces.url()], in: namespaces)
        try await waiting.shown("waiting for a network")
        try await namespaces.client("link set cable0 up")
        let result = try await waiting.result()
        #expect(result.code == 0 && result.text == "half-whole", "\(result.errors)")
    }

    /// The server, and the load's own timeout, have ten minutes.
    @Test(arguments: ["link set cable0 down", "addr del 10.213.9.1/24 dev cable0", "link del cable0"])
    func `what goes over a network that goes away fails at once`(change: String) async throws {
        let namespaces = try await NetworkNamespaces()
        let server = try await namespaces.serveTenBytes()
        defer { server.stop() }
        let loading = try tool(["get", "-v", "--idle-time", "600", namespaces.url("/half")], in: namespaces)
        try await loading.shown("< Content-Length: 10")
        try await namespaces.client(change)
        let result = try await loading.result()
        #expect(result.code == 18, "\(result.errors)")
        #expect(result.errors.contains("the network that led to 10.213.9.2:8000 is gone"))
    }

    @Test func `a connection goes on when an interface beside it is renamed, and another address comes`() async throws {
        let namespaces = try await NetworkNamespaces()
        let server = try await namespaces.serveTenBytes()
        defer { server.stop() }
        let loading = try tool(["get", "-v", "--max-time", "3", namespaces.url("/half")], in: namespaces)
        try await loading.shown("< Content-Length: 10")
        try await namespaces.client("addr add 10.213.9.77/24 dev cable0")
        try await namespaces.client("route add default via 10.213.9.2")
        try await namespaces.client("link property add dev cable0 altname cable7")
        let result = try await loading.result()
        #expect(result.code == 28, "\(result.errors)")
    }

    @Test func `the command shows the proxies that an address would take`() async throws {
        let variables = ["https_proxy": "socks5h://ali:sesame@proxy.test:1080", "no_proxy": "near.test"]
        for (address, proxy) in [
            ("https://far.test/", "socks5h://proxy.test:1080"), ("https://near.test/", "direct"), ("http://far.test/", "direct"),
        ] {
            let result = try await Tool.run(["network", address], environment: variables)
            #expect(result.text.contains("\nProxies: \(proxy)\n"), "\(result.text) \(result.errors)")
            let lines = try await Tool.run(["network", "--json", address], environment: variables)
            let picture = try #require(JSONSerialization.jsonObject(with: lines.output) as? [String: Any])
            #expect(picture["proxies"] as? [String] == [proxy])
        }
        #expect(try await Tool.run(["network", "ftp://far.test/"], environment: variables).code == 3)
        #expect(try await Tool.run(["network", "https://far.test/"], environment: ["https_proxy": "gopher://a:1"]).code == 7)
        for host in ["a^b", "a|b", "a%zzb", "[a"] {
            let result = try await Tool.run(
                ["network", "https://far.test/"], environment: ["https_proxy": "http://\(host):3128"])
            #expect(result.code != 0 && result.text.isEmpty, "\(host): \(result.text)")
        }
        let without = try await Tool.run(["network"], environment: variables)
        #expect(!without.text.contains("Proxies: ") && without.text.contains("\nName servers: "))
    }

    @Test func `the command shows interfaces, addresses and whether there is a way out`() async throws {
        let namespaces = try await NetworkNamespaces()
        let without = try await tool(["network"], in: namespaces).result()
        #expect(without.text.hasPrefix("There is no way to other networks.\n"), "\(without.text)")
        #expect(without.text.contains(#/\ncable0 +other +10\.213\.9\.1\n/#))
        try await namespaces.client("route add default via 10.213.9.2")
        let with = try await tool(["network", "--json"], in: namespaces).result()
        let picture = try #require(JSONSerialization.jsonObject(with: with.output) as? [String: Any])
        #expect(picture["isSatisfied"] as? Bool == true)
        let interfaces = try #require(picture["interfaces"] as? [[String: Any]])
        #expect(interfaces.map { $0["name"] as? String } == ["cable0"])
        #expect((picture["libraries"] as? [[String: Any]])?.isEmpty == false)
    }
}
