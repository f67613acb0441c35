// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel
import Synchronization
import SystemThreads

/// Receives what happens in the attempts of transfers; called on any thread.
protocol AttemptOwner: AnyObject, Sendable {
    func take(_ event: RunningLoad.Event, of load: RunningLoad)
}

/// Receives the events of one attempt on its engine's loop, and passes them to the attempt's owner.
///
/// Progress is merged: the owner is notified at most ten times a second, however fast the transfer is. If all transfers share a rate
/// limit, the load is suspended until the rate covers the bytes that the load has moved.
final class RunningLoad: LoadClient {
    enum Event: Sendable {
        /// Bytes were moved: their counts can be taken a moment later, with those of further bytes.
        case moved
        /// An event, and the counts of the bytes that were moved before.
        case event(TaskEvent, after: TransferCounts?)
        case challenge(TaskQuestion, @Sendable (TaskAnswer) -> Void)
        /// The rate limit has suspended the load for this many seconds.
        case paused(Double)
    }

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
    static let reportedPause = 2.0

    let number: Int64
    private let owner: any AttemptOwner
    private let rateLimiter: SharedRateLimiter
    private let state = Mutex(State())

    init(_ number: Int64, _ owner: any AttemptOwner, _ rateLimiter: SharedRateLimiter) {
        self.number = number
        self.owner = owner
        self.rateLimiter = rateLimiter
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
            owner.take(.event(event, after: nil), of: self)
        case .data: break
        default: owner.take(.event(event, after: takeCounts()), of: self)
        }
    }

    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .challenge: owner.take(.challenge(question, reply), of: self)
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
        if mustSchedule { owner.take(.moved, of: self) }
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
        if isFirst { owner.take(.paused(pause), of: self) }
    }

    /// Resumes the load if its pause is over.
    ///
    /// - Returns: The rest of the pause in seconds.
    func endPause() -> Double {
        var rest = 0.0
        _ = command(.resume) { state in
            guard let end = state.pausedUntil else { return false }
            rest = end - Monitor.clock
            if rest <= 0 { state.pausedUntil = nil }
            return rest <= 0
        }
        return rest
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

    /// The counts, if they have changed since they were last taken.
    func takeCounts() -> TransferCounts? {
        state.withLock { state in
            state.isScheduled = false
            guard state.isNew else { return nil }
            state.isNew = false
            return state.counts
        }
    }
}
