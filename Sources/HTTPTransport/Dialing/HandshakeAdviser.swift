// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore

/// A load that waits for a connection and answers the questions of its handshake on behalf of the session.
///
/// Called on the loop; the adviser replies on the loop too, immediately or later.
package protocol HandshakeAdviser: AnyObject {
    /// The task's own delegate, if that judges servers instead of the session's.
    var ownDelegate: ConnectionHolder? { get }
    /// Whether the app judges servers itself.
    ///
    /// If so, the roots alone do not decide: the app is asked in the handshake, or, if the roots decided first because a task's own
    /// delegate waits, before the load uses the connection.
    var judgesServers: Bool { get }
    /// Asks whether to trust a server that presents these certificates (DER, the server's own first), and whose address is of this
    /// kind.
    func judge(_ chain: [Data], of server: ServerName, reach: AddressKind, reply: @escaping (TrustAnswer) -> Void)
    /// Asks for the identity to present to a server that requests a client certificate.
    ///
    /// The reply handler returns whether the answer was accepted.
    func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Bool)
    /// Fetches the certificate of an issuer that the server did not send, for a server at an address of this kind.
    ///
    /// Returns the action that cancels the fetch.
    func fetchIssuer(
        at url: String, reach: AddressKind, within patience: TimeAmount, reply: @escaping (IssuerAnswer) -> Void
    ) -> () -> Void
    /// Returns the value of `Proxy-Authorization` to send to a proxy before the proxy asks for it.
    func authorization(for tunnel: TunnelAttempt) -> String?
    /// Asks for the authorization to send to a proxy that refuses a tunnel with 407; a nil reply gives up.
    func answer(_ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void)
    /// Checks that the proxy that opened the tunnel is the one that the credential was meant for; a nil reply means no objection.
    func opened(_ tunnel: TunnelAttempt, by head: ResponseHead, reply: @escaping (LoadError?) -> Void)
}

/// A server's name and port for a TLS handshake.
package struct ServerName: Sendable, Hashable {
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// A tunnel that is requested from a proxy, possibly several times if the proxy requires authentication.
package final class TunnelAttempt {
    package let proxy: ProxyServer
    /// The host and port of the server, as in the CONNECT request.
    package let authority: String
    /// The credential that the tunnelled requests themselves specify for the proxy; it takes precedence over the advisers'
    /// credentials.
    let credential: TunnelCredential?
    /// The authentication state that advisers keep for this tunnel.
    package var state: AnyObject?
    /// The authorization that could not be sent because the proxy closed the connection; it will be sent on the next connection.
    var unsentAuthorization: String?

    init(proxy: ProxyServer, authority: String, credential: TunnelCredential?) {
        self.proxy = proxy
        self.credential = credential
        self.authority = authority
    }
}

/// Asks one adviser at a time; if that adviser stops waiting, asks the next.
///
/// If no adviser is waiting anymore, the question's default answer applies. A question without a default ends the dial: otherwise
/// the next load would use the connection although it was not asked.
final class HandshakeAdvice {
    /// What is known about the adviser that was asked last, or else about the load that the dial started for.
    enum Standing {
        /// The dial never had an adviser.
        case noAdviser
        case known(judgesServers: Bool)
    }

    /// Called when there is no adviser and no default answer.
    var unanswered: (() -> Void)?
    /// Called before an adviser is asked; the question is not asked if the dial is cancelled meanwhile.
    var willAsk: ((any HandshakeAdviser) -> Void)?
    /// Whether the roots decide before an adviser is asked about the server.
    var checksRootsFirst: () -> Bool = { false }
    /// Whether an adviser was asked a question that concerns only its delegate.
    private(set) var hasAsked = false
    /// The adviser that gave the last answer.
    private(set) weak var lastAnswering: (any HandshakeAdviser)?
    /// Whether the proxy has authenticated the tunnel's connection (NTLM, Negotiate).
    private(set) var isTunnelAuthenticated = false
    private let find: () -> (any HandshakeAdviser)?
    /// Shared by the candidates of a dial.
    private let floor: HandshakeFloor?
    private var standing: Standing
    private var asked: (any HandshakeAdviser)?
    /// The adviser of the last question that could not be answered at once.
    private weak var lastAsked: (any HandshakeAdviser)?
    private var repeatQuestion: (() -> Void)?
    private var round = 0

    init(_ find: @escaping () -> (any HandshakeAdviser)?, floor: HandshakeFloor? = nil) {
        self.find = find
        self.floor = floor
        standing = Self.standing(of: find())
    }

    private static func standing(of adviser: (any HandshakeAdviser)?) -> Standing {
        adviser.map { .known(judgesServers: $0.judgesServers) } ?? .noAdviser
    }

    /// The adviser to ask next: the first load in the queue.
    var adviser: (any HandshakeAdviser)? { find() }

    /// - Parameters:
    ///   - question: Asks an adviser. The reply handler returns whether the answer was accepted.
    ///   - isForDelegate: Whether the answer applies only to loads with the adviser's delegate.
    ///   - otherwise: Returns the default answer for a dial without a waiting adviser; nil if the question has no default.
    ///   - reply: Called once, unless there is no answer.
    func ask<Answer>(
        _ question: @escaping (any HandshakeAdviser, @escaping (Answer) -> Bool) -> Void, isForDelegate: Bool = true,
        otherwise: @escaping (Standing) -> Answer?, reply: @escaping (Answer) -> Void
    ) {
        round += 1
        let mine = round
        if let floor, !floor.take(self) {
            // Another candidate asks; its answer may make this question needless.
            return floor.wait { [weak self] in
                guard let self, round == mine else { return }
                ask(question, isForDelegate: isForDelegate, otherwise: otherwise, reply: reply)
            }
        }
        guard let adviser = find() else {
            (asked, repeatQuestion) = (nil, nil)
            if let answer = otherwise(standing) { reply(answer) } else { unanswered?() }
            return
        }
        if isForDelegate { noteQuestion(to: adviser) }
        guard round == mine else { return }
        standing = Self.standing(of: adviser)
        asked = adviser
        repeatQuestion = { [unowned self] in
            ask(question, isForDelegate: isForDelegate, otherwise: otherwise, reply: reply)
        }
        question(adviser) { [self] answer in
            guard round == mine else { return false }
            end()
            lastAnswering = adviser
            reply(answer)
            return true
        }
        if round == mine { lastAsked = adviser }
    }

    private func noteQuestion(to adviser: any HandshakeAdviser) {
        willAsk?(adviser)
        hasAsked = true
    }

    /// Notes the credential for a proxy that the connection will carry.
    func willAuthorize(_ credential: String) {
        guard AuthenticationScheme.bindsConnection(credential) else { return }
        isTunnelAuthenticated = true
        if let adviser { noteQuestion(to: adviser) }
    }

    /// Whether the adviser was asked a question that it could not answer at once.
    func hasAsked(_ adviser: any HandshakeAdviser) -> Bool { lastAsked === adviser }

    /// Notes that an adviser no longer takes part in the dial; if a question was pending with it, the next adviser is asked
    /// instead.
    func left(_ adviser: any HandshakeAdviser) {
        if lastAsked === adviser { lastAsked = nil }
        guard let asked, asked === adviser else { return }
        repeatQuestion?()
    }

    /// Makes the advice ignore later answers.
    func end() {
        round += 1
        (asked, repeatQuestion) = (nil, nil)
    }
}

/// Lets one candidate of a dial ask the app at a time.
///
/// Confined to the dialer's loop.
final class HandshakeFloor {
    private weak var holder: HandshakeAdvice?
    private var waiting: [() -> Void] = []

    /// Returns whether the advice may ask; it keeps the floor until its candidate has failed.
    func take(_ advice: HandshakeAdvice) -> Bool {
        if holder == nil { holder = advice }
        return holder === advice
    }

    func wait(_ turn: @escaping () -> Void) { waiting.append(turn) }

    func leave(_ advice: HandshakeAdvice) {
        guard holder === advice else { return }
        holder = nil
        let turns = waiting
        waiting = []
        for turn in turns { turn() }
    }
}
