// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// TLS for control and data connections, and App Transport Security.
@Suite(.timeLimit(.minutes(1)))
struct FTPSecurityTests {
    private let certificates: TestCertificates
    private let content = FTPSecurePeer.content

    init() throws { certificates = try TestCertificates.shared.get() }

    @Test(arguments: [false, true])
    func `the login, the commands and the data are sent over TLS`(isImplicit: Bool) async throws {
        try await withSecureFTP(certificates.valid, isImplicit: isImplicit) { (peer, session) async throws in
            let url = try peer.url(scheme: isImplicit ? "ftps" : "ftp")
            let (data, response) = try await session.data(from: url)
            #expect(data == content)
            #expect(response.url == url)
            _ = try await session.upload(
                for: URLRequest(url: try peer.url("/b", scheme: isImplicit ? "ftps" : "ftp")), from: content)
            #expect(peer.orders.contains("stored \(content.count)"), "\(peer.orders)")
            #expect(peer.secrets == [])
            #expect(peer.orders.contains("tls PBSZ 0"))
            #expect(peer.orders.contains("tls PROT P"))
            #expect(peer.orders.first == (isImplicit ? "tls USER ada" : "clear AUTH TLS"), "\(peer.orders)")
        }
    }

    @Test func `ftps requires no setting`() async throws {
        try await withSecureFTP(certificates.valid, isImplicit: true, configure: { $0.requiresSecureFTP = false }) {
            (peer, session) async throws in
            #expect(try await session.data(from: try peer.url(scheme: "ftps")).0 == content)
            #expect(peer.orders.contains("tls PROT P"))
        }
    }

    @Test(arguments: [
        FTPSecurePeer.Fault.unknownAuth, .refusedAuth, .injection, .clearReply, .refusedProtection,
    ])
    func `a server that does not secure the control connection gets no password`(fault: FTPSecurePeer.Fault) async throws {
        let recorder = EventRecorder()
        try await withSecureFTP(certificates.valid, fault: fault, delegate: recorder) { (peer, session) async throws in
            let task = session.dataTask(with: try peer.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .secureConnectionFailed, "\(fault): \(String(describing: record.error))")
            #expect(record.body.isEmpty)
            #expect(peer.secrets == [])
            if fault != .refusedProtection {
                #expect(!peer.orders.contains { $0.contains("USER") || $0.contains("PASS") }, "\(peer.orders)")
            }
        }
    }

    @Test func `a server that refuses protected data does not learn which file is requested`() async throws {
        try await withSecureFTP(certificates.valid, fault: .refusedProtection) { (peer, session) async throws in
            await expectFailure(.secureConnectionFailed) { try await session.data(from: try peer.url()) }
            let told = peer.orders.filter { $0.hasPrefix("clear") || $0.contains("RETR") || $0.contains("SIZE") }
            #expect(told == ["clear AUTH TLS"], "\(peer.orders)")
        }
    }

    @Test func `data in cleartext is not delivered and fails as a TLS error`() async throws {
        let recorder = EventRecorder()
        try await withSecureFTP(certificates.valid, fault: .clearData, delegate: recorder) { (peer, session) async throws in
            let task = session.dataTask(with: try peer.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body.isEmpty)
            #expect((record.error as? URLError)?.code == .secureConnectionFailed)
        }
    }

    @Test(arguments: [FTPSecurePeer.Fault.unknownAuth, .refusedProtection, .injection, .clearReply])
    func `an upload sends nothing to a server that is not secure`(fault: FTPSecurePeer.Fault) async throws {
        try await withSecureFTP(certificates.valid, fault: fault) { (peer, session) async throws in
            await expectFailure(.secureConnectionFailed, in: "\(fault)") {
                try await session.upload(for: URLRequest(url: try peer.url("/b")), from: content)
            }
            #expect(peer.secrets == [])
            #expect(!peer.orders.contains { $0.hasPrefix("stored") && $0 != "stored 0" })
        }
    }

    @Test func `a server without TLS gets no login if TLS is required`() async throws {
        try await withFTP(configure: { $0.requiresSecureFTP = true }) { (server, session) async throws in
            await expectFailure(.secureConnectionFailed) {
                try await session.data(from: try server.url("/a.bin", user: "ada:x@"))
            }
            #expect(server.commands("USER") == [])
            #expect(server.commands("PASS") == [])
            #expect(server.commands.contains("AUTH TLS"))
        }
    }

    @Test func `a server without TLS gets no login for an ftps URL`() async throws {
        try await withFTP { (server, session) async throws in
            await expectFailure(.secureConnectionFailed) {
                try await session.data(from: try server.url("/a.bin", user: "ada:x@", scheme: "ftps"))
            }
            #expect(server.commands.allSatisfy { !$0.contains("USER") && !$0.contains("ada") })
        }
    }

    @Test(arguments: [FTPSecurePeer.Fault.cutData, .cutHalf])
    func `data that ends without close_notify is incomplete`(fault: FTPSecurePeer.Fault) async throws {
        let recorder = EventRecorder()
        try await withSecureFTP(certificates.valid, fault: fault, delegate: recorder) { (peer, session) async throws in
            await expectFailure(.networkConnectionLost) { try await session.data(from: try peer.url()) }
            let task = session.downloadTask(with: try peer.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .networkConnectionLost)
            #expect(record.file == nil)
            if fault == .cutData { #expect((record.error as? URLError)?.downloadTaskResumeData != nil) }
        }
    }

    @Test func `data over a connection with an untrusted certificate is not delivered`() async throws {
        let codes: [URLError.Code] = [
            .serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .serverCertificateHasBadDate,
        ]
        for other in [certificates.unknownAuthority, certificates.wrongHost, certificates.expired, certificates.selfSigned] {
            let recorder = EventRecorder()
            try await withSecureFTP(certificates.valid, fault: .otherCertificate, data: other, delegate: recorder) {
                (peer, session) async throws in
                let task = session.dataTask(with: try peer.url())
                task.resume()
                let record = try await recorder.completion(of: task)
                let code = (record.error as? URLError)?.code
                #expect(code.map(codes.contains) == true, "\(String(describing: record.error))")
                #expect(record.body.isEmpty)
                let upload = session.uploadTask(with: URLRequest(url: try peer.url("/b")), from: content)
                upload.resume()
                let sent = try await recorder.completion(of: upload)
                #expect((sent.error as? URLError).map { codes.contains($0.code) } == true, "\(String(describing: sent.error))")
                #expect(!peer.orders.contains { $0.hasPrefix("stored") && $0 != "stored 0" }, "\(peer.orders)")
            }
        }
    }

    @Test func `a delegate's trust in one certificate does not extend to another`() async throws {
        // The delegate trusts only the control connection's certificate.
        let leaf = certificates.unknownAuthority.chain.first
        let judge = Judge { question in
            guard question.kind == NSURLAuthenticationMethodServerTrust else {
                return question.answer(.performDefaultHandling, nil)
            }
            if question.chain.first == leaf { question.trust() } else { question.answer(.performDefaultHandling, nil) }
        }
        let delegate = BothJudge(judge)
        try await withSecureFTP(certificates.unknownAuthority, fault: .none, delegate: delegate) { (peer, session) async throws in
            #expect(try await session.data(from: try peer.url()).0 == content)
            #expect(!judge.all.isEmpty)
            #expect(judge.all.allSatisfy { $0.space.host == "localhost" })
        }
        try await withSecureFTP(
            certificates.unknownAuthority, fault: .otherCertificate, data: certificates.selfSigned, delegate: delegate
        ) {
            (peer, session) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .secureConnectionFailed) {
                try await session.data(from: try peer.url())
            }
            #expect(!peer.orders.contains { $0.hasPrefix("stored") })
        }
    }

    @Test func `a delegate that cancels the server trust challenge prevents the login`() async throws {
        let judge = Judge.saying(.cancelAuthenticationChallenge)
        try await withSecureFTP(certificates.valid, delegate: SessionJudge(judge)) { (peer, session) async throws in
            await expectFailure(.cancelled) { try await session.data(from: try peer.url()) }
            #expect(!peer.orders.contains { $0.contains("USER") })
        }
    }

    @Test func `a server with an untrusted certificate gets no login`() async throws {
        for (identity, isImplicit) in [
            (certificates.unknownAuthority, false), (certificates.selfSigned, false), (certificates.wrongHost, false),
            (certificates.expired, false), (certificates.unknownAuthority, true), (certificates.wrongHost, true),
        ] {
            try await withSecureFTP(identity, isImplicit: isImplicit) { (peer, session) async throws in
                await expectFailure(
                    .serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .serverCertificateHasBadDate
                ) { try await session.data(from: try peer.url(scheme: isImplicit ? "ftps" : "ftp")) }
                #expect(!peer.orders.contains { $0.contains("USER") || $0.contains("PASS") }, "\(peer.orders)")
            }
        }
    }

    @Test func `metrics describe TLS`() async throws {
        let recorder = EventRecorder()
        try await withSecureFTP(certificates.valid, delegate: recorder) { (peer, session) async throws in
            let task = session.dataTask(with: try peer.url())
            task.resume()
            let metrics = try #require(try await recorder.completion(of: task).metrics)
            #expect(metrics.transactionMetrics.count == 1)
            #expect(metrics.transactionMetrics.first?.negotiatedTLSProtocolVersion != nil)
            #expect(metrics.transactionMetrics.first?.remotePort == peer.port)
        }
    }

    @Test func `TLS works through proxies`() async throws {
        let proxy = try SmallServer.tinyproxy()
        let socks = try SmallServer.microsocks()
        defer {
            proxy.stop()
            socks.stop()
        }
        for settings in [
            proxyDictionary(https: proxy.port), ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": socks.port],
        ] {
            try await withSecureFTP(certificates.valid, configure: { $0.connectionProxyDictionary = settings }) {
                (peer, session) async throws in
                #expect(try await session.data(from: try peer.url()).0 == content, "\(settings)")
            }
        }
    }

    // MARK: App Transport Security

    private func withPolicy(
        _ policy: [String: Any], test: (ScriptedFTP, URLSession) async throws -> Void
    ) async throws {
        let names = try await ScriptedNameServer.start { _, _ in .addresses("127.0.0.1") }
        try await withFTP(
            configure: {
                $0.appTransportSecurity = policy
                $0.connectionOptions.nameServers = [names.address]
            }, rule: { _, _ in false }, test: test)
        await names.close()
    }

    @Test func `cleartext FTP is refused if App Transport Security covers the host`() async throws {
        try await withPolicy([:]) { (server, session) async throws in
            for path in ["/a.bin", "/"] {
                await expectFailure(.appTransportSecurityRequiresSecureConnection) {
                    try await session.data(from: try server.url(path, host: "files.example.com"))
                }
            }
            await expectFailure(.appTransportSecurityRequiresSecureConnection) {
                try await session.upload(for: URLRequest(url: try server.url("/b", host: "files.example.com")), from: Data([1]))
            }
            #expect(server.connectionCount == 0)
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data("hello".utf8))
            #expect(try await session.data(from: try server.url("/a.bin", host: "localhost")).0 == Data("hello".utf8))
        }
    }

    @Test func `an exception of App Transport Security permits cleartext FTP`() async throws {
        for policy: [String: Any] in [
            ["NSAllowsArbitraryLoads": true],
            ["NSExceptionDomains": ["example.com": ["NSIncludesSubdomains": true, "NSExceptionAllowsInsecureHTTPLoads": true]]],
        ] {
            try await withPolicy(policy) { (server, session) async throws in
                #expect(try await session.data(from: try server.url("/a.bin", host: "files.example.com")).0 == Data("hello".utf8))
            }
        }
    }
}
