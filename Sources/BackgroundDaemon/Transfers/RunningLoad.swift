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
import SystemThreads

/// Receives the events of one attempt on its engine's loop, and passes them to the desk.
///
/// Progress is merged: the desk is notified at most ten times a second, however fast the transfer is. If all transfers share a rate
/// limit, the load is suspended until the rate covers the bytes that it moved.
final class RunningLoad: LoadClient {
    private struct State {
        var counts = TransferCounts()
        var isNew = false
        var isScheduled = false
        /// What carries it out.
        var service: (any LoadingService)?
        /// When it goes on that is held, on the monitor's clock.
        var heldUntil: Double?
    }

    /// Pauses of fewer seconds are left for the next one.
    private static let shortestPause = 0.005
    /// Seconds of a pause that people are told of.
    private static let tellingPause = 2.0

    private let number: Int64
    private let desk: TransferDesk
    private let pace: SharedPace
    private let state = Mutex(State())

    init(_ number: Int64, _ desk: TransferDesk) {
        self.number = number
        self.desk = desk
        pace = desk.pace
    }

    func tell(_ event: TaskEvent) {
        switch event {
        case .sent(let bytes, let total, let expected):
            pay(bytes)
            note {
                $0.sent = total
                $0.expectedToSend = expected
            }
        case .wrote(let bytes, let total, let expected):
            pay(bytes)
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

    // MARK: The rate

    /// Begins the attempt, at once where nothing has to be paid for before.
    func begin(_ order: TaskOrder, with service: any LoadingService) {
        state.withLock { $0.service = service }
        let mustWake = service.submit(order, client: self)
        pay(0)
        if mustWake { service.wake() }
    }

    private func pay(_ bytes: Int64) {
        let pause = pace.wait(after: bytes)
        guard pause > Self.shortestPause else { return }
        let end = Monitor.clock + pause
        let isFirst = state.withLock { state in
            // What was under way when it was held.
            defer { state.heldUntil = max(end, state.heldUntil ?? end) }
            return state.heldUntil == nil
        }
        guard isFirst else { return }
        command(.suspend)
        release(after: pause)
        if pause > Self.tellingPause { desk.enter(number) { desk, transfer in desk.reports.note(transfer, desk) } }
    }

    private func release(after pause: Double) {
        desk.enter(after: pause) { _ in
            let rest = self.state.withLock { state -> Double? in
                guard let end = state.heldUntil else { return nil }
                let rest = end - Monitor.clock
                if rest <= 0 { state.heldUntil = nil }
                return rest
            }
            guard let rest else { return }
            if rest > 0 { self.release(after: rest) } else { self.command(.resume) }
        }
    }

    /// There is another rate, or none any more: it goes on.
    func letGo() {
        let wasHeld = state.withLock { state in
            defer { state.heldUntil = nil }
            return state.heldUntil != nil
        }
        if wasHeld { command(.resume) }
    }

    /// Seconds until it goes on that is held so long that people wonder; nil where it is not.
    var pause: Double? {
        let rest = (state.withLock { $0.heldUntil } ?? 0) - Monitor.clock
        return rest > Self.tellingPause / 2 ? rest : nil
    }

    private func command(_ command: TaskCommand) {
        guard let service = state.withLock({ $0.service }) else { return }
        if service.command(command, for: Int(number)) { service.wake() }
    }

    // MARK: Progress

    private func takeCounts() -> TransferCounts? {
        state.withLock { state in
            state.isScheduled = false
            guard state.isNew else { return nil }
            state.isNew = false
            return state.counts
        }
    }
}
