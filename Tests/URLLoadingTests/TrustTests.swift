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
import URLLoading

/// Rows T1, T4 and T5 of the hostile inputs: TLS is verified, and each failure has its code.
@Suite(.timeLimit(.minutes(1)))
struct TrustTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withSecureScenario(
        _ identity: TestCertificates.Identity,
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { _ in .ok("secret") },
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: identity, configure: { $0.tlsTrustRoots = [certificates.root] }, reply: reply, test: test
        )
    }

    @Test func `a certificate of a trusted root is accepted for its names and addresses`() async throws {
        try await withSecureScenario(certificates.valid) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            #expect(try await session.text(server.url("/", host: "localhost")) == "secret")
        }
    }

    @Test func `T1 each bad certificate has its code, and nothing is sent`() async throws {
        let rows: [(String, TestCertificates.Identity, URLError.Code)] = [
            ("expired", certificates.expired, .serverCertificateHasBadDate),
            ("not yet valid", certificates.notYetValid, .serverCertificateNotYetValid),
            ("wrong host", certificates.wrongHost, .serverCertificateUntrusted),
            ("self-signed", certificates.selfSigned, .serverCertificateUntrusted),
            ("unknown root", certificates.unknownAuthority, .serverCertificateHasUnknownRoot),
            ("missing intermediate", certificates.missingIntermediate, .serverCertificateUntrusted),
        ]
        for (name, identity, code) in rows {
            try await withSecureScenario(identity) { (server, session) async throws in
                let error = await expectFailure(code, in: name) { try await session.data(from: server.url()) }
                #expect(error?.failingURL == server.url())
                #expect(error?.userInfo[NSUnderlyingErrorKey] != nil, "\(name)")
                #expect(server.requests.isEmpty)
                try await server.waitForAllClosed()
            }
        }
    }

    @Test func `the roots of the system do not include ours`() async throws {
        try await withScenario(identity: certificates.valid, reply: { _ in .ok() }) { (server, session) async throws in
            await expectFailure(.serverCertificateHasUnknownRoot, .serverCertificateUntrusted) {
                try await session.data(from: server.url())
            }
        }
    }

    @Test func `trust roots that cannot be read fail the load, and the system's do not stand in for them`() async throws {
        let rows = [
            Data(), Data("no certificate".utf8), Data([0x30, 0x03, 0x02, 0x01, 0x05]),
            Data("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8),
            Data("-----BEGIN CERTIFICATE-----\n".utf8),
        ]
        for row in rows {
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [row] }, reply: { _ in .ok() }
            ) { (server, session) async throws in
                let error = await expectFailure(.secureConnectionFailed) { try await session.data(from: server.url()) }
                #expect(error?.localizedDescription.contains("cannot be read") == true)
                #expect(server.requests.isEmpty)
            }
        }
        // What can be read beside it counts.
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = rows + [certificates.root] },
            reply: { _ in .ok("read") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "read")
        }
    }

    @Test func `T4 plain HTTP where TLS is expected fails`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 2 },
            greeting: { _ in [.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), .stall] }, reply: { _ in [] }
        ) { (server, session) async throws in
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            await expectFailure(.secureConnectionFailed) { try await session.data(from: url) }
        }
    }

    @Test func `T4 a reset or a close in the handshake fails`() async throws {
        for effect in [SocketEffect.reset, .close] {
            try await withScenario(greeting: { _ in [.awaitBytes(1), effect] }, reply: { _ in [] }) {
                (server, session) async throws in
                let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
                await expectFailure(.secureConnectionFailed, .networkConnectionLost) { try await session.data(from: url) }
            }
        }
    }

    @Test func `T4 a version outside the configured ones fails`() async throws {
        let server = try await ScriptedServer.start(
            identity: certificates.valid, tls: .v1_2 ... .v1_2, reply: { _ in .ok("old") })
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            #expect(try await session.text(server.url()) == "old")
        }
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            $0.tlsMinimumSupportedProtocolVersion = .TLSv13
        } test: { (session) async throws in
            await expectFailure(.secureConnectionFailed) { try await session.data(from: server.url()) }
        }
        try await server.close()
    }

    @Test func `T5 a truncated body fails, a body until the end is delivered`() async throws {
        let head = "HTTP/1.1 200 OK\r\n"
        try await withSecureScenario(
            certificates.valid,
            reply: {
                $0.path == "/length"
                    ? [.write(head + "Content-Length: 10\r\n\r\nhello"), .closeAbruptly]
                    : [.write(head + "\r\nhello"), .closeAbruptly]
            }
        ) { (server, session) async throws in
            await expectFailure(.networkConnectionLost) { try await session.data(from: server.url("/length")) }
            #expect(try await session.text(server.url("/end")) == "hello")
        }
    }

    @Test func `a secure upload and download come whole`() async throws {
        let content = ScriptedFile.pattern(2_000_000)
        try await withSecureScenario(certificates.valid, reply: { .ok($0.body) }) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: Data(content))
            #expect(data == Data(content))
            #expect(server.connectionCount == 1)
        }
    }
}
