// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Lookups with name servers chosen by the session: how long answers are cached, and invalid behavior of name servers.
@Suite(.timeLimit(.minutes(2))) struct NameServerTests {
    private func with(
        timeout: Double = 20, nameServers: [String]? = nil, _ script: @escaping ScriptedNameServer.Script,
        test: (ScriptedServer, ScriptedNameServer, URLSession) async throws -> Void
    ) async throws {
        let names = try await ScriptedNameServer.start(script)
        // The server listens at every loopback address, and each load uses a new connection.
        let server = try await ScriptedServer.start(address: "0.0.0.0") { _ in .ok("there", [("Connection", "close")]) }
        do {
            try await withSession { configuration in
                configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                configuration.connectionOptions.nameServers = nameServers ?? [names.address]
                configuration.timeoutIntervalForRequest = timeout
            } test: { (session) async throws in
                try await test(server, names, session)
            }
        } catch {
            try? await server.close()
            await names.close()
            throw error
        }
        try await server.close()
        await names.close()
    }

    private func address(_ url: URL, _ session: URLSession) async throws -> String? {
        let metrics = TransactionKeeper()
        _ = try await session.data(from: url, delegate: metrics)
        let transaction = try #require(metrics.all.first)
        #expect(transaction.domainResolutionProtocol == .udp)
        return transaction.remoteAddress
    }

    @Test func `an answer is cached for its time to live`() async throws {
        try await with({ _, order in .addresses("127.0.0.\(order + 1)", seconds: 100) }) {
            (server, names, session) async throws in
            for _ in 0..<3 { #expect(try await address(server.url("/", host: "long.test"), session) == "127.0.0.1") }
            #expect(names.count("long.test") == 1)
            await session.flush()
            #expect(try await address(server.url("/", host: "long.test"), session) == "127.0.0.2")
        }
    }

    @Test func `a changed address is found if the answer may not be cached`() async throws {
        try await with({ _, order in .addresses("127.0.0.\(order + 1)", seconds: 0) }) { (server, names, session) async throws in
            for last in 1...3 { #expect(try await address(server.url("/", host: "short.test"), session) == "127.0.0.\(last)") }
            #expect(names.count("short.test") == 3)
        }
    }

    @Test func `addresses and localhost are not looked up`() async throws {
        try await with({ _, _ in .code(2) }) { (server, names, session) async throws in
            let metrics = TransactionKeeper()
            _ = try await session.data(from: server.url("/", host: "localhost"), delegate: metrics)
            #expect(try #require(metrics.all.first).domainResolutionProtocol == .unknown)
            _ = try await session.text(server.url("/", host: "127.0.0.1"))
            #expect(names.count("localhost") == 0)
        }
    }

    @Test func `a name without addresses and a server failure have different errors`() async throws {
        try await with({ question, _ in .code(question.name == "none.test" ? 3 : 2) }) { (server, _, session) async throws in
            await expectFailure(.cannotFindHost) { try await session.text(server.url("/", host: "none.test")) }
            let error = await expectFailure(.dnsLookupFailed) { try await session.text(server.url("/", host: "fails.test")) }
            #expect(error?.localizedDescription.contains("fails.test") == true)
        }
    }

    // MARK: Hostile and failing name servers

    @Test func `a name server that never answers makes the load time out`() async throws {
        try await with(timeout: 0.3, { _, _ in .nothing }) { (server, _, session) async throws in
            await expectFailure(.timedOut) { try await session.text(server.url("/", host: "never.test")) }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `a late answer is accepted`() async throws {
        try await with({ _, _ in .addresses("127.0.0.1", gate: "late") }) { (server, names, session) async throws in
            async let text = session.text(server.url("/", host: "late.test"))
            try await names.waitForQuestion("late.test")
            names.open("late")
            #expect(try await text == "there")
            try await server.waitForAllClosed()
        }
    }

    @Test func `the first of two answers counts`() async throws {
        try await with({ question, _ in question.isV6 ? .addresses() : .twice("127.0.0.3", "127.0.0.4") }) {
            (server, names, session) async throws in
            for name in ["one.test", "two.test", "one.test"] {
                #expect(try await address(server.url("/", host: name), session) == "127.0.0.3")
            }
            #expect(names.count("one.test") == 1)
            #expect(server.connectionCount == 3)
        }
    }

    @Test func `at most sixteen addresses per family are tried`() async throws {
        let addresses = (0..<1_000).map { "127.1.\($0 / 250).\($0 % 250 + 1)" }
        let port = try await ScriptedServer.start { _ in .ok("") }
        try await port.close()
        try await with({ question, _ in question.isV6 ? .addresses() : .many(addresses) }) { (server, _, session) async throws in
            #expect(try await address(server.url("/", host: "many.test"), session)?.hasPrefix("127.1.") == true)
            let url = try #require(URL(string: "http://many.test:\(port.port)/"))
            let error = await expectFailure(.cannotConnectToHost) { try await session.text(url) }
            #expect(error?.localizedDescription.hasSuffix("and 12 more") == true, "\(error?.localizedDescription ?? "")")
        }
    }

    @Test(arguments: ["here", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1,::1", ""])
    func `an invalid name server fails the load with the reason`(_ text: String) async throws {
        try await with(nameServers: [text], { _, _ in .addresses("127.0.0.1") }) { (server, names, session) async throws in
            let error = await expectFailure(.cannotConnectToHost) { try await session.text(server.url("/", host: "a.test")) }
            #expect(error?.localizedDescription.contains("is not an IP address") == true, "\(error?.localizedDescription ?? "")")
            #expect(names.count("a.test") == 0)
        }
    }

    @Test(.enabled(if: geteuid() == 0))
    func `an error reports that c-ares is missing`() async throws {
        let script =
            "for file in $(ldconfig -p | awk '/libcares.so.2/ {print $NF}'); do mount --bind /dev/null $file; done; exec \"$@\""
        try await SeparateProcess.run(
            "MissingAresTests", environment: ["NSAllowsArbitraryLoads": "YES"],
            wrapper: ["/usr/bin/env", "unshare", "-m", "/bin/sh", "-c", script, "sh"]
        )
    }

    // MARK: Unreachable addresses

    @Test(.enabled(if: geteuid() == 0))
    func `an unreachable address delays a connection by at most 300 ms`() async throws {
        // A link with an IPv4 and an IPv6 network in which no other address responds.
        let script = """
            ip link set lo up && ip link add one type veth peer name other && ip addr add 10.9.0.1/24 dev one \
            && ip addr add fd09::1/64 dev one nodad && ip link set one up && ip link set other up && exec "$@"
            """
        try await SeparateProcess.run(
            "DeadAddressTests", environment: [:], wrapper: ["/usr/bin/env", "unshare", "-n", "/bin/sh", "-c", script, "sh"]
        )
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MissingAresTests")), .timeLimit(.minutes(1))) struct MissingAresTests {
    @Test func `a missing c-ares fails the lookup`() async throws {
        try await withSession {
            $0.connectionOptions.nameServers = ["127.0.0.1:9"]
        } test: { (session) async throws in
            let url = try #require(URL(string: "http://a.test/"))
            let error = await expectFailure(.dnsLookupFailed) { try await session.text(url) }
            #expect(error?.localizedDescription.contains("c-ares is not installed") == true)
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("DeadAddressTests")), .timeLimit(.minutes(1))) struct DeadAddressTests {
    @Test(arguments: ["fd09::2", "10.9.0.2"])
    func `the other address is connected to if one is unreachable`(_ dead: String) async throws {
        try await withScriptedServer(reply: { _ in .ok("there", [("Connection", "close")]) }) { (server) async throws in
            try await withSession {
                $0.connectionOptions.addresses[.init(host: "two")] = [dead, "127.0.0.1"]
            } test: {
                (session) async throws in
                var shortest = Double.infinity
                // A busy machine may occasionally need longer.
                for _ in 0..<5 where shortest > 0.3 {
                    let metrics = TransactionKeeper()
                    _ = try await session.data(from: server.url("/", host: "two"), delegate: metrics)
                    let transaction = try #require(metrics.all.first)
                    let start = try #require(transaction.connectStartDate)
                    shortest = min(shortest, try #require(transaction.connectEndDate).timeIntervalSince(start))
                }
                #expect(shortest <= 0.3)
                #expect(shortest > 0.2, "the first address was reachable")
            }
        }
    }
}
