// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// A challenge that is waiting for the app's answer, or whose answer is being tried.
///
/// Other loads of the session with the same challenge wait for the answer and use the same credential, so that the app is asked
/// only once for many concurrent loads.
///
/// Some answers cannot be shared: no credential, a credential for a single request, or a cancelled challenge. Such an answer
/// applies to one load only, and each of the other loads asks the app for its own answer.
///
/// Confined to the session's loop.
final class OpenQuestion {
    /// What the question is about: two loads may share an answer if both the space and the refused credential are the same.
    struct Subject: Hashable {
        let id: AuthenticationScopes.ID
        let refused: LoadCredential?
    }

    enum Outcome {
        case own(ChallengeAnswer)
        case shared(LoadCredential)
    }

    let subject: Subject
    /// The authenticator of the load that asks; nil after that load has ended.
    private(set) weak var asker: Authenticator?
    private(set) var isAnswered = false
    private(set) var credential: LoadCredential?
    private var waiting: [LoopSlot<Void>] = []

    init(_ subject: Subject, _ asker: Authenticator) {
        self.subject = subject
        self.asker = asker
    }

    /// Whether the answer is still pending, or can be shared.
    var isOpen: Bool { asker != nil && (!isAnswered || credential != nil) }

    /// Waits for the answer to another load's question; returns nil if the answer cannot be shared.
    func wait(in control: LoadControl) async throws(LoadError) -> LoadCredential? {
        guard !isAnswered else { return credential }
        let slot = LoopSlot<Void>(control)
        waiting.append(slot)
        // This load, too, waits for the app and not for its server.
        control.hold(now: .now())
        defer { control.endHold(now: .now()) }
        try await slot.wait()
        return credential
    }

    func answer(_ answer: ChallengeAnswer?) {
        isAnswered = true
        if case .useCredential(let credential?) = answer, case .password = credential.kind, credential.persistence != .none {
            self.credential = credential
        }
        for slot in waiting { slot.fill(()) }
        waiting = []
    }
}
