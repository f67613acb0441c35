//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials
package import HTTPRules
package import HTTPWire
package import LoadingModel

/// Whoever decides for a connection that is being made: a load that waits for it, on behalf of its session.
///
/// Called on the loop; the answers come on the loop too, at once or later.
package protocol HandshakeAdviser: AnyObject {
    /// Whether nobody may answer in its place when a server is to be judged: the app wants to be asked.
    var judgesServers: Bool { get }
    /// Is a server to be trusted that presents these certificates (DER, its own first)?
    func judge(_ chain: [Data], of server: ServerName, reply: @escaping (TrustAnswer) -> Void)
    /// With what identity are we to show ourselves to a server that asks for a client certificate? The reply tells whether it was
    /// taken.
    func identity(for server: ServerName, reply: @escaping (IdentityAnswer) -> Bool)
    /// What to send to a proxy before it asks who we are: the value of `Proxy-Authorization`.
    func authorization(for tunnel: TunnelAttempt) -> String?
    /// What to answer a proxy that refuses a tunnel with 407, or nil to give up.
    func answer(_ head: ResponseHead, for tunnel: TunnelAttempt, reply: @escaping (Result<String?, LoadError>) -> Void)
    /// The proxy made the tunnel: is it the one that the credential was for? Nil says that nothing speaks against it.
    func opened(_ tunnel: TunnelAttempt, by head: ResponseHead, reply: @escaping (LoadError?) -> Void)
}

/// A server as a TLS handshake knows it.
package struct ServerName: Sendable, Hashable {
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// A tunnel that a proxy is asked for, perhaps several times until it knows who we are.
package final class TunnelAttempt {
    package let proxy: ProxyServer
    /// Host and port of the server, as they stand in the request.
    package let authority: String
    /// The credential that the requests for this tunnel give to the proxy themselves; it comes before what an adviser knows.
    let credential: TunnelCredential?
    /// The advisers' memory.
    package var state: AnyObject?
    /// What the proxy closed its connection before: it goes over the next one.
    var unsent: String?

    init(proxy: ProxyServer, authority: String, credential: TunnelCredential?) {
        self.proxy = proxy
        self.credential = credential
        self.authority = authority
    }
}

package enum TrustAnswer: Sendable {
    /// Whatever the check would say; App Transport Security may still demand it.
    case trusted
    /// The system's roots, or the session's, decide.
    case checked
    case rejected
    case cancelled
}

package enum IdentityAnswer: Sendable {
    case identity(ClientIdentity)
    case none
    case cancelled
}

/// Puts a dial's questions to one adviser after another: to the next one when the one that was asked does not wait any more.
///
/// When nobody waits any more the question says what holds: an answer, or that nobody can give it. Then the dial is over, since a
/// connection that was made on no answer would be used by whoever comes next, unasked.
final class HandshakeAdvice {
    /// For whom the dial began, or who was asked last.
    enum Standing {
        /// There never was anybody.
        case nobody
        case somebody(judgesServers: Bool)
    }

    /// Called when nobody can answer.
    var unanswered: (() -> Void)?
    private let find: () -> (any HandshakeAdviser)?
    private var standing: Standing
    private var asked: (any HandshakeAdviser)?
    /// Who was asked last what could not be answered at once.
    private weak var lastAsked: (any HandshakeAdviser)?
    private var askAgain: (() -> Void)?
    private var round = 0

    init(_ find: @escaping () -> (any HandshakeAdviser)?) {
        self.find = find
        standing = Self.standing(of: find())
    }

    private static func standing(of adviser: (any HandshakeAdviser)?) -> Standing {
        adviser.map { .somebody(judgesServers: $0.judgesServers) } ?? .nobody
    }

    /// Whoever is first in line now.
    var adviser: (any HandshakeAdviser)? { find() }

    /// - Parameters:
    ///   - question: Puts the question to an adviser. The reply tells whether it was taken.
    ///   - otherwise: What holds when nobody is in line; nil where that cannot be said.
    ///   - reply: Called once, unless nobody answers.
    func ask<Answer>(
        _ question: @escaping (any HandshakeAdviser, @escaping (Answer) -> Bool) -> Void,
        otherwise: @escaping (Standing) -> Answer?, reply: @escaping (Answer) -> Void
    ) {
        round += 1
        let mine = round
        guard let adviser = find() else {
            (asked, askAgain) = (nil, nil)
            if let answer = otherwise(standing) { reply(answer) } else { unanswered?() }
            return
        }
        standing = Self.standing(of: adviser)
        asked = adviser
        askAgain = { [unowned self] in ask(question, otherwise: otherwise, reply: reply) }
        question(adviser) { [self] answer in
            guard round == mine else { return false }
            end()
            reply(answer)
            return true
        }
        if round == mine { lastAsked = adviser }
    }

    /// Whether the adviser was asked something that it could not answer at once.
    func hasAsked(_ adviser: any HandshakeAdviser) -> Bool { lastAsked === adviser }

    /// An adviser has nothing to do with the dial any more; should it have been asked, its answer is not waited for.
    func left(_ adviser: any HandshakeAdviser) {
        if lastAsked === adviser { lastAsked = nil }
        guard let asked, asked === adviser else { return }
        askAgain?()
    }

    /// No answer is of interest any more.
    func end() {
        round += 1
        (asked, askAgain) = (nil, nil)
    }
}
