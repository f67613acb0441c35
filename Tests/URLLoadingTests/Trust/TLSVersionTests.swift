// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The versions of TLS that a configuration allows, the negotiated version, and its metrics.
@Suite(.timeLimit(.minutes(1)))
struct TLSVersionTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// The version that a load negotiated, from its metrics.
    private func negotiated(
        _ url: URL, _ configure: (URLSessionConfiguration) -> Void
    ) async throws -> (version: tls_protocol_version_t?, suite: tls_ciphersuite_t?) {
        var result: (version: tls_protocol_version_t?, suite: tls_ciphersuite_t?) = (nil, nil)
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            configure($0)
        } test: { (session) async throws in
            let recorder = EventRecorder()
            let task = session.dataTask(with: url)
            task.delegate = recorder
            task.resume()
            let record = try await recorder.completion(of: task)
            if let error = record.error { throw error }
            let metrics = try #require(record.metrics?.transactionMetrics.last)
            result = (metrics.negotiatedTLSProtocolVersion, metrics.negotiatedTLSCipherSuite)
        }
        return result
    }

    @Test func `the highest common version is used, and without one the load fails`() async throws {
        typealias Setting = @Sendable (URLSessionConfiguration) -> Void
        let settings: [(String, Setting, lowest: Int, highest: Int)] = [
            ("default", { _ in }, 2, 3),
            ("minimum 1.3", { $0.tlsMinimumSupportedProtocolVersion = .TLSv13 }, 3, 3),
            ("maximum 1.2", { $0.tlsMaximumSupportedProtocolVersion = .TLSv12 }, 2, 2),
            (
                "1.3 alone",
                {
                    $0.tlsMinimumSupportedProtocolVersion = .TLSv13
                    $0.tlsMaximumSupportedProtocolVersion = .TLSv13
                }, 3, 3
            ),
            ("SSLProtocol minimum 1.3", { $0.tlsMinimumSupportedProtocol = .tlsProtocol13 }, 3, 3),
            ("SSLProtocol maximum 1.2", { $0.tlsMaximumSupportedProtocol = .tlsProtocol12 }, 2, 2),
            (
                "SSLProtocol any",
                {
                    $0.tlsMinimumSupportedProtocol = .sslProtocolUnknown
                    $0.tlsMaximumSupportedProtocol = .tlsProtocolMaxSupported
                }, 2, 3
            ),
        ]
        let servers: [(ClosedRange<TestCertificates.Version>, lowest: Int, highest: Int)] = [
            (.v1_2 ... .v1_3, 2, 3), (.v1_2 ... .v1_2, 2, 2), (.v1_3 ... .v1_3, 3, 3),
        ]
        for (versions, serverLowest, serverHighest) in servers {
            let server = try await ScriptedServer.start(identity: certificates.valid, tls: versions, reply: { _ in .ok() })
            for (name, configure, lowest, highest) in settings {
                let version = min(highest, serverHighest)
                guard version >= max(lowest, serverLowest) else {
                    await expectFailure(.secureConnectionFailed, in: "\(name), server \(versions)") {
                        try await negotiated(server.url(), configure)
                    }
                    continue
                }
                let result = try await negotiated(server.url(), configure)
                #expect(result.version == (version == 3 ? .TLSv13 : .TLSv12), "\(name), server \(versions)")
                // The suites of TLS 1.3 are 0x1301 to 0x1305 (RFC 8446, appendix B.4).
                let isNew = (result.suite?.rawValue ?? 0) >> 8 == 0x13
                #expect(isNew == (version == 3), "\(name), server \(versions)")
            }
            try await server.close()
        }
    }

    @Test func `TLS 1.0 and 1.1 are refused unless the configuration allows them`() async throws {
        for (option, version) in [("-tls1", tls_protocol_version_t.TLSv10), ("-tls1_1", .TLSv11)] {
            let options = [option, "-cipher", "ALL:@SECLEVEL=0"]
            try await withOpenSSL(certificates.valid, root: certificates.rootPEM, options) { (server) async throws in
                await expectFailure(.secureConnectionFailed, in: option) { try await negotiated(server.url(), { _ in }) }
                let result = try await negotiated(server.url()) { $0.tlsMinimumSupportedProtocolVersion = .TLSv10 }
                #expect(result.version == version)
            }
        }
    }

    @Test func `cipher suites without encryption or server authentication are refused`() async throws {
        for suites in ["NULL:@SECLEVEL=0", "aNULL:@SECLEVEL=0"] {
            try await withOpenSSL(certificates.valid, root: certificates.rootPEM, ["-tls1_2", "-cipher", suites]) {
                (server) async throws in
                await expectFailure(.secureConnectionFailed, in: suites) { try await negotiated(server.url(), { _ in }) }
            }
        }
    }

    @Test func `the error of a version mismatch names the required version`() async throws {
        let server = try await ScriptedServer.start(identity: certificates.valid, tls: .v1_2 ... .v1_2, reply: { _ in .ok() })
        let error = await expectFailure(.secureConnectionFailed) {
            try await negotiated(server.url()) { $0.tlsMinimumSupportedProtocolVersion = .TLSv13 }
        }
        #expect(error?.localizedDescription.contains("TLS 1.3") == true, "\(String(describing: error))")
        #expect(error?.failingURL == server.url())
        try await server.close()
    }
}
