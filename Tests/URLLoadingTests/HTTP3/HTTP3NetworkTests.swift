// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Networks that lose, delay, reorder, repeat and damage datagrams, and servers that vanish.
@Suite(.timeLimit(.minutes(3)))
struct HTTP3NetworkTests {
    private static let large = ScriptedFile.pattern(100_000)

    /// Runs a test with a session that demands HTTP/3, and a relay before the server.
    private func withRelay(
        _ weather: UDPRelay.Weather = .init(), seed: UInt64 = 1, isMortal: Bool = false,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        reply: @escaping HTTP3ScriptedServer.Reply,
        test: (HTTP3ScriptedServer, UDPRelay, URLSession, (String) throws -> URL) async throws -> Void
    ) async throws {
        try await withHTTP3Scenario(isMortal: isMortal, configure: configure, reply: reply) { (server, session) async throws in
            let relay = try await UDPRelay.start(to: server.port, weather, seed: seed)
            let url = { (path: String) throws -> URL in try #require(URL(string: "https://localhost:\(relay.port)\(path)")) }
            do {
                try await test(server, relay, session, url)
            } catch {
                await relay.close()
                throw error
            }
            await relay.close()
        }
    }

    private static let weathers: [(String, UDPRelay.Weather)] = [
        ("1 % lost", .init(loss: 0.01, delay: 0...2)),
        ("5 % lost", .init(loss: 0.05, delay: 1...3)),
        ("20 % lost", .init(loss: 0.2)),
        ("reordered", .init(delay: 0...20)),
        ("repeated", .init(duplication: 0.5, delay: 0...5)),
        ("damaged", .init(corruption: 0.1)),
        ("all at once", .init(loss: 0.03, duplication: 0.1, corruption: 0.03, delay: 0...8)),
    ]

    @Test(arguments: weathers.indices, [1, 2] as [UInt64]) func `loads arrive complete over a bad network`(
        row: Int, seed: UInt64
    ) async throws {
        let (name, weather) = Self.weathers[row]
        try await withRelay(
            weather, seed: seed, configure: { $0.timeoutIntervalForRequest = 60 },
            reply: { $0.method == "POST" ? [.awaitRequestEnd, .head(), .data($0.path)] : .ok(Self.large) }
        ) { (server, relay, session, url) async throws in
            let urls = try (0..<3).map { try url("/\($0)") }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for url in urls {
                    group.addTask { Self.large.elementsEqual(try await session.data(from: url).0) }
                    group.addTask {
                        let (data, _) = try await session.upload(for: URLRequest(url, method: "POST"), from: Data(Self.large))
                        return data == Data(url.path.utf8)
                    }
                }
                for try await isWhole in group { #expect(isWhole, "\(name)") }
            }
            for request in server.requests where request.method == "POST" {
                #expect(request.bodyLength == Self.large.count, "\(name)")
            }
        }
    }

    @Test func `a client whose address changes continues its loads`() async throws {
        try await withRelay(
            reply: { request in [.head(), .data("begin ", ends: false), .gate(request.path), .data("end")] }
        ) { (server, relay, session, url) async throws in
            let first = try url("/a")
            async let text = session.text(first)
            try await server.reached("/a")
            relay.rebind()
            server.open("/a")
            #expect(try await text == "begin end")
            server.open("/b")
            #expect(try await session.text(try url("/b")) == "begin end")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a network that swallows all datagrams of a connection is noticed long before the idle timeout`() async throws {
        try await withRelay(reply: { .ok($0.path) }) { (server, relay, session, url) async throws in
            #expect(try await session.text(try url("/a")) == "/a")
            relay.blackHole(true)
            let request = URLRequest(try url("/post"), method: "POST", body: Data("body".utf8))
            // Before the load times out.
            await expectFailure(.networkConnectionLost, .cannotConnectToHost) { try await session.text(request) }
            relay.blackHole(false)
            #expect(try await session.text(try url("/b")) == "/b")
        }
    }

    @Test func `a server that was restarted is noticed, and a GET is repeated`() async throws {
        try await withHTTP3Scenario(isMortal: true, reply: { .ok($0.path) }) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "/a")
            try await server.restart()
            // Before the load times out.
            #expect(try await session.text(server.url("/b")) == "/b")
            #expect(server.requests.map(\.path) == ["/a", "/b"])
        }
    }

    @Test func `a server that is gone fails a load soon`() async throws {
        try await withHTTP3Scenario(isMortal: true, reply: { .ok($0.path) }) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "/a")
            server.kill()
            let request = URLRequest(server.url("/post"), method: "POST", body: Data("body".utf8))
            await expectFailure(.networkConnectionLost, .cannotConnectToHost) { try await session.text(request) }
        }
    }

    @Test func `a server that was restarted loses the race with TCP if it does not answer`() async throws {
        try await withHTTP3Pair(isMortal: true) { (pair) async throws in
            #expect(try await pair.text() == "quic")
            pair.quic.kill()
            #expect(try await pair.text() == "tcp")
        }
    }

    @Test func `the keys of a connection may change`() async throws {
        try await withHTTP3Scenario(
            reply: { [.awaitRequestEnd, .head(), .data("begin ", ends: false), .updateKey, .awaitDelivery(10), .data($0.path)] }
        ) { (server, session) async throws in
            for path in ["/a", "/b", "/c"] { #expect(try await session.text(server.url(path)) == "begin " + path) }
            #expect(server.connectionCount == 1)
        }
    }
}
