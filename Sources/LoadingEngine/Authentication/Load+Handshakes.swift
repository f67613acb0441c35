// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// The challenges of proxies whose tunnels are made for the load.
///
/// The load answers one challenge at a time.
struct TunnelQuestions {
    fileprivate var questions: [Load.TunnelQuestion] = []

    var isEmpty: Bool { questions.isEmpty }

    /// Forgets the questions when the load asks for another connection: other loads now answer them.
    mutating func forget() { questions = [] }
}

/// Lets a load answer the questions of the handshake of the connection that it waits for.
extension Load: HandshakeAdviser {
    package var ownDelegate: ConnectionHolder? { order.connectionHolder }

    package var judgesServers: Bool { wants(.challenges) }

    package func judge(
        _ chain: [Data], of server: ServerName, reach: AddressKind, reply: @escaping (TrustAnswer) -> Void
    ) {
        guard wants(.challenges) else { return reply(.checked) }
        var question = ChallengeQuestion(space(server, .serverTrust))
        question.serverTrust = chain
        if session.issuers != nil {
            let (bound, loop) = (NIOLoopBound(self, eventLoop: session.loop), session.loop)
            question.fetchIssuer = { url, patience in
                await withCheckedContinuation { continuation in
                    loop.execute {
                        _ = bound.value.fetchIssuer(at: url, reach: reach, within: .nanoseconds(Int64(patience * 1e9))) {
                            continuation.resume(returning: $0)
                        }
                    }
                }
            }
        }
        ask(question) { answer in
            switch answer {
            case .useCredential(let credential):
                if case .trust = credential?.kind { reply(.trusted) } else { reply(.checked) }
            case .performDefaultHandling: reply(.checked)
            case .rejectProtectionSpace: reply(.rejected)
            case .cancel: reply(.cancelled)
            }
        }
    }

    package func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Bool) {
        findIdentity(for: server, isQueued: true, reply: reply)
    }

    /// Looks for the identity to present: the one that the session knows, the storage's, or the delegate's.
    ///
    /// There is no answer if a queued load has left the queue meanwhile.
    func findIdentity(for server: ServerName, isQueued: Bool, reply: @escaping (IdentityAnswer) -> Bool) {
        if let known = session.credentials.identity(for: server, judge: order.connectionHolder) {
            _ = reply(.identity(known))
            return
        }
        let space = space(server, .clientCertificate)
        let queuePosition = control.queuePosition
        stored(for: space) { [self] proposed in
            // The lookup may have taken time. Meanwhile, the load may have left the queue and queued again for another connection.
            guard !isQueued || queuePosition != nil, control.queuePosition === queuePosition, control.failure == nil
            else { return }
            guard wants(.challenges) else { return show(proposed, to: server, reply) }
            var question = ChallengeQuestion(space)
            question.proposed = proposed
            ask(question) { [self] answer in
                switch answer {
                case .useCredential(let credential): show(credential, to: server, reply)
                case .performDefaultHandling: show(proposed, to: server, reply)
                case .rejectProtectionSpace: _ = reply(.none)
                case .cancel: _ = reply(.cancelled)
                }
            }
        }
    }

    package func fetchIssuer(
        at url: String, reach: AddressKind, within patience: TimeAmount, reply: @escaping (IssuerAnswer) -> Void
    ) -> () -> Void {
        guard let issuers = session.issuers else {
            reply(.unavailable(nil))
            return {}
        }
        var needs = order.request.needs.joined(with: session.policy.needs)
        needs.reach = reach
        // A proxy script on such a server could otherwise be needed to fetch itself.
        return issuers.fetch(url, needs, usesProxies: !order.isForProxies, within: patience, reply: reply)
    }

    private func show(_ credential: LoadCredential?, to server: ServerName, _ reply: (IdentityAnswer) -> Bool) {
        guard case .identity(let identity) = credential?.kind else {
            _ = reply(.none)
            return
        }
        // The answer to a session-wide challenge stays in effect for the session.
        guard reply(.identity(identity)), credential?.persistence != LoadCredential.Persistence.none else { return }
        session.credentials.remember(identity, for: server, judge: order.connectionHolder)
    }

    /// Calls back with the storage's credential for a space.
    ///
    /// The library's own storage keeps identities in memory, so its lookup does not wait.
    private func stored(for space: ProtectionSpace, _ reply: @escaping (LoadCredential?) -> Void) {
        guard wants(.credentials) else { return reply(session.stores.credentials?.lookup(space)) }
        let bound = NIOLoopBound(reply, eventLoop: session.loop)
        let loop = session.loop
        client.ask(.storedCredential(space)) { answer in
            loop.execute {
                if case .credential(.useCredential(let credential)) = answer { bound.value(credential) } else { bound.value(nil) }
            }
        }
    }

    private func space(_ server: ServerName, _ method: AuthenticationMethod) -> ProtectionSpace {
        ProtectionSpace(host: server.host, port: server.port, kind: "https", method: method)
    }

    /// Asks the app and returns immediately; the connection and the load wait until `reply` is called with the answer.
    private func ask(_ question: ChallengeQuestion, _ reply: @escaping (ChallengeAnswer) -> Void) {
        let queuePosition = control.queuePosition
        queuePosition?.appIsAsked(true)
        let bound = NIOLoopBound((queuePosition: queuePosition, reply: reply), eventLoop: session.loop)
        let loop = session.loop
        client.ask(.challenge(question)) { answer in
            loop.execute {
                let (queuePosition, reply) = bound.value
                queuePosition?.appIsAsked(false)
                if case .credential(let answer) = answer { reply(answer) } else { reply(.performDefaultHandling) }
            }
        }
    }

    // MARK: Tunnels

    package func authorization(for tunnel: TunnelAttempt) -> String? {
        let authenticator = authenticator(for: tunnel)
        if authenticator.proof == nil, let proof = session.credentials.proof(for: authenticator.place, path: "/") {
            authenticator.use(proof)
            // Each tunnel is a new connection, which needs its own handshake.
            authenticator.beginNTLM()
        }
        return authenticator.field(method: "CONNECT", uri: tunnel.authority)
    }

    package func answer(
        _ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void
    ) {
        let context = ChallengeDesk.Context(
            authenticator: authenticator(for: tunnel), challenges: head.headers.octetTexts(of: "Proxy-Authenticate"),
            response: order.request.url.map { LoadResponse(url: $0, kind: .http(head), expectedLength: 0) }, path: "/",
            given: tunnel.proxy.credential, facts: nil
        )
        tunnels.questions.append(.needsCredential(context, authority: tunnel.authority, reply: reply))
        control.wake()
    }

    package func opened(_ tunnel: TunnelAttempt, by head: ResponseHead, reply: @escaping (LoadError?) -> Void) {
        guard let authenticator = tunnel.state as? Authenticator, authenticator.isOnTrial else { return reply(nil) }
        guard authenticator.proof?.scheme != .negotiate else {
            tunnels.questions.append(.needsProofCheck(authenticator, head.headers, reply: reply))
            return control.wake()
        }
        do throws(LoadError) {
            _ = try authenticator.accepted(head.headers)
            ChallengeDesk.accepted(authenticator, path: "/", in: self)
            reply(nil)
        } catch {
            reply(error)
        }
    }

    private func authenticator(for tunnel: TunnelAttempt) -> Authenticator {
        if let known = tunnel.state as? Authenticator { return known }
        let made = Authenticator(AuthenticationScopes.Peer(of: tunnel.proxy, kind: "https"))
        tunnel.state = made
        return made
    }

    /// Indirect, so that neither a load without a question nor a stack frame that checks for a question reserves space for one.
    indirect enum TunnelQuestion {
        /// A proxy asks for a credential.
        case needsCredential(ChallengeDesk.Context, authority: String, reply: (Result<String?, LoadError>) -> Void)
        /// A proxy has opened the tunnel; the Negotiate token in the proxy's reply still has to be verified.
        case needsProofCheck(Authenticator, HeaderBlock, reply: (LoadError?) -> Void)
    }

    /// Answers a question about a tunnel that this load is waiting for.
    ///
    /// Runs in the load's task, which may have to wait for the app or a KDC.
    ///
    /// A load that has ended does not answer; the next queued load is asked instead.
    ///
    /// Not inlined, because every waiting load would then reserve space for the local variables.
    @inline(never)
    func answerTunnel() async {
        guard !tunnels.isEmpty else { return }
        switch tunnels.questions.removeFirst() {
        case .needsCredential(let context, let authority, let reply):
            let answer: Result<String?, LoadError>
            do throws(LoadError) {
                let willRetry = try await ChallengeDesk.answer(context, in: self)
                answer = .success(willRetry ? context.authenticator.field(method: "CONNECT", uri: authority) : nil)
            } catch {
                answer = .failure(error)
            }
            if control.failure == nil { reply(answer) }
        case .needsProofCheck(let authenticator, let headers, let reply):
            var failure: LoadError?
            do throws(LoadError) {
                try await authenticator.accepted(headers, in: control)
                ChallengeDesk.accepted(authenticator, path: "/", in: self)
            } catch {
                failure = error
            }
            if control.failure == nil { reply(failure) }
        }
    }
}
