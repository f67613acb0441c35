// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// RFC 6797, section 8.1: the field only counts if the roots trust the server, whatever a delegate answers.
@Suite(.timeLimit(.minutes(1)))
struct StrictTransportSecurityTrustTests {
    private static let field = "Strict-Transport-Security"
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a session that trusts the test root, and whose delegate trusts every server.
    private func withTrustingSession(isTask: Bool = false, test: (URLSession) async throws -> Void) async throws {
        try await withSession(delegate: isTask ? TaskJudge(.trusting) : SessionJudge(.trusting)) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { session in
            try await test(session)
        }
    }

    private func withAskingServer(
        _ identity: TestCertificates.Identity, _ value: String = "max-age=1000", test: (URL) async throws -> Void
    ) async throws {
        try await withScriptedServer(identity: identity, reply: { _ in .ok("secret", [(Self.field, value)]) }) {
            (server) async throws in
            try await test(server.url("/", host: "localhost"))
        }
    }

    /// The same URL with http; a TLS server cannot respond to a request for it.
    private func inClear(_ url: URL) throws -> URL {
        try #require(URL(string: url.absoluteString.replacingOccurrences(of: "https:", with: "http:")))
    }

    @Test(arguments: [false, true])
    func `the field is ignored if only a delegate trusts the server`(isTask: Bool) async throws {
        let rows = [
            ("self-signed", certificates.selfSigned), ("expired", certificates.expired), ("wrong host", certificates.wrongHost),
            ("unknown root", certificates.unknownAuthority), ("missing intermediate", certificates.missingIntermediate),
        ]
        for (name, identity) in rows {
            try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
                try await withAskingServer(identity) { (url) async throws in
                    try await withTrustingSession(isTask: isTask) { (session) async throws in
                        #expect(try await session.text(url) == "secret", "\(name)")
                        #expect(try await session.text(clear.url("/", host: "localhost")) == "clear", "\(name)")
                    }
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `the field counts if the roots trust the server, even if a delegate trusts it too`(isTask: Bool) async throws {
        try await withAskingServer(certificates.valid) { (url) async throws in
            try await withTrustingSession(isTask: isTask) { (session) async throws in
                #expect(try await session.text(url) == "secret")
                #expect(try await session.text(inClear(url)) == "secret")
            }
        }
    }

    @Test func `max-age=0 is ignored if only a delegate trusts the server`() async throws {
        try await withAskingServer(certificates.valid) { (url) async throws in
            try await withAskingServer(certificates.selfSigned, "max-age=0") { (impostor) async throws in
                try await withTrustingSession { (session) async throws in
                    _ = try await session.data(from: url)
                    #expect(try await session.text(impostor) == "secret")
                    #expect(try await session.text(inClear(url)) == "secret")
                }
            }
        }
    }
}
