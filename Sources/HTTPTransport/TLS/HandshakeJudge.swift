// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingModel
import LoadingTrust
import NIOCore

/// Takes the steps of a ``HandshakeDecision``, whatever library performs the handshake: asks the loads that wait, checks the server's
/// chain, and fetches issuers.
///
/// Confined to the connection's loop.
final class HandshakeJudge {
    let server: ServerName
    private(set) var decision: HandshakeDecision
    private let advice: HandshakeAdvice
    /// Where the issuers that the server does not send may be fetched, besides the public network.
    private let reach: AddressKind
    private let roots: [Data]
    private let loop: any EventLoop
    /// Called with the outcome of the question that is open.
    private var reply: ((HandshakeDecision.Outcome) -> Void)?
    private var searchStart: NIODeadline?
    private var stopFetching: (() -> Void)?

    init(
        of server: ServerName, roots: [Data], demands: TLSDemands, advice: HandshakeAdvice, reach: AddressKind,
        renegotiation: ConnectionHolder.Renegotiation?, on loop: any EventLoop
    ) {
        self.server = server
        self.roots = roots
        self.advice = advice
        self.reach = reach
        self.loop = loop
        decision = HandshakeDecision(host: server.host, demands: demands, renegotiation: renegotiation)
    }

    /// Judges a server that presents this chain; the outcome is that it is accepted or refused.
    func judge(_ chain: [Data], reply: @escaping (HandshakeDecision.Outcome) -> Void) {
        self.reply = reply
        take(decision.presented(chain, checksRootsFirst: advice.checksRootsFirst()))
    }

    /// Chooses what to present to an accepted server that requests a client certificate, or refuses the server after all.
    func chooseIdentity(reply: @escaping (HandshakeDecision.Outcome) -> Void) {
        self.reply = reply
        take(decision.requestedIdentity())
    }

    /// Ends an open question without an outcome.
    func end() {
        reply = nil
        advice.end()
        stopFetching?()
        stopFetching = nil
    }

    private func take(_ step: HandshakeDecision.Step) {
        switch step {
        case .askAboutServer: askAboutServer()
        case .check(let chain): check(chain)
        case .fetchIssuer(let url): fetchIssuer(at: url)
        case .askForIdentity: askForIdentity()
        case .end(let outcome):
            let reply = reply
            self.reply = nil
            reply?(outcome)
        }
    }

    private func askAboutServer() {
        advice.ask(
            { [self] adviser, reply in
                decision.asks(adviser.ownDelegate)
                adviser.judge(decision.chain, of: server, reach: reach) { _ = reply($0) }
            },
            otherwise: { standing -> TrustAnswer? in
                if case .known(judgesServers: true) = standing { nil } else { .checked }
            },
            reply: { [self] in take(decision.judged($0)) }
        )
    }

    private func check(_ chain: [Data]) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        TrustVerdicts.verdict(
            on: chain.map { Array($0) }, host: server.host, roots: roots, demands: decision.demands, now: .now()
        ) { [loop] verdict in
            loop.execute {
                let judge = bound.value
                if judge.reply != nil { judge.take(judge.decision.checked(verdict)) }
            }
        }
    }

    private func fetchIssuer(at url: String) {
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
                take(decision.fetched(answer, from: url))
            }
        )
    }

    /// Asks the load that is first in the queue.
    ///
    /// Its delegate is asked about the server before, unless that was asked last.
    private func askForIdentity() {
        advice.ask(
            { [self] adviser, reply in
                guard decision.mayAskForIdentity(adviser.ownDelegate) else { return askAboutServer() }
                adviser.identity(for: server, reply: reply)
            },
            // If there has never been a load to ask, continue without a certificate. If all loads have left, the dial ends: the
            // connection would be useful only for loads that present no certificate.
            otherwise: { standing -> IdentityAnswer? in if case .noAdviser = standing { IdentityAnswer.none } else { nil } },
            reply: { [self] in take(decision.chosen($0)) }
        )
    }
}

extension TLSSession.Agreement {
    /// What was decided in a handshake, and what the library that performed it has negotiated.
    init(_ decision: HandshakeDecision, version: UInt16?, cipherSuite: UInt16?, applicationProtocol: String?) {
        self.init(
            version: version,
            cipherSuite: cipherSuite,
            applicationProtocol: applicationProtocol,
            wasAskedForCertificate: decision.wasAskedForIdentity,
            sentClientCertificate: decision.identity != nil,
            isVerified: decision.isVerified,
            serverChain: decision.chain,
            trust: ConnectionTrust(
                clientCertificate: decision.identity?.fingerprint, keys: decision.keys,
                hasStrongKeys: decision.hasStrongKeys, issuerURLs: decision.issuerURLs
            ),
            acceptedBy: decision.asked
        )
    }
}
