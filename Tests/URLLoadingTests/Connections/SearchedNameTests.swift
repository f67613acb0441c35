// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Names on a machine whose resolver has a search domain in which every name has an IPv6 address (resolv.conf(5)).
@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(2))) struct SearchedNameTests {
    @Test func `a name with addresses is not looked up in the search domain`() async throws {
        let folder = try TemporaryDirectory()
        let script = """
            ip link set lo up && cd '\(folder.path)' && printf 'search corp.test\\nnameserver 127.0.0.1\\n' > resolv.conf \
            && mount --bind resolv.conf /etc/resolv.conf && exec "$@"
            """
        try await SeparateProcess.run(
            "SearchDomainTests", environment: ["NSAllowsArbitraryLoads": "YES"],
            wrapper: ["/usr/bin/env", "unshare", "-n", "-m", "/bin/sh", "-c", script, "sh"]
        )
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SearchDomainTests")), .timeLimit(.minutes(1))) struct SearchDomainTests {
    @Test(arguments: [[], ["127.0.0.1"]]) func `only a name without addresses is looked up in the search domain`(
        _ nameServers: [String]
    ) async throws {
        let names = try await ScriptedNameServer.start(port: 53) { question, _ in
            switch question.name {
            case "plain.example", "alias.example": question.isV6 ? .addresses() : .addresses("127.0.0.1")
            case let name where name.hasSuffix(".corp.test"): question.isV6 ? .addresses("::1") : .addresses()
            default: .code(3)
            }
        }
        // The server listens at every address of both families.
        let server = try await ScriptedServer.start(address: "::") { _ in .ok("there") }
        try await withSession {
            $0.connectionOptions.nameServers = nameServers
        } test: { (session) async throws in
            let rows = [("plain.example", "127.0.0.1"), ("PLAIN.example.", "127.0.0.1"), ("host", "::1")]
            for (host, address) in rows {
                let metrics = TransactionKeeper()
                _ = try await session.data(from: server.url("/", host: host), delegate: metrics)
                #expect(metrics.all.first?.remoteAddress?.hasSuffix(address) == true, "\(host): \(metrics.all)")
            }
            for isV6 in [false, true] { #expect(names.count("plain.example.corp.test", isV6: isV6) == 0) }
        }
        try await server.close()
        await names.close()
    }
}
