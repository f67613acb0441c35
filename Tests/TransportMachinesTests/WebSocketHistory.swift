// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import TransportMachines

/// Simulates lives of WebSocket connections with random events, and records violated rules.
///
/// The rules concern only what was received and done, not the machine's internal state.
struct WebSocketHistory {
    enum Kind: Int, CaseIterable {
        case appCloses, appPings, pingIsDue, ping, pong, close, pongWritten, allWritten, failed, abandoned, transportEnded,
            closeTimeout
    }

    struct Entry: CustomStringConvertible {
        var before: WebSocketMachine.State
        var event: WebSocketMachine.Event
        var after: WebSocketMachine.State
        var actions: [WebSocketMachine.Action]

        var description: String { "\(before): \(event) → \(after): \(actions)" }
    }

    /// What the shell of one connection has done.
    private struct Shell {
        var sentClose: WebSocketClose?
        var receivedClose: WebSocketClose?
        var hasFailed = false
        var hasTimer = false
        var hadTimer = false
        /// Whether the transport was dropped, or left to the server.
        var isGone = false
        /// For each ping, whether the app sent it.
        var pings: [Bool] = []
        var answered = 0
        /// The number of the newest ping that a pong acknowledged.
        var acknowledged = 0
        /// Whether a pong may have been delayed since the last ping was due.
        var isDelayed = false
        /// Whether the last event shows that the peer is gone.
        var isSilent = false

        /// The pings without a pong.
        var openPings: ArraySlice<Bool> { pings.dropFirst(acknowledged) }
        /// Whether pongs are being written; `unanswered` has the payloads of the pings without a pong.
        var isWriting = false
        var unanswered: [[UInt8]] = []
        var end: WebSocketMachine.Action?
    }

    private(set) var count = 0
    private(set) var lives = 0
    private(set) var fault: String?
    /// The events of the current life, which is the last one if it has a fault.
    private(set) var log: [Entry] = []
    private var seen = [Bool](repeating: false, count: WebSocketMachine.State.allCases.count * Kind.allCases.count)
    private var random: SeededNumbers
    private var shell = Shell()

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    /// Whether an event of this kind occurred in this state.
    func hasSeen(_ state: WebSocketMachine.State, _ kind: Kind) -> Bool { seen[Self.place(state, kind)] }

    private static func place(_ state: WebSocketMachine.State, _ kind: Kind) -> Int {
        let state =
            switch state {
            case .open: 0
            case .closing: 1
            case .answered: 2
            case .failed: 3
            case .closed: 4
            }
        return state * Kind.allCases.count + kind.rawValue
    }

    /// Simulates one life, and some late events.
    mutating func runLife() {
        lives += 1
        shell = Shell()
        log = []
        var machine = WebSocketMachine()
        // Lives have random lengths.
        let length = 1 + random.next(below: 60)
        for _ in 0..<length where fault == nil { send(pick(), to: &machine) }
        send(.transportEnded, to: &machine)
        for _ in 0..<12 where fault == nil { send(pick(), to: &machine) }
        require(shell.end != nil, "the app is not notified of the end")
        require(!shell.hasTimer, "the timer still runs after the end")
        require(machine.state == .closed, "the connection does not end")
    }

    /// Picks a random kind of event; kinds that end a connection are rare, so that other events precede them.
    private mutating func pick() -> Kind {
        let often: [Kind] = [.appPings, .pingIsDue, .ping, .pong, .pongWritten]
        guard random.next(below: 6) == 0 else { return often[random.next(below: often.count)] }
        let all = Kind.allCases
        return all[random.next(below: all.count)]
    }

    private mutating func event(_ kind: Kind) -> WebSocketMachine.Event {
        let codes: [UInt16?] = [nil, 0, 1000, 1001, 1002, 1005, 1006, 1015, 3000, 4999, 5000]
        let close = WebSocketClose(code: codes[random.next(below: codes.count)], reason: random.next(below: 2) == 0 ? "" : "why")
        switch kind {
        case .appCloses: return .appCloses(close)
        case .appPings: return .appPings
        case .pingIsDue: return .pingIsDue(appReceives: random.next(below: 4) > 0, isSuspended: random.next(below: 4) == 0)
        case .ping: return .received(.ping([UInt8(random.next(below: 256))]))
        case .pong:
            let number = UInt8(truncatingIfNeeded: shell.acknowledged + random.next(below: 4))
            return .received(.pong(random.next(below: 5) == 0 ? [number] : [0, 0, 0, 0, 0, 0, 0, number]))
        case .close:
            let isSendable = close.code.map { WebSocketClose.isAllowed($0) } ?? false
            return .received(.close(isSendable ? close : WebSocketClose()))
        case .pongWritten: return .pongWritten
        case .allWritten: return .allWritten
        case .failed: return .failed(WebSocketFailure(code: close.code ?? 1007, message: "why"))
        case .abandoned: return .abandoned
        case .transportEnded: return .transportEnded
        case .closeTimeout: return .closeTimeout
        }
    }

    private mutating func send(_ kind: Kind, to machine: inout WebSocketMachine) {
        // `pongWritten` occurs only after a sent pong; the timer fires while it runs, or just after it was stopped.
        if kind == .pongWritten, !shell.isWriting, machine.state == .open || machine.state == .closing { return }
        if kind == .closeTimeout, !shell.hasTimer, machine.state == .answered || machine.state == .failed { return }
        let event = event(kind)
        count += 1
        if random.next(below: 8) == 0 {
            shell.isDelayed = true
            if random.next(below: 2) == 0 { machine.noteTraffic() } else { machine.noteHoldingBack() }
        }
        seen[Self.place(machine.state, kind)] = true
        receive(event, before: machine.state)
        let hadEnded = shell.end != nil
        let before = machine.state
        let actions = machine.handle(event)
        log.append(Entry(before: before, event: event, after: machine.state, actions: actions))
        for action in actions { perform(action, event, hadEnded: hadEnded) }
        checkInvariants(at: machine, after: event)
    }

    private mutating func require(_ isTrue: Bool, _ rule: @autoclosure () -> String) {
        if !isTrue, fault == nil { fault = rule() }
    }

    private mutating func receive(_ event: WebSocketMachine.Event, before state: WebSocketMachine.State) {
        let isReceiving = shell.end == nil
        shell.isSilent = false
        switch event {
        case .pingIsDue(let appReceives, let isSuspended) where isReceiving && shell.sentClose == nil:
            let isRead = appReceives && !isSuspended
            shell.isSilent = isRead && !shell.isDelayed && shell.openPings.contains(false)
            shell.isDelayed = !isRead
        case .received(.ping(let payload)) where isReceiving:
            shell.unanswered.append(payload)
            if shell.isWriting, shell.unanswered.count > WebSocketMachine.maximumWaitingPongs { shell.unanswered.removeFirst() }
        case .received(.pong(let payload)) where isReceiving && payload.count == 8:
            if let number = payload.last, number <= shell.pings.count {
                shell.acknowledged = max(shell.acknowledged, Int(number))
            }
        case .received(.close(let close)) where isReceiving: shell.receivedClose = close
        case .failed where isReceiving: shell.hasFailed = true
        case .pongWritten: shell.isWriting = false
        case .closeTimeout: shell.hasTimer = false
        default: break
        }
    }

    private mutating func perform(_ action: WebSocketMachine.Action, _ event: WebSocketMachine.Event, hadEnded: Bool) {
        switch action {
        case .sendClose(let close):
            require(shell.sentClose == nil && !shell.isGone, "a close frame is sent twice, or after the transport closed")
            require(close.code.map { WebSocketClose.isAllowed($0) } ?? close.reason.isEmpty, "a close frame says \(close)")
            if let received = shell.receivedClose { require(close.code == received.code, "the reply has another code") }
            shell.sentClose = close
        case .sendPong(let payload):
            require(!shell.isWriting || event == .pongWritten, "a pong is sent while another is being written")
            require(payload == shell.unanswered.first, "the pong is not for the oldest ping")
            require(shell.receivedClose == nil && !shell.hasFailed && !hadEnded && !shell.isGone, "a pong is sent too late")
            shell.isWriting = true
            if !shell.unanswered.isEmpty { shell.unanswered.removeFirst() }
        case .sendPing(let payload):
            require(
                event == .appPings || !shell.openPings.contains(false), "a ping of our own is sent before the last has its pong")
            if case .pingIsDue(_, let isSuspended) = event { require(!isSuspended, "a suspended task sends a ping") }
            shell.pings.append(event == .appPings)
            require(payload.count == 8 && payload.last == UInt8(clamping: shell.pings.count), "a ping has a wrong number")
            require(shell.sentClose == nil && !hadEnded, "a ping is sent after our close frame")
        case .answerPings(let count):
            shell.answered += count
            require(count > 0 && shell.answered <= shell.pings.count, "pings are answered that were not sent")
            require(!hadEnded, "a ping is answered after the end")
        case .startCloseTimer:
            require(!shell.hadTimer && shell.sentClose != nil, "the timer starts twice, or without a close frame")
            (shell.hasTimer, shell.hadTimer) = (true, true)
        case .stopCloseTimer:
            require(shell.hasTimer, "a timer is stopped that does not run")
            shell.hasTimer = false
        case .leaveTransport:
            require(!shell.isGone && shell.sentClose != nil && shell.receivedClose != nil, "the transport is left too early")
            shell.isGone = true
        case .dropTransport:
            require(!shell.isGone, "a closed transport is dropped")
            require(event != .allWritten || shell.hasFailed, "the transport of a closed connection is dropped")
            shell.isGone = true
        case .closed(let code, let reason):
            require(shell.end == nil, "the app is notified twice")
            shell.end = action
            require(shell.sentClose != nil, "the app is notified before both sides sent a close frame")
            require(shell.receivedClose.map { $0.code ?? 1005 } == code, "the code is \(code)")
            require(reason == (shell.receivedClose?.code == nil ? nil : shell.receivedClose?.reason), "the reason is wrong")
        case .broken(let fault):
            require(shell.end == nil, "the app is notified twice")
            shell.end = action
            require(shell.sentClose == nil || shell.receivedClose == nil, "a connection breaks although both sides closed it")
            switch fault {
            case .failure: require(shell.hasFailed, "a connection fails without a failure")
            case .silence: require(shell.isSilent, "a peer is given up whose pong may be delayed")
            case .loss: require(event == .abandoned || event == .transportEnded || event == .closeTimeout, "\(event) is a loss")
            }
        }
    }

    private mutating func checkInvariants(at machine: WebSocketMachine, after event: WebSocketMachine.Event) {
        require(machine.maySendMessages == (shell.sentClose == nil && shell.end == nil), "whether messages are sent")
        require(machine.isReceiving == (shell.end == nil), "whether messages are received")
        require((machine.state == .closed) == shell.isGone, "whether the transport is there")
        require(shell.answered == shell.pings.prefix(shell.acknowledged).count { $0 }, "how many pings are answered")
        require(!shell.isSilent || shell.isGone, "a silent peer is kept")
        require(!(machine.isReceiving && !shell.unanswered.isEmpty && !shell.isWriting), "a ping waits for its pong")
        require(machine.state == .open || shell.hasTimer || shell.isGone, "a peer has no time limit to close")
        require(machine.endsWhenWritten == (shell.end != nil && !shell.isGone), "whether the connection ends once all is written")
        require(!(event == .allWritten && machine.endsWhenWritten), "a connection stays open although all is written")
    }
}
