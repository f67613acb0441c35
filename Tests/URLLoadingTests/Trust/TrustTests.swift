// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which servers a session accepts, given its roots and TLS versions; bodies pass unchanged.
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

    @Test func `a certificate from a trusted root is accepted for its names and addresses`() async throws {
        try await withSecureScenario(certificates.valid) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "secret")
            #expect(try await session.text(server.url("/", host: "localhost")) == "secret")
        }
    }

    @Test func `the roots of the system do not include the test root`() async throws {
        try await withScenario(identity: certificates.valid, reply: { _ in .ok() }) { (server, session) async throws in
            await expectFailure(.serverCertificateHasUnknownRoot, .serverCertificateUntrusted) {
                try await session.data(from: server.url())
            }
        }
    }

    @Test func `unreadable trust roots fail the load, and the system's roots do not replace them`() async throws {
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
        // A readable root is used even if other roots are unreadable.
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = rows + [certificates.root] },
            reply: { _ in .ok("read") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "read")
        }
    }

    @Test func `a TLS version outside the configured ones fails`() async throws {
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

    @Test func `uploads and downloads over TLS are complete`() async throws {
        let content = ScriptedFile.pattern(2_000_000)
        try await withSecureScenario(certificates.valid, reply: { .ok($0.body) }) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: Data(content))
            #expect(data == Data(content))
            #expect(server.connectionCount == 1)
        }
    }
}
