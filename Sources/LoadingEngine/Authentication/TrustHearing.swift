// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore

/// A load's wait for the verdict of its delegate on a connection whose handshake did not ask that delegate.
///
/// The pool has the connection meanwhile: other loads may use it, and a refusal leaves it unharmed. The time does not count toward
/// the request timeout.
final class TrustHearing: QueuePosition {
    private let chain: KeptChain
    private let server: ServerName
    private let question: ChainQuestion
    private let place: Int
    private var hasAsked = false

    private init(_ chain: KeptChain, of server: ServerName, for load: Load) {
        self.chain = chain
        self.server = server
        (question, place) = chain.join(load.control, of: load.ownDelegate)
    }

    /// Makes a load wait for its delegate.
    static func begin(about chain: KeptChain, of server: ServerName, for load: Load) {
        let hearing = TrustHearing(chain, of: server, for: load)
        load.control.enter(.queued(hearing))
        load.control.hold(now: .now())
        hearing.ask(load)
    }

    /// Asks the delegate, unless it is being asked for another load.
    private func ask(_ load: Load) {
        guard !hasAsked, question.isTurn(of: place) else { return }
        hasAsked = true
        load.judge(chain.certificates, of: server, reach: chain.reach) { [self, delegate = load.ownDelegate] in
            chain.end(question, to: delegate, at: place, with: $0)
        }
    }

    /// Returns the chain that the delegate accepted, or nil if the load still has to wait; throws if the delegate refused it.
    func acceptedChain(for load: Load) throws(LoadError) -> KeptChain? {
        // A load that has asked waits for its own answer, even if the delegate has accepted the chain elsewhere meanwhile.
        if load.control.failure == nil, question.answer == nil, hasAsked || !chain.isAccepted(by: load.ownDelegate) {
            ask(load)
            return nil
        }
        end(load)
        try load.control.check()
        if var refusal = question.answer?.refusal(of: server.host) {
            refusal.peerTrust = chain.certificates
            throw refusal
        }
        return chain
    }

    private func end(_ load: Load) {
        let now = NIODeadline.now()
        load.control.enter(.elsewhere)
        load.control.endHold(now: now)
        load.control.markProgress(now)
        chain.leave(question, to: load.ownDelegate, at: place)
    }

    // The load keeps no place in a queue, and its time is paused from the beginning to the end.
    func appIsAsked(_ isAsked: Bool) {}
    func priorityChanged(_ priority: Float) {}
    func suspended() {}
    func resumed() {}
}
