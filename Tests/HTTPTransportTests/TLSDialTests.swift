// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import NIOSSL
import Testing

enum BadCertificate {
    case expired
    case notYetValid
    case wrongHost
    case selfSigned
    case unknownAuthority
    case missingIntermediate

    func identity(in certificates: TestCertificates) -> TestCertificates.Identity {
        switch self {
        case .expired: certificates.expired
        case .notYetValid: certificates.notYetValid
        case .wrongHost: certificates.wrongHost
        case .selfSigned: certificates.selfSigned
        case .unknownAuthority: certificates.unknownAuthority
        case .missingIntermediate: certificates.missingIntermediate
        }
    }
}

@Suite struct TLSDialTests {
    private let certificates: TestCertificates
    private var policy: TLSPolicy { TLSPolicy(trustRoots: [certificates.root]) }

    init() throws { certificates = try TestCertificates.shared.get() }

    private func server(
        _ identity: TestCertificates.Identity, versions: ClosedRange<TestCertificates.Version> = .v1_2 ... .v1_3,
        greeting: String? = nil
    ) async throws -> LoopbackListener {
        let context = try NIOSSLContext(configuration: identity.serverConfiguration(versions: versions))
        return try await LoopbackListener { channel in
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
            if let greeting { try channel.pipeline.syncOperations.addHandler(Greeter(greeting)) }
        }
    }

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `a trusted server is connected with TLS 1.3`(host: String) async throws {
        let listener = try await server(certificates.valid)
        let facts = try await dial(host, port: listener.port, isSecure: true, policy: policy).get()
        #expect(facts.tlsVersion == 0x0304)
        #expect([0x1301, 0x1302, 0x1303].contains(facts.tlsCipherSuite))
        let instants = [
            facts.domainLookupStart, facts.domainLookupEnd, facts.connectStart, facts.secureConnectionStart,
            facts.secureConnectionEnd,
        ].compactMap { $0 }
        #expect(instants.count == 5)
        #expect(instants == instants.sorted())
        #expect(facts.connectEnd == facts.secureConnectionEnd)
        try await listener.close()
    }

    @Test func `TLS 1.2 is reported with its cipher suite`() async throws {
        let listener = try await server(certificates.valid, versions: .v1_2 ... .v1_2)
        let facts = try await dial("localhost", port: listener.port, isSecure: true, policy: policy).get()
        #expect(facts.tlsVersion == 0x0303)
        // ECDHE-ECDSA with AES-GCM or ChaCha20.
        #expect([0xC02B, 0xC02C, 0xCCA9].contains(facts.tlsCipherSuite))
        try await listener.close()
    }

    @Test func `a handler added in the completion receives the first bytes of a TLS server`() async throws {
        let listener = try await server(certificates.valid, greeting: "hello")
        for _ in 0..<10 {
            let text = await receivedText(from: "localhost", port: listener.port, count: 5, isSecure: true, policy: policy)
            #expect(text == "hello")
        }
        try await listener.close()
    }

    @Test(
        arguments: [
            (.expired, .serverCertificateHasBadDate, "expired on"),
            (.notYetValid, .serverCertificateNotYetValid, "is not valid before"),
            (.wrongHost, .serverCertificateUntrusted, "other.example"),
            (.selfSigned, .serverCertificateUntrusted, "self-signed"),
            (.unknownAuthority, .serverCertificateHasUnknownRoot, "not a trusted root"),
            (.missingIntermediate, .serverCertificateUntrusted, "without that of its issuer"),
        ] as [(BadCertificate, LoadError.Kind, String)]
    )
    func `a bad certificate fails with its specific error`(
        bad: BadCertificate, kind: LoadError.Kind, words: String
    ) async throws {
        let listener = try await server(bad.identity(in: certificates))
        let error = try #require(await dial("localhost", port: listener.port, isSecure: true, policy: policy).fault)
        #expect(error.kind == kind)
        #expect(error.message.contains(words), "\(error.message)")
        try await listener.close()
    }

    @Test func `the system's roots do not trust a private authority`() async throws {
        let listener = try await server(certificates.valid)
        let error = try #require(await dial("localhost", port: listener.port, isSecure: true).fault)
        #expect(error.kind == .serverCertificateHasUnknownRoot)
        try await listener.close()
    }

    @Test func `an error says that the server's TLS is too old`() async throws {
        let listener = try await server(certificates.valid, versions: .v1_2 ... .v1_2)
        var policy = policy
        policy.minimumVersion = 0x0304
        let error = try #require(await dial("localhost", port: listener.port, isSecure: true, policy: policy).fault)
        #expect(error.kind == .secureConnectionFailed)
        #expect(error.message.contains("the server does not offer TLS 1.3 or newer"), "\(error.message)")
        try await listener.close()
    }

    @Test func `an error says that the server does not speak TLS`() async throws {
        let listener = try await LoopbackListener {
            try $0.pipeline.syncOperations.addHandler(Greeter("HTTP/1.1 400 Bad Request\r\n\r\n"))
        }
        let error = try #require(await dial("localhost", port: listener.port, isSecure: true, policy: policy).fault)
        #expect(error.kind == .secureConnectionFailed)
        #expect(error.message.contains("does not speak TLS"), "\(error.message)")
        try await listener.close()
    }

    @Test func `an error says that the connection closed in the handshake`() async throws {
        let listener = try await LoopbackListener { channel in channel.eventLoop.execute { channel.close(promise: nil) } }
        let error = try #require(await dial("localhost", port: listener.port, isSecure: true, policy: policy).fault)
        #expect(error.kind == .secureConnectionFailed)
        #expect(error.message.hasPrefix("securing the connection to localhost: "), "\(error.message)")
        try await listener.close()
    }

    @Test func `many concurrent connections share one verdict`() async throws {
        let listener = try await server(certificates.valid)
        let policy = policy
        let successes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    await dial("localhost", port: listener.port, isSecure: true, policy: policy).fault == nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(successes == 64)
        try await listener.close()
    }

    @Test func `a dial cancelled in the handshake closes its connection`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let connected = loop.makePromise(of: Void.self)
        let closed = loop.makePromise(of: Void.self)
        let listener = try await LoopbackListener { channel in
            channel.closeFuture.cascade(to: closed)
            try channel.pipeline.syncOperations.addHandler(Listener(expecting: 1) { _ in connected.succeed() })
        }
        let policy = policy
        let port = listener.port
        let dial = try await loop.submit {
            let dialer = Dialer(
                loop: loop, tls: TLSSession(policy: policy), resolver: SystemResolver(), now: TickingClock().tick
            )
            let dial = dialer.dial(Route(isSecure: true, host: "localhost", port: port)) { _ in
                Issue.record("a cancelled dial called back")
            }
            return NIOLoopBound(dial, eventLoop: loop)
        }.get()
        try await connected.futureResult.get()
        try await loop.submit { dial.value.cancel() }.get()
        try await closed.futureResult.get()
        try await listener.close()
    }
}
