//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
    private var isAsking = false
    private var answer: TrustAnswer?

    private init(_ chain: KeptChain, of server: ServerName) {
        self.chain = chain
        self.server = server
    }

    /// Makes a load wait for its delegate.
    static func begin(about chain: KeptChain, of server: ServerName, for load: Load) {
        let hearing = TrustHearing(chain, of: server)
        load.control.enter(.queued(hearing))
        load.control.hold(now: .now())
        hearing.ask(load)
    }

    /// Asks the delegate, unless it is being asked for another load.
    private func ask(_ load: Load) {
        guard !isAsking, chain.beginQuestion(to: load.ownDelegate, for: load.control) else { return }
        isAsking = true
        load.judge(chain.certificates, of: server, reach: chain.reach) { [self, control = load.control] in
            answer = $0
            control.wake()
        }
    }

    /// Returns the chain that the delegate accepted, or nil if the load still has to wait; throws if the delegate refused it.
    func acceptedChain(for load: Load) throws(LoadError) -> KeptChain? {
        guard load.control.failure == nil, answer == nil, !chain.isAccepted(by: load.ownDelegate) else {
            if load.control.failure == nil, var refusal = answer?.refusal(of: server.host) {
                end(load)
                refusal.peerTrust = chain.certificates
                throw refusal
            }
            if answer != nil { chain.accept(load.ownDelegate) }
            end(load)
            try load.control.check()
            return chain
        }
        ask(load)
        return nil
    }

    private func end(_ load: Load) {
        let now = NIODeadline.now()
        load.control.enter(.elsewhere)
        load.control.endHold(now: now)
        load.control.markProgress(now)
        if isAsking { chain.endQuestion(to: load.ownDelegate) }
    }

    // The load keeps no place in a queue, and its time is paused from the beginning to the end.
    func appIsAsked(_ isAsked: Bool) {}
    func priorityChanged(_ priority: Float) {}
    func suspended() {}
    func resumed() {}
}
