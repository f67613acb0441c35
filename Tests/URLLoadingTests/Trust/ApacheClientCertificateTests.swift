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

/// Client certificates against a real Apache httpd.
@Suite(.timeLimit(.minutes(1)))
struct ApacheClientCertificateTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withApache(
        _ judge: Judge?, _ access: ApacheServer.Access, test: (URL, URLSession) async throws -> Void
    ) async throws {
        let apache = try ApacheServer.start(certificates)
        defer { apache.stop() }
        try await withSession(delegate: judge.map { SessionJudge($0) }) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            try await test(apache.url("/open/page.txt", access), session)
        }
    }

    @Test(arguments: [ApacheServer.Access.optionalCertificate, .requiredCertificate])
    func `a client certificate is presented on request`(access: ApacheServer.Access) async throws {
        let identity = try SecIdentity(pem: Data((certificates.client.chainPEM + certificates.client.keyPEM).utf8))
        let judge = Judge.showing(identity)
        try await withApache(judge, access) { (url, session) async throws in
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(url))
                #expect(text == "page of open" && response.statusCode == 200)
                #expect(response.value(forHTTPHeaderField: "X-Client") == "CN=Test Client")
            }
            #expect(judge.kinds == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
        }
    }

    @Test func `a server that only requests a certificate accepts a client without one`() async throws {
        for judge in [nil, Judge.saying(.performDefaultHandling)] {
            try await withApache(judge, .optionalCertificate) { (url, session) async throws in
                let (text, response) = try await session.text(URLRequest(url))
                #expect(text == "page of open" && response.statusCode == 200)
                #expect(response.value(forHTTPHeaderField: "X-Client")?.isEmpty != false)
            }
        }
    }

    @Test func `a load fails without the client certificate that the server requires`() async throws {
        for judge in [nil, Judge.saying(.performDefaultHandling)] {
            try await withApache(judge, .requiredCertificate) { (url, session) async throws in
                let error = await expectFailure(.clientCertificateRequired) { try await session.data(from: url) }
                #expect(error?.failingURL == url)
            }
        }
    }

    @Test func `a client certificate that the server does not know is rejected`() async throws {
        let strange = try SecIdentity(
            pem: Data((certificates.untrustedClient.chainPEM + certificates.untrustedClient.keyPEM).utf8))
        try await withApache(.showing(strange), .requiredCertificate) { (url, session) async throws in
            await expectFailure(.clientCertificateRejected) { try await session.data(from: url) }
        }
    }
}
