// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The state of an open WebSocket connection: the closing handshake, which pong answers which ping (RFC 6455, sections 5.5 and 7),
/// and whether the peer is alive.
///
/// The machine does not handle messages; it only decides whether messages may be sent and are received. An event that has no
/// meaning in a state returns `[]`. For the app, the connection ends with one ``Action/closed(code:reason:)`` or
/// ``Action/broken(_:)``, which may precede the end of the transport.
package struct WebSocketMachine: Sendable {
    package enum State: Hashable, Sendable, CaseIterable {
        case open
        /// Our close frame was sent, and the peer's close frame is pending. Until the peer's frame arrives, messages are received:
        /// "an endpoint that has sent a Close frame" may still be sent whole messages (section 5.5.1).
        case closing
        /// Both close frames were sent; once ours is written, the server is to close the transport (section 7.1.1).
        case answered
        /// The connection failed: the transport is closed as soon as our close frame is written, and nothing more is received
        /// (section 7.1.7).
        case failed
        /// The connection is over: the transport has closed, is being dropped, or is left to the server.
        case closed
    }

    package enum Event: Hashable, Sendable {
        /// The app closes the connection. A code that may not be sent is omitted, and so is a reason without a code.
        case appCloses(WebSocketClose)
        /// The app checks whether the peer is alive; a ping is sent only in ``State/open``.
        case appPings
        /// The interval of our own pings has passed again. While the app does not receive messages, no bytes are read.
        case pingIsDue(appReceives: Bool, isSuspended: Bool)
        case received(Frame)
        /// The transport wrote the last pong.
        case pongWritten
        /// The transport wrote everything that was to be sent.
        case allWritten
        /// The received data violates the protocol, or is too large.
        case failed(WebSocketFailure)
        /// The connection is abandoned without a closing handshake: the task is cancelled.
        case abandoned
        /// The peer has ended the transport.
        case transportEnded
        /// The close timer fired.
        case closeTimeout
    }

    /// The reason why a connection ended without a closing handshake.
    package enum Fault: Hashable, Sendable {
        case failure(WebSocketFailure)
        /// The peer did not answer our ping within the interval.
        case silence
        /// The transport ended, or was given up.
        case loss
    }

    /// A control frame.
    package enum Frame: Hashable, Sendable {
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketClose)
    }

    package enum Action: Hashable, Sendable {
        /// Sends a close frame; no data frame is sent after it.
        case sendClose(WebSocketClose)
        /// Sends a pong; report ``Event/pongWritten`` when the transport has written the pongs that were sent together.
        case sendPong([UInt8])
        /// Sends a ping with this payload.
        case sendPing([UInt8])
        /// This many of the app's oldest unanswered pings are answered.
        case answerPings(Int)
        /// Starts the close timer, which fires after ``closePatience``.
        case startCloseTimer
        case stopCloseTimer
        /// Leaves the transport to the server, which has ``closePatience`` to close it.
        case leaveTransport
        /// Closes the transport at once, dropping unwritten data, if the peer has not closed it.
        case dropTransport
        /// Both sides sent a close frame (section 7.1.4): unanswered pings fail, and nothing more is received.
        ///
        /// The code is the peer's; 1005 stands for a close frame without a code (section 7.1.5).
        case closed(code: UInt16, reason: String?)
        /// The connection ends without the peer's close frame: unanswered pings fail, and nothing more is received.
        case broken(Fault)
    }

    /// The maximum time from our close frame, or from our answer to the peer's close frame, to the end of the transport, in
    /// nanoseconds.
    package static let closePatience: Int64 = 5_000_000_000

    /// The maximum number of pongs that wait while others are being written.
    ///
    /// Beyond it the oldest are dropped: "the endpoint MAY elect to send a Pong frame for only the most recently processed Ping frame"
    /// (section 5.5.3). A peer that does not read our pongs therefore occupies memory for twice as many at most.
    package static let maximumWaitingPongs = 32

    package private(set) var state = State.open
    private var isWritingPongs = false
    private var waitingPongs: [[UInt8]] = []
    private var sentPings: UInt64 = 0
    private var answeredPings: UInt64 = 0
    /// The number of our own ping, until it is answered.
    private var ownPing: UInt64?
    /// Whether the peer's bytes were not read for a time after the last ping was due.
    private var wasHeldBack = false
    /// Whether data have arrived or a part of a message has been sent since the last ping was due.
    private var wasActive = false

    package init() {}

    /// Whether messages may be sent.
    package var maySendMessages: Bool { state == .open }

    /// Whether received data is processed.
    package var isReceiving: Bool { state == .open || state == .closing }

    /// Whether the connection ends once everything is written: then report ``Event/allWritten``.
    package var endsWhenWritten: Bool { state == .answered || state == .failed }

    // Not events, because every message calls the first, and neither has an action.
    /// Notes that data have arrived, or that a part of a message has been sent.
    package mutating func noteTraffic() { wasActive = true }
    /// Notes that the peer's bytes are not read, because the app does not receive messages.
    package mutating func noteHoldingBack() { wasHeldBack = true }

    package mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.open, .appCloses(let close)): return move(to: .closing, .sendClose(Self.sendable(close)), .startCloseTimer)
        case (.open, .appPings): return [ping()]
        case (.open, .pingIsDue(let appReceives, let isSuspended)): return checkPeer(!appReceives || isSuspended, isSuspended)

        // "Unless it already received a Close frame" (section 5.5.2): whether we sent a close frame does not matter.
        case (.open, .received(.ping(let payload))), (.closing, .received(.ping(let payload))): return answer(payload)
        case (.open, .pongWritten), (.closing, .pongWritten): return nextPongs()
        case (.open, .received(.pong(let payload))), (.closing, .received(.pong(let payload))): return take(payload)

        // "When sending a Close frame in response, the endpoint typically echos the status code it received" (section 5.5.1).
        case (.open, .received(.close(let close))):
            let answer = Self.sendable(WebSocketClose(code: close.code))
            return move(to: .answered, .sendClose(answer), .startCloseTimer, Self.closed(close))
        case (.closing, .received(.close(let close))): return move(to: .answered, Self.closed(close))

        case (.open, .failed(let failure)):
            let close = Self.sendable(WebSocketClose(code: failure.code, reason: failure.message))
            return move(to: .failed, .sendClose(close), .startCloseTimer, .broken(.failure(failure)))
        case (.closing, .failed(let failure)): return move(to: .failed, .broken(.failure(failure)))

        case (.open, .abandoned), (.open, .transportEnded): return move(to: .closed, .dropTransport, .broken(.loss))
        case (.closing, .abandoned), (.closing, .transportEnded):
            return move(to: .closed, .stopCloseTimer, .dropTransport, .broken(.loss))
        case (.answered, .abandoned), (.failed, .abandoned), (.failed, .transportEnded), (.failed, .allWritten):
            return move(to: .closed, .stopCloseTimer, .dropTransport)
        case (.answered, .transportEnded), (.answered, .allWritten): return move(to: .closed, .stopCloseTimer, .leaveTransport)

        case (.closing, .closeTimeout): return move(to: .closed, .dropTransport, .broken(.loss))
        case (.answered, .closeTimeout), (.failed, .closeTimeout): return move(to: .closed, .dropTransport)

        // The connection is already closing.
        case (.closing, .appCloses), (.answered, .appCloses), (.failed, .appCloses): return []
        case (.closing, .appPings), (.answered, .appPings), (.failed, .appPings): return []
        case (.closing, .pingIsDue), (.answered, .pingIsDue), (.failed, .pingIsDue): return []
        // Nothing more is received.
        case (.answered, .received), (.failed, .received), (.answered, .failed), (.failed, .failed): return []
        case (.answered, .pongWritten), (.failed, .pongWritten), (.open, .allWritten), (.closing, .allWritten): return []
        // A timer that was already due when it was stopped still fires.
        case (.open, .closeTimeout), (.closed, _): return []
        }
    }

    private mutating func move(to next: State, _ actions: Action...) -> [Action] {
        state = next
        return actions
    }

    // MARK: Closing

    private static func closed(_ close: WebSocketClose) -> Action {
        .closed(code: close.code ?? 1005, reason: close.code == nil ? nil : close.reason)
    }

    /// The code and reason, unless they may not be sent.
    private static func sendable(_ close: WebSocketClose) -> WebSocketClose {
        guard let code = close.code, WebSocketClose.isAllowed(code) else { return WebSocketClose() }
        return close
    }

    // MARK: Pings

    private mutating func ping() -> Action {
        sentPings += 1
        return .sendPing((0..<8).map { UInt8(truncatingIfNeeded: sentPings >> (56 - 8 * $0)) })
    }

    /// Sends a ping, or judges the peer by the last one.
    ///
    /// A missing pong is a failure only if neither the app nor a message could have delayed it. The pong may be behind data that the
    /// app does not receive, or the ping may be queued behind a message that is still being sent.
    private mutating func checkPeer(_ isHeldBack: Bool, _ isSuspended: Bool) -> [Action] {
        let isJudged = !wasHeldBack && !wasActive && !isHeldBack
        (wasHeldBack, wasActive) = (isHeldBack, false)
        if ownPing != nil { return isJudged ? move(to: .closed, .dropTransport, .broken(.silence)) : [] }
        guard !isSuspended else { return [] }
        defer { ownPing = sentPings }
        return [ping()]
    }

    private mutating func answer(_ payload: [UInt8]) -> [Action] {
        guard isWritingPongs else {
            isWritingPongs = true
            return [.sendPong(payload)]
        }
        if waitingPongs.count == Self.maximumWaitingPongs { waitingPongs.removeFirst() }
        waitingPongs.append(payload)
        return []
    }

    private mutating func nextPongs() -> [Action] {
        isWritingPongs = !waitingPongs.isEmpty
        defer { waitingPongs = [] }
        return waitingPongs.map { .sendPong($0) }
    }

    /// A pong answers the ping with the same payload and all earlier ones (section 5.5.3).
    ///
    /// A pong that matches no ping is unsolicited and ignored.
    private mutating func take(_ payload: [UInt8]) -> [Action] {
        guard payload.count == 8 else { return [] }
        let number = payload.reduce(0) { $0 << 8 | UInt64($1) }
        guard number > answeredPings, number <= sentPings else { return [] }
        var count = Int(clamping: number - answeredPings)
        answeredPings = number
        if let own = ownPing, own <= number {
            ownPing = nil
            count -= 1
        }
        return count > 0 ? [.answerPings(count)] : []
    }
}
