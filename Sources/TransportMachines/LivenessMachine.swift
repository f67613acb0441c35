// SPDX-License-Identifier: Apache-2.0

/// Tracks whether a server is still alive: when it last sent something, and when to send it a PING (RFC 9113, section 6.7).
///
/// If the server does not answer in time, the connection is closed. It stays open while content that precedes the PING is still
/// being sent, because this takes time on a slow link. Instants and durations are nanoseconds on any monotonic clock.
package struct LivenessMachine: Sendable {
    package enum Event: Hashable, Sendable {
        case requestBegan
        /// A request that began at this instant timed out.
        case requestTimedOut(began: Int64)
        /// What was sent is not acknowledged; the server may be gone.
        case isUnanswered
        /// A message, which anybody could have sent, says that the server receives nothing.
        case wasRefused
        /// The timer of a PING fired.
        case timerFired(UInt64)
        case ended
    }

    package enum Action: Hashable, Sendable {
        /// Sends a PING; the number identifies it.
        case ask(UInt64)
        case startTimer(UInt64, after: Int64)
        case stopTimer
        /// Stops new requests from starting on this connection, or allows them again.
        case bar(Bool)
        /// Moves queued requests to another connection.
        case doubt
        case giveUp
    }

    /// How long silence is borne, in nanoseconds.
    package struct Patience: Hashable, Sendable {
        /// If the server has been silent for longer than this, a new request is accompanied by a PING.
        var silence: Int64
        /// If the server has been silent for longer than this although it should have acknowledged something, it is sent a PING.
        var unanswered: Int64 = 250_000_000
        /// If the PING is unanswered for longer than this, new requests use another connection.
        var doubt: Int64 = 1_000_000_000
        /// The time within which the server must answer the PING.
        var reply: Int64

        /// For a connection over TCP, whose end the kernel reports if the server was restarted.
        package static let stream = Patience(silence: 10_000_000_000, reply: 5_000_000_000)
        /// For a connection over UDP, of whose end nothing is heard; datagrams that get lost are sent several times within the time.
        package static let datagrams = Patience(
            silence: 1_000_000_000, doubt: 750_000_000, reply: 2_500_000_000)
    }

    private let patience: Patience

    private struct PendingPing {
        var asked: Int64
        var isDoubtful = false
    }

    private let began: Int64
    /// When the server last sent something.
    package private(set) var lastRead: Int64
    /// When the socket last accepted content.
    private var lastSent: Int64 = 0
    private var pendingPing: PendingPing?
    private var pingCount: UInt64 = 0
    /// Whether new requests must use another connection until the server sends something.
    package private(set) var isBarred = false
    /// How long the server took to acknowledge SETTINGS.
    private var measuredRoundTrip: Int64?

    package init(now: Int64, patience: Patience = .stream) {
        self.patience = patience
        began = now
        lastRead = now
    }

    /// An upper bound of the round-trip time, given the duration of the handshake.
    package func roundTrip(handshake: Int64) -> Int64 { measuredRoundTrip ?? max(lastRead - began, handshake) }

    package mutating func settingsWereAcknowledged(now: Int64) { measuredRoundTrip = measuredRoundTrip ?? now - began }

    package mutating func sentContent(now: Int64) { lastSent = now }

    /// Any frame proves that the server is alive, even if it is busy with other streams.
    package mutating func read(now: Int64) -> [Action] {
        lastRead = now
        guard pendingPing != nil else { return [] }
        pendingPing = nil
        return [.stopTimer] + bar(false)
    }

    package mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .requestBegan: return now - lastRead > patience.silence ? ask(now) : []
        case .requestTimedOut(let began):
            // If nothing has arrived since the request began, the connection may be dead.
            guard lastRead <= began else { return [] }
            return bar(true) + ask(now)
        case .isUnanswered: return now - lastRead > patience.unanswered ? ask(now) : []
        case .wasRefused: return bar(true) + ask(now)
        case .timerFired(let number):
            // A timer that was already due when it was stopped still fires.
            guard number == pingCount, let pendingPing else { return [] }
            let isAnswerable = lastSent > pendingPing.asked
            guard pendingPing.isDoubtful else {
                self.pendingPing?.isDoubtful = true
                let timer = Action.startTimer(number, after: patience.reply - patience.doubt)
                return isAnswerable ? [timer] : bar(true) + [.doubt, timer]
            }
            self.pendingPing = nil
            return isAnswerable ? ask(now) : [.giveUp]
        case .ended:
            defer { pendingPing = nil }
            return pendingPing == nil ? [] : [.stopTimer]
        }
    }

    private mutating func bar(_ isBarred: Bool) -> [Action] {
        defer { self.isBarred = isBarred }
        return self.isBarred == isBarred ? [] : [.bar(isBarred)]
    }

    private mutating func ask(_ now: Int64) -> [Action] {
        guard pendingPing == nil else { return [] }
        pendingPing = PendingPing(asked: now)
        pingCount += 1
        return [.ask(pingCount), .startTimer(pingCount, after: patience.doubt)]
    }
}
