// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `connectionOptions`: where connections lead, and which local address and interface they use.
@Suite(.timeLimit(.minutes(2))) struct ConnectionOptionTests {
    typealias Options = URLSessionConfiguration.ConnectionOptions

    private func with(
        _ server: ScriptedServer, roots: [Data] = [], _ change: (inout Options) -> Void, test: (URLSession) async throws -> Void
    ) async throws {
        try await withSession { configuration in
            configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
            configuration.tlsTrustRoots = roots
            change(&configuration.connectionOptions)
        } test: {
            try await test($0)
        }
    }

    private func url(_ text: String) -> URL { URL(string: text) ?? URL(fileURLWithPath: text) }

    private func echo(_ test: (ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok($0.header("Host") ?? "none") }, test: test)
    }

    // MARK: Unix-domain sockets

    private func withSocket(
        _ identity: TestCertificates.Identity? = nil, _ test: (ScriptedServer, String) async throws -> Void
    ) async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/s"
        let server = try await ScriptedServer.start(path: path, identity: identity) { .ok($0.header("Host") ?? "none") }
        do { try await test(server, path) } catch {
            try? await server.close()
            throw error
        }
        try await server.close()
    }

    @Test func `a Unix socket is used for any host, and its connections are reused`() async throws {
        try await withSocket { (server, path) async throws in
            try await with(server) {
                $0.unixSocketPath = path
            } test: { (session) async throws in
                #expect(try await session.text(url("http://localhost/a")) == "localhost")
                #expect(try await session.text(url("http://localhost/b")) == "localhost")
                #expect(try await session.text(url("http://nowhere.example:81/")) == "nowhere.example:81")
                #expect(server.connectionCount == 2)
            }
        }
    }

    @Test func `a proxy is not used with a Unix socket`() async throws {
        try await withSocket { (server, path) async throws in
            try await withSession { configuration in
                configuration.connectionOptions.unixSocketPath = path
                configuration.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": 9]
            } test: { (session) async throws in
                #expect(try await session.text(url("http://localhost/a")) == "localhost")
                #expect(server.requests.map(\.target) == ["/a"])
            }
        }
    }

    @Test func `over a Unix socket the certificate is checked for the URL's host`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withSocket(certificates.valid) { (server, path) async throws in
            try await with(server, roots: [Data(certificates.rootPEM.utf8)]) {
                $0.unixSocketPath = path
            } test: { (session) async throws in
                #expect(try await session.text(url("https://localhost/a")) == "localhost")
                await expectFailure(.serverCertificateUntrusted) { try await session.text(url("https://other.example/a")) }
            }
        }
    }

    @Test func `an unusable socket path fails the load with the reason`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write([1], to: "file")
        let rows = [
            (folder.path + "/none", "no such file or directory"), (folder.path + "/file", "connection refused"),
            (folder.path, "connection refused"), ("/tmp/" + String(repeating: "x", count: 108), "107 bytes"),
            ("", "not a valid path"), ("/tmp/a\0b", "not a valid path"),
        ]
        for (path, reason) in rows {
            try await withSession {
                $0.connectionOptions.unixSocketPath = path
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost, in: path) {
                    try await session.text(url("http://localhost/"))
                }
                #expect(error?.localizedDescription.contains(reason) == true, "\(path): \(error?.localizedDescription ?? "")")
            }
        }
    }

    // MARK: Addresses

    @Test func `given addresses replace the lookup, letter case is ignored, and the most specific entry applies`() async throws {
        try await echo { (server) async throws in
            try await with(server) {
                $0.addresses[.init(host: "Somewhere.Example")] = ["127.0.0.1"]
                $0.addresses[.init(port: server.port)] = ["127.0.0.1", "::1"]
                $0.addresses[.init(host: "somewhere.example", port: 9)] = []
                $0.addresses[.init(host: "bad.example")] = ["127.0.0.1.example"]
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/", host: "somewhere.example")) == "somewhere.example:\(server.port)")
                #expect(try await session.text(server.url("/", host: "any.example")) == "any.example:\(server.port)")
                await expectFailure(.cannotFindHost) { try await session.text(url("http://somewhere.example:9/")) }
                let error = await expectFailure(.cannotConnectToHost) { try await session.text(url("http://bad.example/")) }
                #expect(error?.localizedDescription.contains("'127.0.0.1.example'") == true)
            }
        }
    }

    // MARK: Substitutions

    @Test func `a connection leads to the substitute, and its certificate is checked for the URL's host`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { .ok($0.header("Host") ?? "none") }) {
            (server) async throws in
            try await with(server, roots: [Data(certificates.rootPEM.utf8)]) {
                $0.substitutions = [
                    .init(of: .init(host: "LOCALHOST.", port: 443), with: .init(host: "127.0.0.1", port: server.port)),
                    .init(of: .init(host: "other.example"), with: .init(host: "127.0.0.1", port: server.port)),
                    .init(of: .init(), with: .init(port: 9)),
                ]
            } test: { (session) async throws in
                #expect(try await session.text(url("https://localhost/")) == "localhost")
                await expectFailure(.serverCertificateUntrusted) { try await session.text(url("https://other.example/")) }
                // The last substitution applies.
                await expectFailure(.cannotConnectToHost) { try await session.text(server.url("/", host: "localhost")) }
            }
        }
    }

    @Test(arguments: [-1, 65_536, 70_000, .max, .min]) func `an invalid port fails the load`(port: Int) async throws {
        try await withScriptedServer(reply: { _ in .ok("here") }) { (server) async throws in
            try await with(server) {
                $0.substitutions = [.init(of: .init(host: "127.0.0.1"), with: .init(port: port))]
            } test: { (session) async throws in
                await expectFailure(.cannotConnectToHost) { try await session.text(server.url()) }
            }
        }
    }

    @Test func `a proxy is asked for a tunnel to the substitute`() async throws {
        try await withScriptedServer(reply: { _ in .status(403, [], body: "no") }) { (proxy) async throws in
            try await withSession { configuration in
                configuration.connectionProxyDictionary = [
                    "HTTPSEnable": 1, "HTTPSProxy": "proxy.example", "HTTPSPort": proxy.port,
                ]
                configuration.connectionOptions.addresses[.init(host: "proxy.example")] = ["127.0.0.1"]
                configuration.connectionOptions.substitutions = [
                    .init(of: .init(host: "a.example"), with: .init(host: "b.example", port: 444))
                ]
            } test: { (session) async throws in
                await expectFailure(.cannotConnectToHost) { try await session.text(url("https://a.example/")) }
                #expect(proxy.requests.map(\.target) == ["b.example:444"])
            }
        }
    }

    // MARK: Local address and interface

    @Test func `connections use the configured local address and interface`() async throws {
        try await echo { (server) async throws in
            for (address, interface) in [("127.0.0.5", nil), (nil, "lo"), ("127.0.0.5", "lo")] {
                let metrics = TransactionKeeper()
                try await with(server) {
                    $0.localAddress = address
                    $0.interfaceName = interface
                } test: { (session) async throws in
                    // The other address family is not tried.
                    let (data, _) = try await session.data(from: server.url("/", host: "localhost"), delegate: metrics)
                    #expect(String(decoding: data, as: UTF8.self) == "localhost:\(server.port)")
                }
                let transaction = try #require(metrics.all.first)
                #expect(transaction.localAddress == address ?? "127.0.0.1")
            }
        }
    }

    @Test(
        arguments: [
            (true, "no-such-one", "the interface 'no-such-one' cannot be used: no such device"),
            (true, "", "the interface '' does not exist"),
            (true, "a-name-that-is-too-long", "does not exist"), (true, "lo\0", "does not exist"),
            (false, "192.0.2.1", "this machine cannot connect from the address 192.0.2.1"),
            (false, "here", "here: this machine cannot connect from that address"),
        ]
    )
    func `an unusable interface or local address fails the load with the reason`(
        _ isInterface: Bool, _ name: String, _ reason: String
    ) async throws {
        try await echo { (server) async throws in
            try await with(server) { options in
                if isInterface { options.interfaceName = name } else { options.localAddress = name }
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost) { try await session.text(server.url("/")) }
                #expect(error?.localizedDescription.contains(reason) == true, "\(error?.localizedDescription ?? "")")
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `a local address of one family is not used to connect to the other family`() async throws {
        try await echo { (server) async throws in
            try await with(server) {
                $0.localAddress = "::1"
            } test: { (session) async throws in
                let error = await expectFailure(.cannotFindHost) { try await session.text(server.url("/")) }
                #expect(error?.localizedDescription.contains("of the family of ::1") == true)
            }
        }
    }
}
