// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Delegates that pin with functions of the Security framework, against real servers.
@Suite(.timeLimit(.minutes(1)))
struct PinningLoadTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func load(
        _ identity: TestCertificates.Identity, roots: [Data], _ delegate: any URLSessionDelegate, _ code: URLError.Code?
    ) async throws {
        try await withScenario(
            identity: identity, delegate: delegate, configure: { $0.tlsTrustRoots = roots }, reply: { _ in .ok("pinned") }
        ) { (server, session) async throws in
            guard let code else {
                #expect(try await session.text(server.url()) == "pinned")
                return
            }
            await expectFailure(code) { try await session.data(from: server.url()) }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a delegate that compares certificates accepts only the right one`() async throws {
        let right = CertificatePinningDelegate(pinned: Data(certificates.valid.chain[0]))
        try await load(certificates.valid, roots: [certificates.root], right, nil)
        let wrong = CertificatePinningDelegate(pinned: Data(certificates.wrongHost.chain[0]))
        try await load(certificates.valid, roots: [certificates.root], wrong, .cancelled)
        // The certificate is the right one, but its root is not trusted.
        try await load(certificates.valid, roots: [], right, .cancelled)
    }

    @Test func `a delegate that compares keys accepts the server's or its issuer's`() async throws {
        for index in 0...1 {
            let certificate = try #require(SecCertificateCreateWithData(nil, Data(certificates.valid.chain[index]) as CFData))
            let hash = try #require(PinningSamples.publicKeyHash(of: certificate))
            try await load(certificates.valid, roots: [certificates.root], KeyPinningDelegate(hashes: [hash]), nil)
            let none = KeyPinningDelegate(hashes: [String(hash.reversed())])
            try await load(certificates.valid, roots: [certificates.root], none, .cancelled)
        }
    }

    @Test func `a delegate may use its own roots for a server`() async throws {
        let root = try #require(SecCertificateCreateWithData(nil, certificates.root as CFData))
        let judge = Judge { question in
            guard let trust = question.space.serverTrust else { return question.answer(.cancelAuthenticationChallenge, nil) }
            SecTrustSetAnchorCertificates(trust, [root] as CFArray)
            var error: CFError?
            if SecTrustEvaluateWithError(trust, &error) { question.trust() } else { question.answer(.rejectProtectionSpace, nil) }
        }
        try await load(certificates.valid, roots: [], SessionJudge(judge), nil)
        try await load(certificates.unknownAuthority, roots: [], SessionJudge(judge), .serverCertificateUntrusted)
        try await load(certificates.wrongHost, roots: [], SessionJudge(judge), .serverCertificateUntrusted)
        try await load(certificates.expired, roots: [], SessionJudge(judge), .serverCertificateUntrusted)
    }

    @Test func `roots that a delegate sets on the trust are ignored for default handling`() async throws {
        let root = try #require(SecCertificateCreateWithData(nil, certificates.root as CFData))
        let judge = Judge { question in
            if let trust = question.space.serverTrust { SecTrustSetAnchorCertificates(trust, [root] as CFArray) }
            question.answer(.performDefaultHandling, nil)
        }
        try await withScenario(identity: certificates.valid, delegate: SessionJudge(judge), reply: { _ in .ok() }) {
            (server, session) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                try await session.data(from: server.url())
            }
        }
    }
}
