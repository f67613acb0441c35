//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules
import LoadingModel
import LoadingTrust
import NIOCore
import NIOSSL
import NIOTLS

/// Waits behind the TLS handler for the end of the handshake, reports what was negotiated or why the handshake failed, and removes
/// itself.
///
/// This handler keeps the verdict on the server's certificate, because the TLS handler's error only says that the handshake failed.
final class TLSHandshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The handler in front of the TLS handler.
    private(set) lazy var hello = ServerHelloReader(of: self)
    var security: NIOSSLClientHandler?

    private let server: ServerName
    /// The policy of the session.
    private let policy: TLSPolicy
    private let demands: TLSDemands
    private let advice: HandshakeAdvice
    /// Where the issuers that the server does not send may be fetched, besides the public network.
    private let reach: AddressKind
    /// Set if the server may negotiate TLS again after this handshake.
    private let renegotiation: ConnectionHolder.Renegotiation?
    private var completion: ((Result<TLSSession.Agreement, LoadError>) -> Void)?
    private var failure: LoadError?
    /// Promises that must be completed, whatever the outcome of the handshake.
    private var verdict: EventLoopPromise<NIOSSLVerificationResult>?
    private var certificate: EventLoopPromise<NIOSSLContextConfigurationOverride>?
    private var identity: ClientIdentity?
    private var wasAskedForCertificate = false
    private var chain: [Data] = []
    private var isVerified = false
    /// The delegate that was asked about the server last (nil stands for the session's); empty if the roots decided first.
    private var asked: [ConnectionHolder?] = []
    /// The SHA-256 hashes of the keys in the server's chain.
    private var keys: [Data] = []
    private var hasStrongKeys = false
    private var search = IssuerSearch()
    private var searchStart: NIODeadline?
    private var stopFetching: (() -> Void)?
    private var issuerURLs: [String] = []

    init(
        with server: ServerName, policy: TLSPolicy, demands: TLSDemands, advice: HandshakeAdvice, reach: AddressKind,
        renegotiation: ConnectionHolder.Renegotiation?, completion: @escaping (Result<TLSSession.Agreement, LoadError>) -> Void
    ) {
        self.server = server
        self.policy = policy
        self.demands = demands
        self.advice = advice
        self.reach = reach
        self.renegotiation = renegotiation
        // The identity is sent when the server asks for it, now or later.
        identity = renegotiation?.identity
        wasAskedForCertificate = renegotiation != nil
        self.completion = completion
    }

    var isOver: Bool { completion == nil }

    // MARK: The server's certificate

    /// Evaluates the server's chain: asks the app if it judges servers itself; otherwise, or if the app leaves it to them, the roots
    /// decide.
    ///
    /// If tasks with their own delegates wait, the roots are checked first: if they vouch for the server, each delegate is asked
    /// later, before one of its tasks uses the connection.
    func verify(_ presented: [NIOSSLCertificate], on loop: any EventLoop, verdict: EventLoopPromise<NIOSSLVerificationResult>) {
        self.verdict = verdict
        do {
            chain = try presented.map { Data(try $0.toDERBytes()) }
        } catch {
            return conclude(
                LoadError(.serverCertificateUntrusted, "the certificate of \(server.host) is malformed", cause: error))
        }
        guard advice.checksRootsFirst() else { return askAboutServer { self.handleTrustAnswer($0, on: loop) } }
        check(on: loop, fetchesIssuers: false) { handshake, failure in
            if failure == nil {
                handshake.checked(nil, isTrustedByApp: false)
            } else if handshake.verdict != nil {
                handshake.askAboutServer { handshake.handleTrustAnswer($0, on: loop) }
            }
        }
    }

    private func askAboutServer(_ reply: @escaping (TrustAnswer) -> Void) {
        advice.ask(
            { [self] adviser, reply in
                asked = [adviser.ownDelegate]
                adviser.judge(chain, of: server, reach: reach) { _ = reply($0) }
            },
            otherwise: { standing -> TrustAnswer? in
                if case .known(judgesServers: true) = standing { nil } else { .checked }
            },
            reply: reply
        )
    }

    private func handleTrustAnswer(_ answer: TrustAnswer, on loop: any EventLoop) {
        switch answer {
        case .cancelled, .rejected: conclude(answer.refusal(of: server.host))
        case .trusted where !demands.enforcesTrust:
            // Pins and key lengths are enforced whatever the app decides.
            let pins = TrustPins(leaf: demands.leafPins, ca: demands.caPins)
            let failure = TrustCheck.failure(
                ofTrusted: chain.map { Array($0) }, host: server.host, requiresStrongKeys: demands.requiresStrongKeys, pins: pins
            )
            if let failure { return conclude(LoadError(failure.kind, failure.message + hint(on: failure))) }
            // The chain may also end in a trusted root. The server is then considered verified, as if the app had not been asked.
            check(on: loop, fetchesIssuers: false) { handshake, failure in
                handshake.isVerified = failure == nil
                handshake.hasStrongKeys = handshake.demands.requiresStrongKeys
                handshake.conclude(nil)
            }
        case .trusted, .checked:
            let isTrustedByApp = if case .trusted = answer { true } else { false }
            check(on: loop, fetchesIssuers: true) { $0.checked($1, isTrustedByApp: isTrustedByApp) }
        }
    }

    private func check(
        on loop: any EventLoop, fetchesIssuers: Bool, then: @escaping @Sendable (TLSHandshake, TrustFailure?) -> Void
    ) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        TrustVerdicts.verdict(
            on: (chain + search.found).map { Array($0) }, host: server.host, roots: policy.trustRoots, demands: demands,
            now: .now()
        ) { verdict in
            loop.execute {
                let handshake = bound.value
                if fetchesIssuers, handshake.verdict != nil, let url = handshake.search.next(after: verdict.failure) {
                    return handshake.fetchIssuer(at: url) { handshake.check(on: loop, fetchesIssuers: $0, then: then) }
                }
                handshake.keys = verdict.keys
                if verdict.failure == nil { handshake.complete(by: verdict.path) }
                then(handshake, verdict.failure.map(handshake.search.outcome))
            }
        }
    }

    // MARK: Issuers that the server did not send

    /// Fetches certificates, and calls `then` with whether another fetch may follow.
    private func fetchIssuer(at url: String, then: @escaping (Bool) -> Void) {
        let now = NIODeadline.now()
        let start = searchStart ?? now
        searchStart = start
        let patience = start + .seconds(Int64(IssuerSearch.patience)) - now
        advice.ask(
            { [self] adviser, reply in
                // If another load is asked because the first one left, the new fetch joins the old one before that is cancelled.
                let earlier = stopFetching
                stopFetching = adviser.fetchIssuer(at: url, reach: reach, within: patience) { _ = reply($0) }
                earlier?()
            },
            otherwise: { standing -> IssuerAnswer? in if case .noAdviser = standing { .unavailable(nil) } else { nil } },
            reply: { [self] answer in
                stopFetching = nil
                switch answer {
                case .certificates(let certificates): search.take(certificates, from: url)
                case .unavailable(let reason): search.fail(at: url, reason)
                }
                if case .unavailable(nil) = answer { then(false) } else { then(true) }
            }
        )
    }

    /// Adds the fetched certificates of the validated path to the chain.
    private func complete(by path: [Data]) {
        guard !search.found.isEmpty else { return }
        issuerURLs = search.urls(for: path)
        chain += search.found.filter { path.contains($0) && !chain.contains($0) }
    }

    private func checked(_ failure: TrustFailure?, isTrustedByApp: Bool) {
        guard let failure else {
            isVerified = true
            hasStrongKeys = demands.requiresStrongKeys
            return conclude(nil)
        }
        conclude(LoadError(failure.kind, failure.message + (isTrustedByApp ? hint(on: failure) : "")))
    }

    /// Returns a hint that names the App Transport Security key that would let the app's decision stand; empty if there is no such
    /// key.
    private func hint(on failure: TrustFailure) -> String {
        let loads = TLSFailure.key("NSExceptionAllowsInsecureHTTPLoads", of: server.host)
        let keys = TLSFailure.key("NSExceptionRequiresForwardSecrecy", of: server.host)
        let lead = "; the app trusts it, but App Transport Security"
        switch failure.reason {
        case .pins, .unchecked: return ""
        case .weakKey where demands.requiresStrongKeys, .weakSignature where demands.requiresStrongKeys:
            let more = demands.enforcesTrust ? ", and \(loads) to true" : ""
            return "\(lead) requires stronger ones: to allow weaker ones, set \(keys) to false\(more)"
        default:
            guard demands.enforcesTrust else { return "" }
            return "\(lead) also requires the system to trust it: to change that, set \(loads) to true"
        }
    }

    /// Applies the verdict; `failure` is nil if the server is trusted.
    ///
    /// NIOSSL's subsequent work is attributed to this handshake.
    private func conclude(_ failure: LoadError?) {
        guard let verdict else { return }
        self.verdict = nil
        var failure = failure
        if failure == nil, let renegotiation, chain.first != renegotiation.serverCertificate || keys != renegotiation.keys {
            failure = LoadError(
                .secureConnectionFailed, "\(server.host) presented another certificate than when it asked to negotiate TLS again")
        }
        self.failure = failure ?? self.failure
        // NIOSSL continues the handshake one tick of the loop later; tasks run in the order in which they are enqueued.
        let loop = verdict.futureResult.eventLoop
        let current = ClientCertificateRequests.enter(self, on: loop)
        verdict.succeed(failure == nil ? .certificateVerified : .failed)
        loop.execute { ClientCertificateRequests.leave(current) }
    }

    // MARK: The client's certificate

    /// Answers a server that requests a client certificate.
    ///
    /// No delegate's identity is presented to a server about which that delegate was not asked.
    func certificateRequested(_ promise: EventLoopPromise<NIOSSLContextConfigurationOverride>) {
        certificate = promise
        wasAskedForCertificate = true
        askForIdentity()
    }

    /// Asks the load that is first in the queue.
    ///
    /// Its delegate is asked about the server before, unless that was asked last: the roots decided first, or another load did.
    private func askForIdentity() {
        advice.ask(
            { [self] adviser, reply in
                guard asked.contains(adviser.ownDelegate) else { return askAboutServerForIdentity() }
                adviser.identity(for: server, reply: reply)
            },
            // If there has never been a load to ask, continue without a certificate. If all loads have left, the dial ends: the
            // connection would be useful only for loads that present no certificate.
            otherwise: { standing -> IdentityAnswer? in if case .noAdviser = standing { IdentityAnswer.none } else { nil } },
            reply: { [self] in handleIdentityAnswer($0) }
        )
    }

    private func askAboutServerForIdentity() {
        askAboutServer { [self] answer in
            var refusal = answer.refusal(of: server.host)
            // Default handling means the roots, whatever another delegate said.
            if refusal == nil, !isVerified, case .checked = answer {
                refusal = LoadError(.serverCertificateUntrusted, "only another delegate trusts the certificate of \(server.host)")
            }
            guard let refusal else { return askForIdentity() }
            failure = refusal
            certificate?.fail(ChannelError.eof)
            certificate = nil
        }
    }

    private func handleIdentityAnswer(_ answer: IdentityAnswer) {
        guard let promise = certificate else { return }
        certificate = nil
        switch answer {
        case .none: promise.succeed(.noChanges)
        case .cancelled:
            failure = LoadError(.cancelled, "the challenge for a client certificate of \(server.host) was cancelled")
            promise.fail(ChannelError.eof)
        case .identity(let identity):
            do {
                var change = NIOSSLContextConfigurationOverride()
                change.certificateChain = try identity.chain
                change.privateKey = try identity.key
                self.identity = identity
                promise.succeed(change)
            } catch {
                let reason = PrintableFailure.text(error).map { ": " + $0 } ?? ""
                failure = LoadError(
                    .clientCertificateRejected, "the client certificate for \(server.host) cannot be used\(reason)", cause: error
                )
                promise.fail(error)
            }
        }
    }

    // MARK: The end

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted(let applicationProtocol) = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        let agreement = TLSSession.Agreement(
            version: security?.tlsVersion.map(Self.number),
            cipherSuite: hello.cipherSuite,
            applicationProtocol: applicationProtocol,
            wasAskedForCertificate: wasAskedForCertificate,
            sentClientCertificate: identity != nil,
            isVerified: isVerified,
            serverChain: chain,
            trust: ConnectionTrust(
                clientCertificate: identity?.fingerprint, keys: keys,
                hasStrongKeys: hasStrongKeys, issuerURLs: issuerURLs
            ),
            acceptedBy: asked
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
        advice.end()
        stopFetching?()
        stopFetching = nil
        verdict?.succeed(.failed)
        verdict = nil
        certificate?.succeed(.noChanges)
        certificate = nil
        guard let completion else { return }
        self.completion = nil
        security = nil
        if var failure {
            failure.cause = failure.cause ?? error
            failure.peerTrust = chain
            completion(.failure(failure))
        } else {
            let shown = TLSFailure.Shown(certificate: identity != nil, wasAsked: wasAskedForCertificate)
            let terms = TLSFailure.Terms(policy: policy, demands: demands, host: server.host)
            completion(.failure(TLSFailure.error(error, terms: terms, hello: hello, shown: shown)))
        }
    }

    private static func number(_ version: TLSVersion) -> UInt16 {
        switch version {
        case .tlsv1: 0x0301
        case .tlsv11: 0x0302
        case .tlsv12: 0x0303
        case .tlsv13: 0x0304
        }
    }
}
