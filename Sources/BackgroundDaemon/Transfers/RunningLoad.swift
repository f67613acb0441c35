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
/// limit, the load is suspended until the rate covers the bytes that the load has moved.
final class RunningLoad: LoadClient {
    private struct State {
        var counts = TransferCounts()
        var isNew = false
        var isScheduled = false
        /// The service that carries out the attempt.
        var service: (any LoadingService)?
        /// When the load resumes if the rate limit has suspended it, on the monitor's clock.
        var pausedUntil: Double?
    }

    /// The shortest pause in seconds; a shorter pause is added to the next pause.
    private static let shortestPause = 0.005
    /// The length in seconds above which a pause is reported to the user's tool.
    private static let reportedPause = 2.0

    private let number: Int64
    private let desk: TransferDesk
    private let rateLimiter: SharedRateLimiter
    private let state = Mutex(State())

    init(_ number: Int64, _ desk: TransferDesk) {
        self.number = number
        self.desk = desk
        rateLimiter = desk.rateLimiter
    }

    func tell(_ event: TaskEvent) {
        switch event {
        case .sent(let bytes, let total, let expected):
            charge(bytes)
            note {
                $0.sent = total
                $0.expectedToSend = expected
            }
        case .wrote(let bytes, let total, let expected):
            charge(bytes)
            note {
                $0.received = total
                $0.expectedToReceive = expected
            }
        case .resumed(let total, let expected):
            note {
                $0.received = total
                $0.expectedToReceive = expected
            }
            desk.enter { $0.receiveEvent(event, of: self.number, by: self) }
        case .data: break
        default:
            let counts = takeCounts()
            desk.enter { desk in
                if let counts { desk.progressed(self.number, counts, of: self) }
                desk.receiveEvent(event, of: self.number, by: self)
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

    // MARK: Rate limit

    /// Starts the attempt, and pauses it if the rate limit requires a pause.
    func begin(_ order: TaskOrder, with service: any LoadingService) {
        state.withLock { $0.service = service }
        let mustWake = service.submit(order, client: self)
        charge(0)
        if mustWake { service.wake() }
    }

    private func charge(_ bytes: Int64) {
        let pause = rateLimiter.wait(after: bytes)
        guard pause > Self.shortestPause else { return }
        let end = Monitor.clock + pause
        let isFirst = command(.suspend) { state in
            // Bytes may still arrive after a load was suspended.
            defer { state.pausedUntil = max(end, state.pausedUntil ?? end) }
            return state.pausedUntil == nil
        }
        guard isFirst else { return }
        release(after: pause)
        if pause > Self.reportedPause { desk.enter(number) { desk, transfer in desk.reports.note(transfer, desk) } }
    }

    private func release(after pause: Double) {
        desk.enter(after: pause) { desk in
            // A later attempt has the same number in the same engine.
            guard desk.transfers[self.number]?.attempt?.load === self else { return }
            var rest = 0.0
            _ = self.command(.resume) { state in
                guard let end = state.pausedUntil else { return false }
                rest = end - Monitor.clock
                if rest <= 0 { state.pausedUntil = nil }
                return rest <= 0
            }
            if rest > 0 { self.release(after: rest) }
        }
    }

    /// Resumes the load because the rate limit has changed.
    func endRatePause() {
        _ = command(.resume) { state in
            defer { state.pausedUntil = nil }
            return state.pausedUntil != nil
        }
    }

    /// Seconds until the load resumes; 0 if the rate limit has not suspended it.
    var ratePause: Double { max(0, (state.withLock { $0.pausedUntil } ?? 0) - Monitor.clock) }

    /// Seconds until the load resumes, if it is suspended long enough to be worth reporting.
    var pause: Double? {
        let rest = ratePause
        return rest > Self.reportedPause / 2 ? rest : nil
    }

    /// Changes the state, and sends the command if the change requires it.
    ///
    /// - Returns: Whether the change required the command.
    private func command(_ command: TaskCommand, if change: (inout State) -> Bool) -> Bool {
        var woken: (any LoadingService)?
        let isRequired = state.withLock { state in
            guard change(&state) else { return false }
            // Sent under the lock, so that the engine receives suspensions and resumptions in the order of the changes.
            if let service = state.service, service.command(command, for: Int(number)) { woken = service }
            return true
        }
        woken?.wake()
        return isRequired
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
