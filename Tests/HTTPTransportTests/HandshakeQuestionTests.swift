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

/// Handshakes in the midst of which another load becomes the first of those that wait.
@Suite(.timeLimit(.minutes(1)))
struct HandshakeQuestionTests {
    /// When the first load, which has no delegate of its own, gives way to one that has.
    enum Moment: Sendable, CaseIterable { case whenJudged, whenAskedForIdentity }

    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func dial(
        _ moment: Moment, _ answer: TrustAnswer, _ version: TestCertificates.Version
    ) async throws -> (questions: [String], failure: LoadError?) {
        var configuration = try certificates.valid.serverConfiguration(versions: version...version)
        configuration.certificateVerification = .optionalVerification
        let context = try NIOSSLContext(configuration: configuration)
        let listener = try await LoopbackListener {
            try $0.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
        }
        let (loop, policy, port) = (
            MultiThreadedEventLoopGroup.singleton.next(), TLSPolicy(trustRoots: [certificates.root]), listener.port
        )
        let result = await withCheckedContinuation { continuation in
            loop.execute {
                let queue = Queue(moment, answer)
                let dialer = Dialer(
                    loop: loop, tls: TLSSession(policy: policy), resolver: SystemResolver(), now: TickingClock().tick)
                let route = Route(isSecure: true, host: "localhost", port: port)
                queue.dial = dialer.dial(route, adviser: { queue.first }) { result in
                    let closed = result.map { $0.channel.close(promise: nil) }
                    continuation.resume(returning: (questions: queue.questions, failure: closed.fault))
                    queue.dial = nil
                }
            }
        }
        try await listener.close()
        return result
    }

    @Test(arguments: Moment.allCases, [.v1_2, .v1_3] as [TestCertificates.Version])
    func `a delegate is asked about the server before its identity is presented`(
        _ moment: Moment, _ version: TestCertificates.Version
    ) async throws {
        let first = moment == .whenJudged ? ["first judges"] : ["first judges", "first shows"]
        let refused = try await dial(moment, .rejected, version)
        #expect(refused.questions == first + ["second judges"])
        #expect(refused.failure?.kind == .serverCertificateUntrusted)
        let accepted = try await dial(moment, .checked, version)
        #expect(accepted.questions == first + ["second judges", "second shows"])
        #expect(accepted.failure == nil)
    }

    private final class Queue {
        let moment: Moment
        let answer: TrustAnswer
        var first: Adviser?
        var dial: Dialer.Dial?
        var questions: [String] = []

        init(_ moment: Moment, _ answer: TrustAnswer) {
            (self.moment, self.answer) = (moment, answer)
            first = Adviser(nil, in: self)
        }

        func giveWay() { first = Adviser(ConnectionHolder(), in: self) }
    }

    private final class Adviser: HandshakeAdviser {
        let ownDelegate: ConnectionHolder?
        private unowned let queue: Queue

        init(_ ownDelegate: ConnectionHolder?, in queue: Queue) { (self.ownDelegate, self.queue) = (ownDelegate, queue) }

        var judgesServers: Bool { ownDelegate != nil }
        private var name: String { ownDelegate == nil ? "first" : "second" }

        func judge(_ chain: [Data], of server: ServerName, reach: AddressKind, reply: @escaping (TrustAnswer) -> Void) {
            queue.questions.append("\(name) judges")
            guard ownDelegate == nil else { return reply(queue.answer) }
            if queue.moment == .whenJudged { queue.giveWay() }
            reply(.checked)
        }

        func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Bool) {
            queue.questions.append("\(name) shows")
            guard ownDelegate == nil else {
                _ = reply(.none)
                return
            }
            queue.giveWay()
            queue.dial?.left(self)
        }

        func fetchIssuer(
            at url: String, reach: AddressKind, within patience: TimeAmount, reply: @escaping (IssuerAnswer) -> Void
        ) -> () -> Void {
            reply(.unavailable(nil))
            return {}
        }
        func authorization(for tunnel: TunnelAttempt) -> String? { nil }
        func answer(
            _ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void
        ) {}
        func opened(_ tunnel: TunnelAttempt, by head: ResponseHead, reply: @escaping (LoadError?) -> Void) { reply(nil) }
    }
}
