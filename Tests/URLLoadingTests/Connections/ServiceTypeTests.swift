// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `networkServiceType` and `multipathServiceType`: how packets are marked, and when multipath TCP is used.
@Suite(.timeLimit(.minutes(2))) struct ServiceTypeTests {
    typealias Service = URLRequest.NetworkServiceType

    /// The code point and the priority of each type.
    private static let marks: [(Service, codePoint: CInt, priority: CInt)] = [
        (.default, 0, 0), (.background, 8, 1), (.responsiveData, 18, 0), (.avStreaming, 26, 4), (.responsiveAV, 32, 4),
        (.video, 34, 4),
        (.callSignaling, 40, 4), (.voip, 40, 4), (.voice, 46, 6),
    ]

    private func request(_ url: URL, _ service: Service) -> URLRequest {
        var request = URLRequest(url: url)
        request.networkServiceType = service
        return request
    }

    /// Keeps the server open until the sockets have been inspected.
    private func with(_ address: String, _ test: (ScriptedServer) async throws -> Void) async throws {
        let server = try await ScriptedServer.start(address: address) { _ in .ok("there") }
        do { try await test(server) } catch {
            try? await server.close()
            throw error
        }
        try await server.close()
    }

    private func marks(_ server: ScriptedServer) -> [[CInt]] {
        OwnSocket.connected(to: server.port).map { socket in
            let service =
                server.address == "::1" ? socket.option(CInt(IPPROTO_IPV6), IPV6_TCLASS) : socket.option(CInt(IPPROTO_IP), IP_TOS)
            return [service >> 2, socket.option(SOL_SOCKET, SO_PRIORITY)]
        }
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `a socket is marked as the request specifies, or else as the session specifies`(_ address: String) async throws {
        for row in Self.marks {
            try await with(address) { (server) async throws in
                try await withSession { (session) async throws in
                    _ = try await session.text(request(server.url(), row.0))
                    #expect(marks(server) == [[row.codePoint, row.priority]], "\(row.0)")
                }
            }
            try await with(address) { (server) async throws in
                try await withSession {
                    $0.networkServiceType = row.0
                } test: { (session) async throws in
                    _ = try await session.text(server.url())
                    #expect(marks(server) == [[row.codePoint, row.priority]], "\(row.0) of the session")
                }
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0), arguments: ["127.0.0.1", "::1"])
    func `every packet is marked, including the first`(_ address: String) async throws {
        try await with(address) { (server) async throws in
            let capture = try #require(LoopbackCapture())
            try await withSession {
                $0.networkServiceType = .video
            } test: { (session) async throws in
                _ = try await session.text(server.url())
                _ = try await session.text(request(server.url(), .voice))
            }
            let packets = capture.packets(to: server.port)
            let ports = Set(packets.map(\.sourcePort))
            #expect(ports.count == 2)
            for port in ports {
                let own = packets.filter { $0.sourcePort == port }
                #expect(own.contains { $0.isSYN } && own.contains { !$0.isSYN })
                #expect(own.allSatisfy { $0.isV6 == (address == "::1") })
            }
            // One connection is marked with AF41, the other with EF.
            let services = ports.map { port in Set(packets.filter { $0.sourcePort == port }.map(\.service)) }
            #expect(Set(services) == [[0x88], [0xB8]])
        }
    }

    @Test func `requests with different marks use different connections, and those with equal marks share them`() async throws {
        try await with("127.0.0.1") { (server) async throws in
            try await withSession {
                $0.networkServiceType = .video
            } test: { (session) async throws in
                for service in [.default, .video, .voice, .voice, .default, .video] as [Service] {
                    _ = try await session.text(request(server.url(), service))
                }
                #expect(server.requests.map(\.connection) == [0, 0, 1, 1, 0, 0])
            }
        }
    }

    @Test func `a redirect is followed with the same marks`() async throws {
        let redirect = ScriptedReply.status(302, [("Location", "/b"), ("Connection", "close")], body: "")
        try await withScenario(reply: { $0.target == "/a" ? redirect : .ok("there") }) { (server, session) async throws in
            let (text, _) = try await session.text(request(server.url("/a"), .voice))
            #expect(text == "there")
            #expect(marks(server) == [[46, 6]])
        }
    }

    // MARK: Multipath

    private static let hasMultipath: Bool = {
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 262)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0
    }()

    @Test(.enabled(if: hasMultipath), arguments: [true, false])
    func `connections use multipath TCP if the session requests it and the server supports it`(
        _ isServerMultipath: Bool
    ) async throws {
        let server = try await ScriptedServer.start(isMultipath: isServerMultipath) { _ in .ok("there") }
        for (service, isMultipath) in [
            (.none, false), (.handover, true), (.interactive, true), (.aggregate, true),
        ] as [(URLSessionConfiguration.MultipathServiceType, Bool)] {
            let metrics = TransactionKeeper()
            try await withSession { configuration in
                configuration.multipathServiceType = service
                configuration.networkServiceType = .voice
                configuration.timeoutIntervalForRequest = 10
            } test: { (session) async throws in
                _ = try await session.data(from: server.url(), delegate: metrics)
                // 262 is `IPPROTO_MPTCP`.
                #expect(
                    OwnSocket.connected(to: server.port).contains { $0.option(SOL_SOCKET, SO_PROTOCOL) == 262 } == isMultipath)
                #expect(marks(server).contains([46, 6]))
            }
            #expect(try #require(metrics.all.first).isMultipath == (isMultipath && isServerMultipath))
        }
        try await server.close()
    }

    @Test(.enabled(if: geteuid() == 0 && hasMultipath))
    func `connections use plain TCP if the kernel has no multipath TCP`() async throws {
        // The suite runs in a network namespace in which multipath TCP is disabled.
        let script = #"ip link set lo up && echo 0 > /proc/sys/net/mptcp/enabled && exec "$@""#
        try await SeparateProcess.run(
            "NoMultipathTests", environment: [:], wrapper: ["/usr/bin/env", "unshare", "-n", "/bin/sh", "-c", script, "sh"]
        )
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("NoMultipathTests")), .timeLimit(.minutes(1))) struct NoMultipathTests {
    @Test func `plain TCP is used if the kernel refuses multipath TCP`() async throws {
        try await withScriptedServer(reply: { _ in .ok("there", [("Connection", "close")]) }) { (server) async throws in
            let metrics = TransactionKeeper()
            try await withSession {
                $0.multipathServiceType = .aggregate
            } test: { (session) async throws in
                for _ in 0..<3 {
                    let (data, _) = try await session.data(from: server.url(), delegate: metrics)
                    #expect(data == Data("there".utf8))
                    #expect(try #require(metrics.all.first).isMultipath == false)
                }
            }
        }
    }
}

/// Records the transactions of the load that ended last.
final class TransactionKeeper: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    // Sendable because `all` is set on the delegate queue before the load ends, and read afterwards.
    var all: [URLSessionTaskTransactionMetrics] = []

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        all = metrics.transactionMetrics
    }
}
