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
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// A load speaks for its session while a connection is made that it waits for.
extension Load: HandshakeAdviser {
    package func judge(_ chain: [Data], of server: ServerName, reply: @escaping (TrustAnswer) -> Void) {
        guard wants(.challenges) else { return reply(.checked) }
        var question = ChallengeQuestion(space(server, .serverTrust))
        question.serverTrust = chain
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

    package func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Void) {
        if let known = session.credentials.identities[server] { return reply(.identity(known)) }
        let space = space(server, .clientCertificate)
        var proposed: LoadCredential?
        if let store = session.stores.credentials, store.isReady { proposed = store.lookup(space) }
        guard wants(.challenges) else { return reply(chosen(proposed, server)) }
        var question = ChallengeQuestion(space)
        question.proposed = proposed
        ask(question) { [self] answer in
            switch answer {
            case .useCredential(let credential): reply(chosen(credential, server))
            case .performDefaultHandling: reply(chosen(proposed, server))
            case .rejectProtectionSpace: reply(.none)
            case .cancel: reply(.cancelled)
            }
        }
    }

    private func chosen(_ credential: LoadCredential?, _ server: ServerName) -> IdentityAnswer {
        guard case .identity(let identity) = credential?.kind else { return .none }
        // "A handled session-wide challenge stays in effect for the session."
        if credential?.persistence != LoadCredential.Persistence.none { session.credentials.identities[server] = identity }
        return .identity(identity)
    }

    private func space(_ server: ServerName, _ method: AuthenticationMethod) -> ProtectionSpace {
        ProtectionSpace(host: server.host, port: server.port, kind: "https", method: method)
    }

    /// Asks the app without waiting: the connection waits, and the load with it.
    private func ask(_ question: ChallengeQuestion, _ reply: @escaping (ChallengeAnswer) -> Void) {
        let bound = NIOLoopBound(reply, eventLoop: session.loop)
        let loop = session.loop
        client.ask(.challenge(question)) { answer in
            loop.execute {
                if case .credential(let answer) = answer { bound.value(answer) } else { bound.value(.performDefaultHandling) }
            }
        }
    }

    // MARK: Tunnels

    package func authorization(for tunnel: TunnelAttempt) -> String? {
        let authenticator = authenticator(for: tunnel)
        if authenticator.proof == nil, let proof = session.credentials.proof(for: authenticator.place, path: "/") {
            authenticator.use(proof)
        }
        return authenticator.field(method: "CONNECT", uri: tunnel.authority)
    }

    package func answer(
        _ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void
    ) {
        let context = ChallengeDesk.Context(
            authenticator: authenticator(for: tunnel), challenges: head.headers.all("Proxy-Authenticate"),
            response: order.request.url.map { LoadResponse(url: $0, kind: .http(head), expectedLength: 0) }, path: "/",
            given: session.proxyCredential, facts: nil
        )
        tunnelQuestion = TunnelQuestion(context: context, authority: tunnel.authority, reply: reply)
        control.wake()
    }

    package func opened(_ tunnel: TunnelAttempt) {
        guard let authenticator = tunnel.state as? Authenticator, authenticator.isOnTrial else { return }
        ChallengeDesk.accepted(authenticator, path: "/", in: self)
    }

    private func authenticator(for tunnel: TunnelAttempt) -> Authenticator {
        if let known = tunnel.state as? Authenticator { return known }
        let made = Authenticator(ChallengeDesk.place(of: tunnel.proxy, kind: "https"), isSecure: false)
        tunnel.state = made
        return made
    }

    /// A class, so that the loads that are never asked, and the frames that look, have no room for it.
    final class TunnelQuestion {
        let context: ChallengeDesk.Context
        let authority: String
        let reply: (Result<String?, LoadError>) -> Void

        init(context: ChallengeDesk.Context, authority: String, reply: @escaping (Result<String?, LoadError>) -> Void) {
            self.context = context
            self.authority = authority
            self.reply = reply
        }
    }

    /// Answers the proxy that makes the tunnel which this load waits for; called by the load, which may wait for the app.
    ///
    /// Out of line, because every load that waits would keep room for it.
    @inline(never)
    func answerTunnel() async throws(LoadError) {
        guard let question = tunnelQuestion else { return }
        tunnelQuestion = nil
        let answer: Result<String?, LoadError>
        do throws(LoadError) {
            let goesOn = try await ChallengeDesk.answer(question.context, in: self)
            answer = .success(goesOn ? question.context.authenticator.field(method: "CONNECT", uri: question.authority) : nil)
        } catch {
            answer = .failure(error)
        }
        question.reply(answer)
    }
}

extension ChallengeDesk {
    static func place(of proxy: ProxyAddress, kind: String) -> AuthenticationScopes.Place {
        AuthenticationScopes.Place(Origin(scheme: kind, host: proxy.host, port: proxy.port), isProxy: true)
    }
}
