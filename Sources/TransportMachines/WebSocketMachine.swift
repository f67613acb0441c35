//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// The state of an open WebSocket connection: the closing handshake, and which pong answers which ping (RFC 6455, sections 5.5 and
/// 7).
///
/// The machine does not handle messages; it only decides whether messages may be sent and are received. An event that has no
/// meaning in a state returns `[]`. For the app, the connection ends with one ``Action/ended(code:reason:isClean:)``, which may
/// precede the end of the transport.
package struct WebSocketMachine: Sendable {
    package enum State: Hashable, Sendable, CaseIterable {
        case open
        /// Our close frame was sent, and the peer's close frame is pending. Until the peer's frame arrives, messages are received:
        /// "an endpoint that has sent a Close frame" may still be sent whole messages (section 5.5.1).
        case closing
        /// Both close frames were sent, and the server is to close the transport (section 7.1.1).
        case answered
        /// The connection failed: the transport is closed as soon as our close frame is written, and nothing more is received
        /// (section 7.1.7).
        case failed
        /// The transport has closed, or is being dropped.
        case closed
    }

    package enum Event: Hashable, Sendable {
        /// The app closes the connection. A code that may not be sent is omitted, and so is a reason without a code.
        case appCloses(WebSocketClose)
        /// The app checks whether the peer is alive; a ping is sent only in ``State/open``.
        case appPings
        case received(Frame)
        /// The transport wrote the last pong.
        case pongWritten
        /// The received data violates the protocol, or is too large.
        case failed(WebSocketFailure)
        /// The connection is abandoned without a closing handshake: the task is cancelled, or the peer does not answer pings.
        case abandoned
        case transportEnded
        /// The close timer fired.
        case closeTimeout
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
        /// This many of our oldest unanswered pings are answered.
        case answerPings(UInt64)
        /// Starts the close timer, which fires after ``closePatience``.
        case startCloseTimer
        case stopCloseTimer
        /// Closes the transport once everything queued is written.
        case closeTransport
        /// Closes the transport at once, dropping unwritten data.
        case dropTransport
        /// The connection is closed for the app: unanswered pings fail, and nothing more is received.
        ///
        /// The code is the peer's; 1005 stands for a close frame without a code, 1006 for no close frame (section 7.1.5). The close
        /// is clean if both sides sent a close frame (section 7.1.4).
        case ended(code: UInt16, reason: String?, isClean: Bool)
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

    package init() {}

    /// Whether messages may be sent.
    package var maySendMessages: Bool { state == .open }

    /// Whether received data is processed.
    package var isReceiving: Bool { state == .open || state == .closing }

    package mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.open, .appCloses(let close)): return move(to: .closing, .sendClose(Self.sendable(close)), .startCloseTimer)
        case (.open, .appPings):
            sentPings += 1
            return [.sendPing(Self.payload(ofPing: sentPings))]

        // "Unless it already received a Close frame" (section 5.5.2): whether we sent a close frame does not matter.
        case (.open, .received(.ping(let payload))), (.closing, .received(.ping(let payload))): return answer(payload)
        case (.open, .pongWritten), (.closing, .pongWritten): return nextPongs()
        case (.open, .received(.pong(let payload))), (.closing, .received(.pong(let payload))): return take(payload)

        // "When sending a Close frame in response, the endpoint typically echos the status code it received" (section 5.5.1).
        case (.open, .received(.close(let close))):
            let answer = Self.sendable(WebSocketClose(code: close.code))
            return move(to: .answered, .sendClose(answer), .startCloseTimer, Self.ended(close))
        case (.closing, .received(.close(let close))): return move(to: .answered, Self.ended(close))

        case (.open, .failed(let failure)):
            let close = Self.sendable(WebSocketClose(code: failure.code, reason: failure.message))
            return move(to: .failed, .sendClose(close), .closeTransport, .startCloseTimer, Self.broken)
        case (.closing, .failed): return move(to: .failed, .closeTransport, Self.broken)

        case (.open, .abandoned): return move(to: .closed, .dropTransport, Self.broken)
        case (.closing, .abandoned): return move(to: .closed, .stopCloseTimer, .dropTransport, Self.broken)
        case (.answered, .abandoned), (.failed, .abandoned): return move(to: .closed, .stopCloseTimer, .dropTransport)

        case (.open, .transportEnded): return move(to: .closed, Self.broken)
        case (.closing, .transportEnded): return move(to: .closed, .stopCloseTimer, Self.broken)
        case (.answered, .transportEnded), (.failed, .transportEnded): return move(to: .closed, .stopCloseTimer)

        case (.closing, .closeTimeout): return move(to: .closed, .dropTransport, Self.broken)
        case (.answered, .closeTimeout), (.failed, .closeTimeout): return move(to: .closed, .dropTransport)

        // The connection is already closing.
        case (.closing, .appCloses), (.answered, .appCloses), (.failed, .appCloses), (.closed, .appCloses): return []
        case (.closing, .appPings), (.answered, .appPings), (.failed, .appPings), (.closed, .appPings): return []
        // Nothing more is received.
        case (.answered, .received), (.failed, .received), (.closed, .received): return []
        case (.answered, .failed), (.failed, .failed), (.closed, .failed): return []
        case (.answered, .pongWritten), (.failed, .pongWritten), (.closed, .pongWritten): return []
        // A timer that was already due when it was stopped still fires.
        case (.open, .closeTimeout), (.closed, .closeTimeout): return []
        case (.closed, .abandoned), (.closed, .transportEnded): return []
        }
    }

    private mutating func move(to next: State, _ actions: Action...) -> [Action] {
        state = next
        return actions
    }

    // MARK: Closing

    private static let broken = Action.ended(code: 1006, reason: nil, isClean: false)

    private static func ended(_ close: WebSocketClose) -> Action {
        .ended(code: close.code ?? 1005, reason: close.code == nil ? nil : close.reason, isClean: true)
    }

    /// The code and reason, unless they may not be sent.
    private static func sendable(_ close: WebSocketClose) -> WebSocketClose {
        guard let code = close.code, WebSocketClose.isAllowed(code) else { return WebSocketClose() }
        return close
    }

    // MARK: Pings

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
        defer { answeredPings = number }
        return [.answerPings(number - answeredPings)]
    }

    private static func payload(ofPing number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
}
