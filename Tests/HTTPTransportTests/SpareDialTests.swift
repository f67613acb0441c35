//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import NIOSSL
import Testing

/// Dials that no load waits for any more when a question arises.
@Suite struct SpareDialTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func failure(
        for standing: PassingAdviser.Standing, verification: CertificateVerification = .none
    ) async throws -> LoadError? {
        var configuration = try certificates.valid.serverConfiguration(versions: .v1_2 ... .v1_3)
        configuration.certificateVerification = verification
        let context = try NIOSSLContext(configuration: configuration)
        let listener = try await LoopbackListener {
            try $0.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
        }
        let (loop, policy, port) = (
            MultiThreadedEventLoopGroup.singleton.next(), TLSPolicy(trustRoots: [certificates.root]), listener.port
        )
        let result = await withCheckedContinuation { continuation in
            loop.execute {
                let line = PassingAdviser.Line(standing)
                let dialer = Dialer(
                    loop: loop, tls: TLSSession(policy: policy), resolver: SystemResolver(), now: TickingClock().tick)
                let route = Route(isSecure: true, host: "localhost", port: port)
                line.dial = dialer.dial(route, adviser: { line.first }) { result in
                    continuation.resume(returning: result.map { $0.channel.close(promise: nil) })
                }
                if standing.goes == .atOnce { line.first = nil }
            }
        }
        try await listener.close()
        return result.fault
    }

    @Test(arguments: [.atOnce, .whenAsked] as [PassingAdviser.Standing.Departure])
    func `a server is not accepted if the load that would have judged it has left`(
        goes: PassingAdviser.Standing.Departure
    ) async throws {
        #expect(try await failure(for: .init(goes: goes, judges: true))?.kind == .cancelled)
        // For a load without a delegate the roots decide.
        #expect(try await failure(for: .init(goes: goes, judges: false)) == nil)
    }

    @Test func `a dial does not continue without a client certificate for a load that has left`() async throws {
        for judges in [true, false] {
            let standing = PassingAdviser.Standing(goes: .whenJudged, judges: judges)
            #expect(try await failure(for: standing) == nil, "the server does not request a certificate")
            #expect(try await failure(for: standing, verification: .optionalVerification)?.kind == .cancelled)
        }
    }
}

/// A load that stops waiting for a connection while it is made.
final class PassingAdviser: HandshakeAdviser {
    struct Standing: Sendable {
        enum Departure: Sendable { case atOnce, whenAsked, whenJudged }
        var goes: Departure
        var judges: Bool
    }

    final class Line {
        var first: PassingAdviser?
        var dial: Dialer.Dial?

        init(_ standing: Standing) { first = PassingAdviser(standing, in: self) }
    }

    private let standing: Standing
    private unowned let line: Line

    fileprivate init(_ standing: Standing, in line: Line) {
        self.standing = standing
        self.line = line
    }

    var judgesServers: Bool { standing.judges }

    func judge(_ chain: [Data], of server: ServerName, reply: @escaping (TrustAnswer) -> Void) {
        line.first = nil
        if standing.goes == .whenAsked { line.dial?.left(self) }
        reply(.checked)
    }

    func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Bool) { _ = reply(.none) }
    func authorization(for tunnel: TunnelAttempt) -> String? { nil }
    func answer(_ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void) {}
    func opened(_ tunnel: TunnelAttempt, by head: ResponseHead, reply: @escaping (LoadError?) -> Void) { reply(nil) }
}
