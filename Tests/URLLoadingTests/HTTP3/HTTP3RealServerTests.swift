// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// HTTP/3 with real servers.
@Suite(.timeLimit(.minutes(2)))
final class HTTP3RealServerTests {
    enum ServerKind: String, CaseIterable, CustomTestStringConvertible {
        case caddy, gtlsserver

        var testDescription: String { rawValue }
    }

    private static let large = ScriptedFile.pattern(5_000_000)
    /// Compares a body outside of `#expect`, which would take hours to compute the difference of two large bodies.
    private static func isLarge(_ bytes: some Sequence<UInt8>) -> Bool { large.elementsEqual(bytes) }
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a server that has `small.txt` and `large.bin`.
    private func withServer(
        _ kind: ServerKind, delegate: (any URLSessionDelegate)? = nil, configure: (URLSessionConfiguration) -> Void = { _ in },
        test: (_ url: (String) -> URL, URLSession) async throws -> Void
    ) async throws {
        let (url, stop) = try start(kind)
        defer { stop() }
        try await withSession(
            delegate: delegate,
            {
                $0.speakHTTP3(certificates)
                // Each response comes from the server, not from a cache.
                $0.urlCache = nil
                configure($0)
            },
            test: { session in try await test(url, session) })
    }

    private func start(_ kind: ServerKind) throws -> (url: (String) -> URL, stop: () -> Void) {
        let small = Array("small".utf8)
        switch kind {
        case .caddy:
            let server = try CaddyServer.start(certificates.valid, http3: true)
            try server.put(small, at: "/small.txt")
            try server.put(Self.large, at: "/large.bin")
            return ({ server.url($0) }, server.stop)
        case .gtlsserver:
            let server = try GTLSServer.start(certificates.valid)
            try server.put(small, at: "/small.txt")
            try server.put(Self.large, at: "/large.bin")
            return (server.url, server.stop)
        }
    }

    @Test(arguments: ServerKind.allCases) func `files arrive complete, and a missing file is a 404`(kind: ServerKind) async throws
    {
        let recorder = EventRecorder()
        try await withServer(kind, delegate: recorder) { (url, session) async throws in
            let task = session.dataTask(with: url("/small.txt"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("small".utf8))
            let transaction = try #require(record.metrics?.transactionMetrics.first)
            #expect(transaction.networkProtocolName == "h3")
            #expect(transaction.negotiatedTLSProtocolVersion == .TLSv13)
            #expect(transaction.connectStartDate == transaction.secureConnectionStartDate)
            #expect(Self.isLarge(try await session.data(from: url("/large.bin")).0))
            let (file, _) = try await session.download(from: url("/large.bin"))
            #expect(Self.isLarge(try Data(contentsOf: file)))
            try FileManager.default.removeItem(at: file)
            let head = try await session.text(URLRequest(url("/large.bin"), method: "HEAD"))
            #expect(head.text.isEmpty && head.response.expectedContentLength == 5_000_000)
            #expect(try await session.text(URLRequest(url("/none"))).response.statusCode == 404)
        }
    }

    @Test(arguments: ServerKind.allCases) func `a thousand concurrent requests succeed on one connection`(
        kind: ServerKind
    ) async throws {
        let recorder = EventRecorder()
        try await withServer(kind, delegate: recorder) { (url, session) async throws in
            let small = url("/small.txt")
            let bodies = try await withThrowingTaskGroup(of: Data.self) { group in
                for _ in 0..<1_000 { group.addTask { try await session.data(from: small).0 } }
                return try await group.reduce(into: [Data]()) { $0.append($1) }
            }
            #expect(bodies.count == 1_000 && bodies.allSatisfy { $0 == Data("small".utf8) })
            let task = session.dataTask(with: small)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.metrics?.transactionMetrics.last?.isReusedConnection == true)
        }
    }

    @Test(arguments: ServerKind.allCases) func `a large body is sent completely`(kind: ServerKind) async throws {
        try await withServer(kind) { (url, session) async throws in
            let path = kind == .caddy ? "/echo" : "/upload"
            let (data, response) = try await session.upload(for: URLRequest(url(path), method: "POST"), from: Data(Self.large))
            if kind == .caddy { #expect(String(decoding: data, as: UTF8.self).hasPrefix("POST")) }
            #expect((response as? HTTPURLResponse)?.statusCode != nil)
        }
    }

    @Test func `a redirect and a compressed response of Caddy are followed and decoded`() async throws {
        let server = try CaddyServer.start(certificates.valid, http3: true)
        defer { server.stop() }
        try server.put("new".utf8, at: "/new")
        try server.put([UInt8](repeating: 0x61, count: 100_000), at: "/gzip/a.txt")
        try await withSession {
            $0.speakHTTP3(certificates)
        } test: { (session) async throws in
            #expect(try await session.text(server.url("/old")) == "new")
            #expect(try await session.text(server.url("/gzip/a.txt")).count == 100_000)
        }
    }

    /// Caddy announces HTTP/3 by itself.
    @Test func `a later connection speaks HTTP/3 with a server that announces it`() async throws {
        let server = try CaddyServer.start(certificates.valid, http3: true)
        defer { server.stop() }
        try server.put("small".utf8, at: "/small.txt")
        let recorder = EventRecorder()
        try await withSession(delegate: recorder, { $0.tlsTrustRoots = [certificates.root] }) { (session) async throws in
            func version(_ close: Bool) async throws -> String? {
                var request = URLRequest(server.url("/small.txt"))
                request.cachePolicy = .reloadIgnoringLocalCacheData
                let task = session.dataTask(with: request)
                task.resume()
                return try await recorder.completion(of: task).metrics?.transactionMetrics.last?.networkProtocolName
            }
            #expect(try await version(false) == "h2")
            // The connection is used on.
            #expect(try await version(false) == "h2")
            await withCheckedContinuation { done in session.flush { done.resume() } }
            #expect(try await version(true) == "h3")
        }
    }

    @Test func `a server that pauses is waited for`() async throws {
        let server = try GTLSServer.start(certificates.valid)
        defer { server.stop() }
        try server.put("small".utf8, at: "/small.txt")
        try await withSession {
            $0.speakHTTP3(certificates)
        } test: { (session) async throws in
            #expect(try await session.text(server.url("/small.txt")) == "small")
            server.pause()
            let url = server.url("/small.txt")
            async let text = session.text(URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)).text
            server.resume()
            #expect(try await text == "small")
        }
    }
}
