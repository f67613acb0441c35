//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import LoadingModel
import Synchronization

/// Receives the events of one attempt on its engine's loop, and passes them to the desk.
///
/// Progress is merged: the desk is notified at most ten times a second, however fast the transfer is.
final class RunningLoad: LoadClient {
    private struct State {
        var counts = TransferCounts()
        var isNew = false
        var isScheduled = false
    }

    private let number: Int64
    private let desk: TransferDesk
    private let state = Mutex(State())

    init(_ number: Int64, _ desk: TransferDesk) {
        self.number = number
        self.desk = desk
    }

    func tell(_ event: TaskEvent) {
        switch event {
        case .sent(_, let total, let expected):
            note {
                $0.sent = total
                $0.expectedToSend = expected
            }
        case .wrote(_, let total, let expected):
            note {
                $0.received = total
                $0.expectedToReceive = expected
            }
        case .resumed(let total, let expected):
            note {
                $0.received = total
                $0.expectedToReceive = expected
            }
            desk.enter { $0.heard(event, of: self.number, by: self) }
        case .data: break
        default:
            let counts = takeCounts()
            desk.enter { desk in
                if let counts { desk.progressed(self.number, counts, of: self) }
                desk.heard(event, of: self.number, by: self)
            }
        }
    }

    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .challenge: desk.enter { $0.questions.asked(question, of: self.number, by: self, $0, reply) }
        case .redirect(_, let proposed): reply(.request(proposed))
        case .response: reply(.disposition(.allow))
        case .newBodyStream: reply(.bodyStream(nil))
        case .delayedRequest: reply(.delayed(.proceed))
        case .customLoader: reply(.customLoader(nil))
        case .willCache(let proposed): reply(.cached(proposed))
        case .storedCredential: reply(.credential(.useCredential(nil)))
        case .cookies: reply(.cookies(nil))
        case .cachedResponse: reply(.cached(nil))
        case .storeCookies, .storeCached, .storeCredential: reply(.done)
        }
    }

    private func note(_ change: (inout TransferCounts) -> Void) {
        let mustSchedule = state.withLock { state in
            change(&state.counts)
            state.isNew = true
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        guard mustSchedule else { return }
        desk.enter(after: 0.1) { desk in
            if let counts = self.takeCounts() { desk.progressed(self.number, counts, of: self) }
        }
    }

    private func takeCounts() -> TransferCounts? {
        state.withLock { state in
            state.isScheduled = false
            guard state.isNew else { return nil }
            state.isNew = false
            return state.counts
        }
    }
}
