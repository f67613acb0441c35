// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The delegates of common pinning guides, with a server.
@Suite(.timeLimit(.minutes(1)))
struct PinningDelegateTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func load(
        _ identity: TestCertificates.Identity, _ delegate: any URLSessionDelegate
    ) async throws -> (String?, URLError.Code?) {
        var outcome: (String?, URLError.Code?) = (nil, nil)
        try await withScenario(
            identity: identity, delegate: delegate, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { _ in .ok("pinned") }
        ) { (server, session) async throws in
            do {
                outcome.0 = try await session.text(server.url("/", host: "localhost"))
            } catch let error as URLError {
                outcome.1 = error.code
            }
        }
        return outcome
    }

    @Test func `a pinned certificate is accepted, and another one cancels the load`() async throws {
        let pinned = CertificatePinningDelegate(pinned: Data(certificates.valid.chain[0]))
        #expect(try await load(certificates.valid, pinned) == ("pinned", nil))
        let other = CertificatePinningDelegate(pinned: certificates.root)
        #expect(try await load(certificates.valid, other) == (nil, .cancelled))
        let expired = CertificatePinningDelegate(pinned: Data(certificates.expired.chain[0]))
        #expect(try await load(certificates.expired, expired) == (nil, .cancelled))
    }

    @Test func `a pinned key of the server or an issuer is accepted, and another one cancels the load`() async throws {
        for index in 0...1 {
            let hash = try #require(certificates.pin(certificates.valid, index))
            #expect(try await load(certificates.valid, KeyPinningDelegate(hashes: [hash])) == ("pinned", nil))
        }
        #expect(try await load(certificates.valid, KeyPinningDelegate(hashes: ["no hash"])) == (nil, .cancelled))
    }
}
