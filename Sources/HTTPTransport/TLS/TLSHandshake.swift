// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import LoadingTrust
import NIOCore
import NIOSSL
import NIOTLS

/// Waits behind the TLS handler for the end of the handshake, reports what was negotiated or why the handshake failed, and removes
/// itself.
///
/// A ``HandshakeJudge`` decides, and this handler translates: from NIOSSL's callbacks, and to its promises. It keeps the reason of a
/// refusal, because the TLS handler's error only says that the handshake failed.
final class TLSHandshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The handler in front of the TLS handler.
    private(set) lazy var hello = ServerHelloReader(of: self)
    var security: NIOSSLClientHandler?

    private let judge: HandshakeJudge
    /// The policy of the session.
    private let policy: TLSPolicy
    private var completion: ((Result<TLSSession.Agreement, LoadError>) -> Void)?
    private var failure: LoadError?
    /// Promises that must be completed, whatever the outcome of the handshake.
    private var verdict: EventLoopPromise<NIOSSLVerificationResult>?
    private var certificate: EventLoopPromise<NIOSSLContextConfigurationOverride>?

    init(
        judgedBy judge: HandshakeJudge, policy: TLSPolicy, completion: @escaping (Result<TLSSession.Agreement, LoadError>) -> Void
    ) {
        self.judge = judge
        self.policy = policy
        self.completion = completion
    }

    var isOver: Bool { completion == nil }

    // MARK: NIOSSL's questions

    func verify(_ presented: [NIOSSLCertificate], verdict: EventLoopPromise<NIOSSLVerificationResult>) {
        self.verdict = verdict
        do {
            judge.judge(try presented.map { Data(try $0.toDERBytes()) }) { [self] in apply($0) }
        } catch {
            let message = "the certificate of \(judge.server.host) is malformed"
            apply(.refuse(LoadError(.serverCertificateUntrusted, message, cause: error)))
        }
    }

    func certificateRequested(_ promise: EventLoopPromise<NIOSSLContextConfigurationOverride>) {
        certificate = promise
        judge.chooseIdentity { [self] in apply($0) }
    }

    private func apply(_ outcome: HandshakeDecision.Outcome) {
        switch outcome {
        case .accept: conclude(.certificateVerified)
        case .present(let identity): present(identity)
        case .refuse(let failure):
            self.failure = failure
            conclude(.failed)
            takeCertificate()?.fail(ChannelError.eof)
        }
    }

    /// Tells NIOSSL whether the server is trusted; NIOSSL's subsequent work is attributed to this handshake.
    private func conclude(_ result: NIOSSLVerificationResult) {
        guard let verdict else { return }
        self.verdict = nil
        // NIOSSL continues the handshake one tick of the loop later; tasks run in the order in which they are enqueued.
        let loop = verdict.futureResult.eventLoop
        let current = ClientCertificateRequests.enter(self, on: loop)
        verdict.succeed(result)
        loop.execute { ClientCertificateRequests.leave(current) }
    }

    private func present(_ identity: ClientIdentity?) {
        var change = NIOSSLContextConfigurationOverride.noChanges
        do {
            if let identity {
                change.certificateChain = try identity.chain
                change.privateKey = try identity.key
            }
        } catch {
            let reason = PrintableFailure.text(error).map { ": " + $0 } ?? ""
            let message = "the client certificate for \(judge.server.host) cannot be used\(reason)"
            return apply(.refuse(LoadError(.clientCertificateRejected, message, cause: error)))
        }
        takeCertificate()?.succeed(change)
    }

    private func takeCertificate() -> EventLoopPromise<NIOSSLContextConfigurationOverride>? {
        defer { certificate = nil }
        return certificate
    }

    // MARK: The end

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted(let applicationProtocol) = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        let agreement = TLSSession.Agreement(
            judge.decision, version: security?.tlsVersion?.number, cipherSuite: hello.cipherSuite,
            applicationProtocol: applicationProtocol
        )
        let completion = completion
        self.completion = nil
        security = nil
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        completion?(.success(agreement))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(ChannelError.eof)
        context.fireChannelInactive()
    }

    /// Fails a handshake that was not finished when the channel was closed and the pipeline was torn down.
    func handlerRemoved(context: ChannelHandlerContext) {
        fail(ChannelError.eof)
    }

    /// Reports the failure of the handshake, unless its outcome has already been reported.
    func fail(_ error: any Error) {
        judge.end()
        verdict?.succeed(.failed)
        verdict = nil
        takeCertificate()?.succeed(.noChanges)
        guard let completion else { return }
        self.completion = nil
        security = nil
        if var failure {
            failure.cause = failure.cause ?? error
            failure.peerTrust = judge.decision.chain
            completion(.failure(failure))
        } else {
            let decision = judge.decision
            let shown = TLSFailure.Shown(certificate: decision.identity != nil, wasAsked: decision.wasAskedForIdentity)
            let terms = TLSFailure.Terms(policy: policy, demands: decision.demands, host: judge.server.host)
            completion(.failure(TLSFailure.error(error, terms: terms, hello: hello, shown: shown)))
        }
    }
}
