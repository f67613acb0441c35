// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Loads in network namespaces of a test, whose links and routes change.
@Suite(.timeLimit(.minutes(3)))
struct NetworkTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func tool(_ arguments: [String], in namespaces: NetworkNamespaces) throws -> Tool {
        try Tool(arguments, in: folder, preparation: namespaces.enteringClient)
    }

    @Test func `without a network, host names and remote addresses fail, and a local address does not`() async throws {
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

    @Test func `with --wait a load continues as soon as the link is up`() async throws {
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

    /// If the loss of the network were not detected, the load would fail only after its timeout of ten minutes.
    @Test(arguments: ["link set cable0 down", "addr del 10.213.9.1/24 dev cable0", "link del cable0"])
    func `a load fails at once when its network disappears`(change: String) async throws {
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

    @Test func `a transfer continues when its interface is renamed, gets another address, and a default route`() async throws {
        let namespaces = try await NetworkNamespaces()
        let server = try await namespaces.serveTenBytes()
        defer { server.stop() }
        let loading = try tool(["get", "-v", "--idle-time", "30", namespaces.url("/held")], in: namespaces)
        try await loading.shown("< Content-Length: 10")
        try await namespaces.client("link set cable0 name cable7")
        try await namespaces.client("addr add 10.213.9.77/24 dev cable7")
        try await namespaces.client("route add default via 10.213.9.2")
        let other = try await tool(["get", namespaces.url("/go")], in: namespaces).result()
        #expect(other.text == "half-whole", "\(other.errors)")
        let result = try await loading.result()
        #expect(result.code == 0 && result.text == "half-whole", "\(result.errors)")
    }

    @Test func `without its default route a load fails at once, and the next one waits for the route`() async throws {
        let namespaces = try await NetworkNamespaces()
        let server = try await namespaces.serveTenBytes()
        defer { server.stop() }
        let far = NetworkNamespaces.farAddress
        let waiting = ["get", "-v", "--wait", "--idle-time", "30"]
        try await namespaces.client("route add default via 10.213.9.2")
        let lost = try tool(waiting + [namespaces.url("/half", at: far)], in: namespaces)
        try await lost.shown("< Content-Length: 10")
        try await namespaces.client("route del default")
        let failure = try await lost.result()
        #expect(failure.code == 18, "\(failure.errors)")
        #expect(failure.errors.contains("the network that led to \(far):8000 is gone"))
        let next = try tool(waiting + [namespaces.url(at: far)], in: namespaces)
        try await next.shown("waiting for a network")
        try await namespaces.client("route add default via 10.213.9.2")
        let result = try await next.result()
        #expect(result.code == 0 && result.text == "half-whole", "\(result.errors)")
    }

    /// The neighbor entry gives the router a wrong link address, so that connections are neither accepted nor refused.
    @Test func `when the network is available, connecting is limited by --connect-timeout again`() async throws {
        let namespaces = try await NetworkNamespaces()
        try await namespaces.client("neigh add 10.213.9.2 lladdr 02:00:00:00:00:99 nud permanent dev cable0")
        let loading = try tool(
            ["get", "--wait", "--idle-time", "30", "--connect-timeout", "1", namespaces.url(at: NetworkNamespaces.farAddress)],
            in: namespaces)
        try await loading.shown("waiting for a network")
        try await namespaces.client("route add default via 10.213.9.2")
        let result = try await loading.result()
        #expect(result.code == 28, "\(result.errors)")
        #expect(result.errors.contains("connecting took longer than 1.0 s (--connect-timeout)"))
    }

    @Test func `the command shows the proxies for an address`() async throws {
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

    @Test func `the command shows interfaces, addresses and whether other networks are reachable`() async throws {
        let namespaces = try await NetworkNamespaces()
        let without = try await tool(["network"], in: namespaces).result()
        #expect(without.text.hasPrefix("Other networks cannot be reached.\n"), "\(without.text)")
        #expect(without.text.contains(#/\ncable0 +other +10\.213\.9\.1\n/#))
        try await namespaces.client("route add default via 10.213.9.2")
        let with = try await tool(["network", "--json"], in: namespaces).result()
        let picture = try #require(JSONSerialization.jsonObject(with: with.output) as? [String: Any])
        #expect(picture["isSatisfied"] as? Bool == true)
        let interfaces = try #require(picture["interfaces"] as? [[String: Any]])
        #expect(interfaces.map { $0["name"] as? String } == ["cable0"])
        let libraries = try #require(picture["libraries"] as? [[String: Any]])
        for name in ["libbrotlidec.so.1", "libzstd.so.1"] {
            #expect(libraries.contains { $0["name"] as? String == name && $0["path"] is String }, "\(libraries)")
        }
    }
}
