// SPDX-License-Identifier: Apache-2.0

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
        for scenario: PassingAdviser.Scenario, verification: CertificateVerification = .none
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
                let queue = PassingAdviser.Queue(scenario)
                let dialer = Dialer(
                    loop: loop, tls: TLSSession(policy: policy), resolver: SystemResolver(), now: TickingClock().tick)
                let route = Route(isSecure: true, host: "localhost", port: port)
                queue.dial = dialer.dial(route, adviser: { queue.first }) { result in
                    continuation.resume(returning: result.map { $0.channel.close(promise: nil) })
                }
                if scenario.leaves == .atOnce { queue.first = nil }
            }
        }
        try await listener.close()
        return result.fault
    }

    @Test(arguments: [.atOnce, .whenAsked] as [PassingAdviser.Scenario.Departure])
    func `a server is not accepted if the load that would have judged it has left`(
        leaves: PassingAdviser.Scenario.Departure
    ) async throws {
        #expect(try await failure(for: .init(leaves: leaves, judges: true))?.kind == .cancelled)
        // For a load that does not judge servers, the trusted roots decide.
        #expect(try await failure(for: .init(leaves: leaves, judges: false)) == nil)
    }

    @Test func `a dial whose load has left fails if the server requests a client certificate`() async throws {
        for judges in [true, false] {
            let scenario = PassingAdviser.Scenario(leaves: .whenJudged, judges: judges)
            #expect(try await failure(for: scenario) == nil, "the server does not request a certificate")
            #expect(try await failure(for: scenario, verification: .optionalVerification)?.kind == .cancelled)
        }
    }
}

/// A load that stops waiting for a connection while the connection is made.
final class PassingAdviser: HandshakeAdviser {
    struct Scenario: Sendable {
        enum Departure: Sendable { case atOnce, whenAsked, whenJudged }
        var leaves: Departure
        var judges: Bool
    }

    final class Queue {
        var first: PassingAdviser?
        var dial: Dialer.Dial?

        init(_ scenario: Scenario) { first = PassingAdviser(scenario, in: self) }
    }

    private let scenario: Scenario
    private unowned let queue: Queue

    fileprivate init(_ scenario: Scenario, in queue: Queue) {
        self.scenario = scenario
        self.queue = queue
    }

    var ownDelegate: ConnectionHolder? { nil }
    var judgesServers: Bool { scenario.judges }

    func judge(
        _ chain: [Data], of server: ServerName, reach: AddressKind, reply: @escaping (TrustAnswer) -> Void
    ) {
        queue.first = nil
        if scenario.leaves == .whenAsked { queue.dial?.left(self) }
        reply(.checked)
    }

    func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Bool) { _ = reply(.none) }
    func fetchIssuer(
        at url: String, reach: AddressKind, within patience: TimeAmount, reply: @escaping (IssuerAnswer) -> Void
    ) -> () -> Void {
        reply(.unavailable(nil))
        return {}
    }
    func authorization(for tunnel: TunnelAttempt) -> String? { nil }
    func answer(_ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void) {}
    func opened(_ tunnel: TunnelAttempt, by head: ResponseHead, reply: @escaping (LoadError?) -> Void) { reply(nil) }
}
