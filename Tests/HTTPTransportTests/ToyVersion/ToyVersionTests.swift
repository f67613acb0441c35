// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import HTTPTransport

/// Another version of HTTP, which the pool and the dialer know only by its carrier.
@Suite struct ToyVersionTests {
    private let certificates: TestCertificates
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    init() throws { certificates = try TestCertificates.shared.get() }

    /// What loads got that asked for connections at the same time.
    private struct Found: Sendable {
        var versions: [HTTPVersions] = []
        var texts: [String] = []
        var connectionCount = 0
        var events: [String] = []
    }

    /// Begins requests at the same time, on connections for which the toy version races with channels.
    private func load(
        _ count: Int, _ behavior: ToyServer.Behavior, allowed: HTTPVersions = .all
    ) async throws -> (result: Found, accepted: Int) {
        let context = try NIOSSLContext(configuration: try certificates.valid.serverConfiguration(versions: .v1_3 ... .v1_3))
        let accepted = Watched(0)
        let listener = try await LoopbackListener { channel in
            accepted.change { $0 += 1 }
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
        }
        let (loop, port, policy) = (loop, listener.port, TLSPolicy(trustRoots: [certificates.root]))
        let made = try await loop.submit {
            let server = ToyServer(behavior)
            let dialer = Dialer(
                loop: loop, tls: TLSSession(policy: policy), resolver: SystemResolver(), now: { 0 },
                carriers: [server.carrier] + VersionCarrier.standard)
            let pool = ConnectionPool(loop: loop, dialer: dialer, maximumConnectionsPerHost: 6, budget: ConnectionBudget())
            let route = Route(
                isSecure: true, host: "localhost", port: port,
                details: allowed == .all ? nil : RouteDetails(proxy: nil, versions: allowed))
            let leases = (0..<count).map { _ in
                pool.acquire(route, priority: 0.5, control: LoadControl(on: LoopExecutor(loop), now: .now()))
            }
            return NIOLoopBound((pool: pool, leases: leases, server: server), eventLoop: loop)
        }
        .get()
        while try await loop.submit({ made.value.leases.contains { !$0.isAnswered } }).get() {}
        let begun = try await loop.submit {
            let connections = try made.value.leases.map { try made.value.pool.take($0) }
            let message = OutgoingMessage(
                head: RequestHead(method: "GET", target: "/toy", headers: HeaderBlock([("Host", "a.test")])))
            let exchanges = try zip(connections, made.value.leases).map { try $0.begin(message, control: $1.control) }
            var result = Found()
            result.versions = exchanges.map(\.version)
            result.connectionCount = Set(connections.map(\.id)).count
            return NIOLoopBound((exchanges: exchanges, result: result), eventLoop: loop)
        }
        .get()
        if behavior == .answers, allowed == .all {
            while try await loop.submit({ begun.value.exchanges.contains { !$0.isOver } }).get() {}
        }
        let result = try await loop.submit {
            var result = begun.value.result
            for exchange in begun.value.exchanges {
                if let text = exchange.takeWhole().map({ String(buffer: $0) }) { result.texts.append(text) }
                exchange.cancel()
            }
            made.value.pool.shutDown()
            result.events = made.value.server.events
            return result
        }
        .get()
        try await listener.close()
        return (result, accepted.read { $0 })
    }

    @Test func `a version without a channel serves loads that share its connection`() async throws {
        let (result, accepted) = try await load(2, .answers)
        #expect(result.versions == [.toy, .toy] && result.texts == ["GET /toy", "GET /toy"] && result.connectionCount == 1)
        // It was quick enough, so no channel was opened; the session's end closes the connection.
        #expect(result.events == ["started", "closed"] && accepted == 0)
    }

    @Test(arguments: [(.refuses, ["started"]), (.isSilent, ["started", "dropped"])] as [(ToyServer.Behavior, [String])])
    func `a channel serves the load if the other version fails or is silent`(
        behavior: ToyServer.Behavior, events: [String]
    ) async throws {
        let (result, accepted) = try await load(1, behavior)
        #expect(result.versions == [.http1] && result.events == events && accepted == 1)
    }

    @Test func `a route that does not allow the version does not start it`() async throws {
        let (result, accepted) = try await load(1, .answers, allowed: .http1)
        #expect(result.versions == [.http1] && result.events.isEmpty && accepted == 1)
    }
}
