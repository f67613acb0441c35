// SPDX-License-Identifier: Apache-2.0

import CQUIC
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import LoadingTrust
import NIOCore

/// Has the server's chain judged, presents an identity, and makes the connection.
extension QUICCandidate {
    // MARK: Trust

    func handshakeCompleted(_ number: Int) {
        guard let attempt = attempts.removeValue(forKey: number), let quic = attempt.quic else { return }
        winner = attempt
        cancelLookups()
        order.progress(.reached)
        guard !isOver else { return }
        let judge = HandshakeJudge(
            of: origin, roots: dialer.tls.policy.trustRoots, demands: dialer.demands(origin.host), advice: advice,
            reach: AddressKind(attempt.address), renegotiation: nil, on: loop)
        self.judge = judge
        let chain = quic.serverChain
        guard chain.reduce(0, { $0 + $1.count }) <= Self.longestChain else {
            let message = "the certificates of \(origin.host) are larger than \(Self.longestChain) bytes"
            return judged(.refuse(LoadError(.serverCertificateUntrusted, message)))
        }
        judge.judge(chain.map { Data($0) }) { [self] in judged($0) }
    }

    /// The connection ended while the app was asked.
    func winnerEnded(_ error: any Error) {
        guard winner != nil else { return }
        winnerFailure = error
        winnerHasEnded = true
    }

    private func judged(_ outcome: HandshakeDecision.Outcome) {
        guard !isOver, let judge, let winner else { return }
        switch outcome {
        case .accept:
            guard let quic = winner.quic, !winnerHasEnded else {
                return chooseIdentity(judge)
            }
            if quic.tls.was_asked_for_certificate != 0 { return chooseIdentity(judge) }
            connected(quic, judge)
        case .present(let identity):
            guard let identity else {
                guard let quic = winner.quic, !winnerHasEnded else { return lostWinner() }
                return connected(quic, judge)
            }
            present(identity)
        case .refuse(var error):
            error.peerTrust = judge.decision.chain
            isRefused = true
            winner.cancel(alert: 42)
            finish(.failed(error))
        }
    }

    private func chooseIdentity(_ judge: HandshakeJudge) {
        // A server that insists may have closed the connection by now.
        let failure = winnerFailure as? QUICFailure
        guard !winnerHasEnded || failure?.refusal(wasAsked: true, presented: false) != nil else { return lostWinner() }
        judge.chooseIdentity { [self] in judged($0) }
    }

    /// Dials again with an identity, because the handshake cannot wait for the app.
    private func present(_ identity: ClientIdentity) {
        guard let winner else { return }
        let address = winner.address
        winner.cancel()
        guard order.room?.takeMore(isNeeded: true) ?? true else { return lostWinner() }
        presented = identity
        winnerHasEnded = false
        let again = QUICAttempt(to: address, by: winner.interface, identity: identity, room: order.room, on: loop) {
            [self] result in
            guard !isOver else { return }
            switch result {
            case .success(let quic): presentedAgain(quic)
            case .failure(let error):
                winnerFailure = error
                lostWinner()
            }
        }
        self.winner = again
        again.start(access, scratch: scratch, serverName: serverName, preparation: preparation)
    }

    private func presentedAgain(_ quic: QUICConnection) {
        guard let judge else { return }
        // The identity is for the server that was accepted.
        guard quic.serverChain.first.map({ Data($0) }) == judge.decision.chain.first else {
            return finish(
                .failed(LoadError(.secureConnectionFailed, "\(origin.host) presented another certificate than a moment before")))
        }
        connected(quic, judge)
    }

    private func lostWinner() {
        let failure = winnerFailure as? QUICFailure
        if let refusal = failure?.refusal(wasAsked: true, presented: presented != nil) {
            return finish(
                .failed(
                    LoadError(refusal.kind, "securing the connection to \(origin.host): \(refusal.reason)", cause: winnerFailure))
            )
        }
        let reason = failure?.reason ?? "the connection failed"
        finish(.failed(LoadError(.connectionLost, "connecting to \(origin.host): \(reason)", cause: winnerFailure)))
    }

    // MARK: The result

    private func connected(_ quic: QUICConnection, _ judge: HandshakeJudge) {
        guard let endpoint, let winner else { return }
        // The server may have said that it takes no requests.
        guard quic.firstUnprocessed == nil else {
            guard hasStartedAnew else {
                hasStartedAnew = true
                winner.cancel()
                self.winner = nil
                return startAnew(at: endpoint)
            }
            return finish(
                .failed(LoadError(.connectionLost, "connecting to \(origin.host): the server takes no requests over HTTP/3")))
        }
        let tls = quic.tls
        let agreed = TLSSession.Agreement(
            judge.decision, version: 0x0304, cipherSuite: tls.cipher_suite == 0 ? nil : tls.cipher_suite,
            applicationProtocol: HTTPVersions.http3.name)
        let facts = facts(quic, agreed)
        let report = QUICEndpointReport(endpoint, of: origin, access.directory)
        let chain = keptChain(agreed, winner.address)
        let closed = loop.makePromise(of: Void.self)
        letMove(quic, to: winner.address)
        winner.release()
        self.winner = nil
        finish(
            .connected(
                DialledConnection(facts: facts, version: .http3, closed: closed.futureResult) { seed in
                    guard quic.isOpen else {
                        closed.succeed()
                        throw ChannelError.eof
                    }
                    return HTTP3Connection(
                        quic, id: seed.id, facts: facts, keptChain: chain, endpoint: report, pool: seed.pool, closed: closed)
                }))
    }

    /// Lets a connection continue with another socket: on another network, the way to the server may begin at another interface.
    private func letMove(_ quic: QUICConnection, to address: SocketAddress) {
        let (dialer, route, preparation, room) = (dialer, order.route, preparation, order.room)
        quic.reopen = { [unowned quic] done in
            let (objection, interface) = dialer.way(to: address, on: route)
            guard objection == nil, room?.takeMore(isNeeded: true) ?? true else { return done(nil) }
            QUICSocketOrder(address: address, interface: interface, preparation: preparation, room: room, loop: dialer.loop)
                .open(for: quic) { done(try? $0.get()) }
        }
    }

    private func keptChain(_ agreed: TLSSession.Agreement, _ address: SocketAddress) -> KeptChain? {
        guard !agreed.serverChain.isEmpty else { return nil }
        return KeptChain(
            agreed.serverChain, reach: AddressKind(address),
            isForAllDelegates: agreed.isVerified && !agreed.wasAskedForCertificate, acceptedBy: agreed.acceptedBy)
    }

    /// The facts of a connection whose handshake is one of transport and TLS at once.
    private func facts(_ quic: QUICConnection, _ agreed: TLSSession.Agreement) -> ConnectionFacts {
        let channel = quic.channel
        let end = dialer.now()
        var trust = agreed.trust
        trust.judge = order.route.details?.judge ?? agreed.acceptedBy.first ?? nil
        return ConnectionFacts(
            localAddress: channel?.localAddress?.ipAddress, localPort: channel?.localAddress?.port,
            remoteAddress: channel?.remoteAddress?.ipAddress, remotePort: channel?.remoteAddress?.port,
            tlsVersion: agreed.version, tlsCipherSuite: agreed.cipherSuite,
            domainLookupStart: lookupStart, domainLookupEnd: lookupEnd,
            connectStart: connectStart, secureConnectionStart: connectStart, secureConnectionEnd: end, connectEnd: end,
            wasAskedForCertificate: agreed.wasAskedForCertificate, sentClientCertificate: agreed.sentClientCertificate,
            isVerified: agreed.isVerified, serverCertificate: agreed.serverCertificate,
            interface: network?.interface(from: channel?.localAddress?.ipAddress),
            usedNameServers: dialer.resolver(for: order.route).asksNameServers(for: peer.host, port: peer.port),
            isInTLS: true, applicationProtocol: agreed.applicationProtocol, trust: trust)
    }
}
