// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// HTTP/3 over networks that lose, delay, reorder, double and damage datagrams.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3WeatherTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a session and a relay before a port.
    private func withRelay(
        to port: Int, _ weather: UDPRelay.Weather, seed: UInt64 = 1,
        test: (UDPRelay, _ url: (String) -> URL, URLSession) async throws -> Void
    ) async throws {
        let relay = try await UDPRelay.start(to: port, weather, seed: seed)
        try await withSession {
            $0.timeoutIntervalForRequest = 100
            $0.tlsTrustRoots = [certificates.root]
            $0.connectionOptions.httpVersions = .http3Only
        } test: { (session) async throws in
            try await test(
                relay,
                { path in
                    guard let url = URL(string: "https://localhost:\(relay.port)\(path)") else {
                        preconditionFailure("'\(path)' is not a path")
                    }
                    return url
                }, session)
        }
        await relay.close()
    }

    private static let weathers: [UDPRelay.Weather] = [
        .init(loss: 0.1, delay: 1...20), .init(duplication: 0.3, delay: 0...5), .init(corruption: 0.05),
        .init(loss: 0.02, duplication: 0.05, corruption: 0.02, delay: 5...15),
    ]

    @Test(arguments: weathers.indices) func `downloads are intact`(row: Int) async throws {
        let content = ScriptedFile.pattern(1 << 20)
        let server = try GTLSServer.start(certificates.valid)
        defer { server.stop() }
        try server.put(content, at: "/file")
        for seed in 1...3 as ClosedRange<UInt64> {
            try await withRelay(to: server.port, Self.weathers[row], seed: seed) { (relay, url, session) async throws in
                for _ in 0..<2 {
                    let (file, response) = try await session.download(from: url("/file"))
                    #expect((response as? HTTPURLResponse)?.statusCode == 200, "seed \(seed)")
                    #expect(try Data(contentsOf: file) == Data(content), "seed \(seed)")
                    try FileManager.default.removeItem(at: file)
                }
                let counts = relay.counts
                #expect(counts.lost + counts.duplicated + counts.corrupted > 0)
            }
        }
    }

    @Test(arguments: weathers.indices) func `uploads are intact`(row: Int) async throws {
        let content = ScriptedFile.pattern(300_000)
        try await withScriptedServer(version: .http3, reply: { .ok("\($0.bodyLength)") }) { (server) async throws in
            try await withRelay(to: server.port, Self.weathers[row]) { (_, url, session) async throws in
                for number in 0..<3 {
                    let request = URLRequest(url("/\(number)"), method: "PUT")
                    #expect(try await session.upload(for: request, from: Data(content)).0 == Data("300000".utf8))
                    #expect(try await server.request(number).body == content)
                }
            }
        }
    }

    @Test func `many loads at once over a bad network are not mixed up`() async throws {
        try await withScriptedServer(version: .http3, reply: { .ok($0.path + String(repeating: "x", count: 5_000)) }) {
            (server) async throws in
            try await withRelay(to: server.port, .init(loss: 0.1, delay: 1...20)) { (_, url, session) async throws in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<40 {
                        let one = url("/\(number)")
                        group.addTask {
                            let text = try await session.text(one)
                            #expect(text == "/\(number)" + String(repeating: "x", count: 5_000))
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(server.connectionCount == 1)
            }
        }
    }

    /// RFC 9000, section 9: the server sees another address, and the client does nothing.
    @Test func `a connection survives the rebinding of a NAT`() async throws {
        let content = ScriptedFile.pattern(100_000)
        let server = try GTLSServer.start(certificates.valid)
        defer { server.stop() }
        try server.put(content, at: "/file")
        try await withRelay(to: server.port, .init()) { (relay, url, session) async throws in
            for _ in 0..<3 {
                #expect(try await session.data(from: url("/file")).0 == Data(content))
                relay.rebind()
            }
            #expect(try await session.outcome(url("/file")).transactions.map(\.isReusedConnection) == [true])
        }
    }

    @Test func `an interruption of the network delays loads`() async throws {
        let content = ScriptedFile.pattern(2 << 20)
        let server = try GTLSServer.start(certificates.valid)
        defer { server.stop() }
        try server.put(content, at: "/file")
        try await withRelay(to: server.port, .init()) { (relay, url, session) async throws in
            let one = url("/file")
            async let data = session.data(from: one).0
            try await relay.counts { $0.fromServer > 50 }
            relay.blackHole(true)
            let lost = relay.counts.lost
            try await relay.counts { $0.lost > lost + 2 }
            relay.blackHole(false)
            #expect(try await data == Data(content))
        }
    }

    @Test func `a server that stops for a while answers later`() async throws {
        let server = try GTLSServer.start(certificates.valid)
        defer { server.stop() }
        try server.put(Array("hello".utf8), at: "/file")
        try await withRelay(to: server.port, .init()) { (relay, url, session) async throws in
            #expect(try await session.text(url("/file")) == "hello")
            server.pause()
            let one = url("/file")
            let before = relay.counts.fromClients
            async let text = session.text(one)
            try await relay.counts { $0.fromClients > before + 2 }
            server.resume()
            #expect(try await text == "hello")
        }
    }
}
