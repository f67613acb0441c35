// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Each certificate failure has its error code, and the error has the server's chain.
@Suite(.timeLimit(.minutes(1)))
struct CertificateFailureTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    @Test func `each certificate failure has its error code and chain`() async throws {
        let rows: [(String, TestCertificates.Identity, String, URLError.Code?)] = [
            ("valid", certificates.valid, "127.0.0.1", nil),
            ("valid by name", certificates.valid, "localhost", nil),
            ("name constraint kept", certificates.nameConstraintSatisfied, "127.0.0.1", nil),
            ("name constraint kept by name", certificates.nameConstraintSatisfied, "localhost", nil),
            ("expired", certificates.expired, "127.0.0.1", .serverCertificateHasBadDate),
            ("not yet valid", certificates.notYetValid, "127.0.0.1", .serverCertificateNotYetValid),
            ("wrong host", certificates.wrongHost, "127.0.0.1", .serverCertificateUntrusted),
            ("wrong host by name", certificates.wrongHost, "localhost", .serverCertificateUntrusted),
            ("wildcard of others", certificates.wildcard, "localhost", .serverCertificateUntrusted),
            ("name constraint broken", certificates.nameConstraintViolated, "localhost", .serverCertificateUntrusted),
            ("unknown root", certificates.unknownAuthority, "127.0.0.1", .serverCertificateHasUnknownRoot),
            ("self-signed", certificates.selfSigned, "127.0.0.1", .serverCertificateUntrusted),
            ("weak key", certificates.weakKey, "127.0.0.1", .serverCertificateUntrusted),
            ("missing intermediate", certificates.missingIntermediate, "127.0.0.1", .serverCertificateUntrusted),
            ("signed by an ordinary certificate", certificates.nonCAIssuer, "127.0.0.1", .serverCertificateUntrusted),
            ("for clients only", certificates.clientOnly, "127.0.0.1", .serverCertificateUntrusted),
            ("a client's, without names", certificates.client, "127.0.0.1", .serverCertificateUntrusted),
        ]
        for (name, identity, host, code) in rows {
            try await withScenario(
                identity: identity, configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok("secret") }
            ) { (server, session) async throws in
                let url = server.url("/", host: host)
                guard let code else {
                    #expect(try await session.text(url) == "secret", "\(name)")
                    return
                }
                let error = await expectFailure(code, in: name) { try await session.data(from: url) }
                #expect(error?.failingURL == url, "\(name)")
                #expect(error?.userInfo[NSLocalizedDescriptionKey] as? String != nil, "\(name)")
                #expect(error?.userInfo[NSUnderlyingErrorKey] != nil, "\(name)")
                let trust = error?.failureURLPeerTrust
                let chain = trust.flatMap { SecTrustCopyCertificateChain($0) as? [SecCertificate] } ?? []
                #expect(chain.first.map { Array(SecCertificateCopyData($0) as Data) } == identity.chain[0], "\(name)")
                #expect(server.requests.isEmpty, "\(name)")
                try await server.waitForAllClosed()
            }
        }
    }

    @Test func `a wildcard matches one label`() async throws {
        let rows: [(String, URLError.Code?)] = [
            ("a.example.com", nil), ("A.Example.COM", nil), ("xn--bcher-kva.example.com", nil), ("my_app.example.com", nil),
            ("a.b.example.com", .serverCertificateUntrusted), ("example.com", .serverCertificateUntrusted),
            ("a.example.org", .serverCertificateUntrusted), ("example.com.a.test", .serverCertificateUntrusted),
        ]
        try await withScriptedServer(identity: certificates.wildcard, reply: { _ in .ok("wild") }) { (server) async throws in
            let relay = try NameRelay(to: server.port)
            for (host, code) in rows {
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = relay.dictionary
                } test: { (session) async throws in
                    let url = try #require(URL(string: "https://\(host)/"))
                    guard let code else {
                        #expect(try await session.text(url) == "wild", "\(host)")
                        return
                    }
                    await expectFailure(code, in: host) { try await session.data(from: url) }
                }
            }
            #expect(server.requests.count == 4)
        }
    }

    @Test func `the roots of a session replace those of the system, and one PEM may contain several`() async throws {
        let stranger = Data(certificates.unknownAuthority.chain[1])
        let both = Data((certificates.rootPEM + "\n" + certificates.unknownAuthority.chainPEM).utf8)
        let rows: [(String, [Data], URLError.Code?, URLError.Code?)] = [
            ("its root", [certificates.root], nil, .serverCertificateHasUnknownRoot),
            ("in PEM", [Data(certificates.rootPEM.utf8)], nil, .serverCertificateHasUnknownRoot),
            ("two", [certificates.root, stranger], nil, nil),
            ("two in one", [both], nil, nil),
            ("the other", [stranger], .serverCertificateUntrusted, nil),
        ]
        for (name, roots, valid, other) in rows {
            for (identity, code) in [(certificates.valid, valid), (certificates.unknownAuthority, other)] {
                try await withScenario(identity: identity, configure: { $0.tlsTrustRoots = roots }, reply: { _ in .ok("in") }) {
                    (server, session) async throws in
                    guard let code else {
                        #expect(try await session.text(server.url()) == "in", "\(name)")
                        return
                    }
                    await expectFailure(code, .serverCertificateHasUnknownRoot, in: name) {
                        try await session.data(from: server.url())
                    }
                }
            }
        }
    }

    @Test func `the trust in an error can be evaluated again with other roots`() async throws {
        try await withScenario(identity: certificates.valid, reply: { _ in .ok() }) { (server, session) async throws in
            let error = await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                try await session.data(from: server.url("/", host: "localhost"))
            }
            let trust = try #require(error?.failureURLPeerTrust)
            #expect(!SecTrustEvaluateWithError(trust, nil))
            let root = try #require(SecCertificateCreateWithData(nil, certificates.root as CFData))
            SecTrustSetAnchorCertificates(trust, [root] as CFArray)
            #expect(SecTrustEvaluateWithError(trust, nil))
        }
    }

    @Test func `other errors have no trust object`() async throws {
        let port = try RefusingPort()
        try await withSession { (session) async throws in
            let url = try #require(URL(string: "https://127.0.0.1:\(port.number)/"))
            let error = await expectFailure(.cannotConnectToHost) { try await session.data(from: url) }
            #expect(error?.failureURLPeerTrust == nil)
        }
    }
}
