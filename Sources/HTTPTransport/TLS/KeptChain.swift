// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import LoadingModel

/// The certificates of a connection's server, and the delegates that have accepted them for this connection.
///
/// A delegate is represented by the holder of its tasks' connections; nil stands for the session's delegate. Confined to the
/// connection's event loop.
package final class KeptChain {
    /// The number of tasks' own delegates whose acceptance is remembered, because a connection may outlive any number of them.
    private static let memory = 16

    /// The server's own certificate first, in DER; with the issuers that were fetched because the server did not send them.
    package let certificates: [Data]
    package let reach: AddressKind
    /// Whether the connection may serve tasks of all delegates: trusted roots vouch for the server, the server has not asked for a
    /// client certificate, and the connection is not authenticated (NTLM, Negotiate).
    package let isForAllDelegates: Bool

    private var acceptedBySession = false
    private var accepted: [ConnectionHolder] = []
    /// The open questions, at most one to each delegate.
    private var questions: [ConnectionHolder?: ChainQuestion] = [:]

    init(_ certificates: [Data], reach: AddressKind, isForAllDelegates: Bool, acceptedBy delegates: [ConnectionHolder?]) {
        self.certificates = certificates
        self.reach = reach
        self.isForAllDelegates = isForAllDelegates
        for delegate in delegates { accept(delegate) }
    }

    package func isAccepted(by delegate: ConnectionHolder?) -> Bool {
        delegate.map { accepted.contains($0) } ?? acceptedBySession
    }

    /// Notes that a delegate accepts the certificates; the loads that wait for its answer continue.
    package func accept(_ delegate: ConnectionHolder?) {
        defer { questions[delegate]?.wake() }
        guard let delegate else {
            acceptedBySession = true
            return
        }
        guard !accepted.contains(delegate) else { return }
        if accepted.count >= Self.memory { accepted.removeFirst() }
        accepted.append(delegate)
    }

    /// Makes a load wait for its delegate's answer; returns the question and the load's place among those that wait for it.
    package func join(_ load: LoadControl, of delegate: ConnectionHolder?) -> (question: ChainQuestion, place: Int) {
        let question = questions[delegate] ?? ChainQuestion()
        questions[delegate] = question
        return (question, question.join(load))
    }

    /// Ends a question, if the load at this place still asks it; the answer is that of all loads that wait for it.
    package func end(_ question: ChainQuestion, to delegate: ConnectionHolder?, at place: Int, with answer: TrustAnswer) {
        guard question.answer == nil, question.isTurn(of: place) else { return }
        question.answer = answer
        questions[delegate] = nil
        switch answer {
        case .trusted, .checked: accept(delegate)
        case .rejected, .cancelled: break
        }
        question.wake()
    }

    /// Removes a load that no longer waits; if it was asking, it is the next load's turn.
    package func leave(_ question: ChainQuestion, to delegate: ConnectionHolder?, at place: Int) {
        question.leave(place)
        if question.isEmpty, questions[delegate] === question { questions[delegate] = nil }
    }
}

/// A question to a delegate about a ``KeptChain``: one load asks, and the delegate's other loads wait for the same answer.
///
/// If the load ends before there is an answer, the next one asks.
package final class ChainQuestion {
    package fileprivate(set) var answer: TrustAnswer?
    private var loads: [Int: LoadControl] = [:]
    /// The place of the load that asks: the lowest that is taken.
    private var turn = 0
    private var end = 0

    fileprivate init() {}

    fileprivate var isEmpty: Bool { loads.isEmpty }

    package func isTurn(of place: Int) -> Bool { place == turn }

    fileprivate func join(_ load: LoadControl) -> Int {
        loads[end] = load
        end += 1
        return end - 1
    }

    fileprivate func leave(_ place: Int) {
        loads[place] = nil
        guard place == turn else { return }
        while turn < end, loads[turn] == nil { turn += 1 }
        // The other loads look at the answer themselves.
        if answer == nil { loads[turn]?.wake() }
    }

    fileprivate func wake() {
        for place in turn..<end { loads[place]?.wake() }
    }
}
