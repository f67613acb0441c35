// SPDX-License-Identifier: Apache-2.0

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

    private func withRenegotiation(
        _ judge: Judge?, test: (ApacheServer, URLSession) async throws -> Void
    ) async throws {
        let apache = try ApacheServer.start(certificates)
        defer { apache.stop() }
        try await withSession(delegate: judge.map { SessionJudge($0) }) {
            $0.tlsTrustRoots = [certificates.root]
            $0.tlsMaximumSupportedProtocolVersion = .TLSv12
        } test: { (session) async throws in
            try await test(apache, session)
        }
    }

    @Test func `a server that negotiates TLS again gets the client certificate, on a connection of its own`() async throws {
        let identity = try SecIdentity(pem: Data((certificates.client.chainPEM + certificates.client.keyPEM).utf8))
        let judge = Judge.showing(identity)
        try await withRenegotiation(judge) { (apache, session) async throws in
            let open = apache.url("/open/page.txt", .secure)
            #expect(try await session.text(open) == "page of open")
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(apache.url("/certified/page.txt", .secure)))
                #expect(text == "page of certified" && response.statusCode == 200)
                #expect(response.value(forHTTPHeaderField: "X-Client") == "CN=Test Client")
                // Other loads do not use the connection.
                let (_, other) = try await session.text(URLRequest(open))
                #expect(other.value(forHTTPHeaderField: "X-Client")?.isEmpty != false)
            }
            #expect(judge.kinds.count { $0 == NSURLAuthenticationMethodClientCertificate } == 1)
        }
    }

    @Test func `a load fails with the reason if the server negotiates TLS again and there is no identity`() async throws {
        for judge in [nil, Judge.saying(.performDefaultHandling)] {
            try await withRenegotiation(judge) { (apache, session) async throws in
                let url = apache.url("/certified/page.txt", .secure)
                let error = await expectFailure(.clientCertificateRequired) { try await session.data(from: url) }
                #expect((error?.userInfo[NSLocalizedDescriptionKey] as? String)?.contains("negotiate TLS again") == true)
                #expect(error?.failingURL == url)
                #expect(try await session.text(apache.url("/open/page.txt", .secure)) == "page of open")
            }
        }
    }

    @Test func `a POST is not sent again to a server that negotiates TLS again`() async throws {
        let identity = try SecIdentity(pem: Data((certificates.client.chainPEM + certificates.client.keyPEM).utf8))
        let judge = Judge.showing(identity)
        try await withRenegotiation(judge) { (apache, session) async throws in
            let request = URLRequest(apache.url("/certified/echo", .secure), method: "POST", body: Data("body".utf8))
            await expectFailure(.clientCertificateRequired) { try await session.data(for: request) }
            #expect(!judge.kinds.contains(NSURLAuthenticationMethodClientCertificate))
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
