// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing
import TransportMachines

@Suite struct WebSocketMachineTests {
    typealias State = WebSocketMachine.State
    typealias Event = WebSocketMachine.Event
    typealias Action = WebSocketMachine.Action

    /// One row: an event in a state leads to another state and to actions.
    struct Row: Hashable, Sendable {
        var state: State
        var event: Event
        var next: State
        var actions: [Action]

        init(_ state: State, _ event: Event, _ next: State, _ actions: Action...) {
            (self.state, self.event, self.next, self.actions) = (state, event, next, actions)
        }
    }

    private static let closeFrame = WebSocketClose(code: 1001, reason: "bye")
    private static let failure = WebSocketFailure.protocolError("it is wrong")
    private static let pingIsDue = Event.pingIsDue(appReceives: true, isSuspended: false)

    /// All transitions; any other event has no effect.
    static let table: [Row] = [
        Row(.open, .appCloses(closeFrame), .closing, .sendClose(closeFrame), .startCloseTimer),
        Row(.open, .appPings, .open, .sendPing([0, 0, 0, 0, 0, 0, 0, 1])),
        Row(.open, pingIsDue, .open, .sendPing([0, 0, 0, 0, 0, 0, 0, 1])),
        Row(.open, .received(.ping([1, 2])), .open, .sendPong([1, 2])),
        Row(
            .open, .received(.close(closeFrame)), .answered, .sendClose(WebSocketClose(code: 1001)), .startCloseTimer,
            .closed(code: 1001, reason: "bye")),
        Row(
            .open, .failed(failure), .failed, .sendClose(WebSocketClose(code: 1002, reason: "it is wrong")), .startCloseTimer,
            .broken(.failure(failure))),
        Row(.open, .abandoned, .closed, .dropTransport, .broken(.loss)),
        Row(.open, .transportEnded, .closed, .dropTransport, .broken(.loss)),
        Row(.closing, .received(.ping([1, 2])), .closing, .sendPong([1, 2])),
        Row(.closing, .received(.close(closeFrame)), .answered, .closed(code: 1001, reason: "bye")),
        Row(.closing, .failed(failure), .failed, .broken(.failure(failure))),
        Row(.closing, .abandoned, .closed, .stopCloseTimer, .dropTransport, .broken(.loss)),
        Row(.closing, .transportEnded, .closed, .stopCloseTimer, .dropTransport, .broken(.loss)),
        Row(.closing, .closeTimeout, .closed, .dropTransport, .broken(.loss)),
        Row(.answered, .allWritten, .closed, .stopCloseTimer, .leaveTransport),
        Row(.answered, .abandoned, .closed, .stopCloseTimer, .dropTransport),
        Row(.answered, .transportEnded, .closed, .stopCloseTimer, .leaveTransport),
        Row(.answered, .closeTimeout, .closed, .dropTransport),
        Row(.failed, .allWritten, .closed, .stopCloseTimer, .dropTransport),
        Row(.failed, .abandoned, .closed, .stopCloseTimer, .dropTransport),
        Row(.failed, .transportEnded, .closed, .stopCloseTimer, .dropTransport),
        Row(.failed, .closeTimeout, .closed, .dropTransport),
    ]

    /// One event of each kind.
    static let events: [Event] = [
        .appCloses(closeFrame), .appPings, pingIsDue, .received(.ping([1, 2])), .received(.pong([0, 0, 0, 0, 0, 0, 0, 1])),
        .received(.close(closeFrame)), .pongWritten, .allWritten, .failed(failure), .abandoned, .transportEnded, .closeTimeout,
    ]

    /// Creates a machine in this state.
    private static func machine(in state: State) -> WebSocketMachine {
        var machine = WebSocketMachine()
        let way: [Event] =
            switch state {
            case .open: []
            case .closing: [.appCloses(closeFrame)]
            case .answered: [.received(.close(closeFrame))]
            case .failed: [.failed(failure)]
            case .closed: [.transportEnded]
            }
        for event in way { _ = machine.handle(event) }
        #expect(machine.state == state)
        return machine
    }

    @Test(arguments: State.allCases) func `each event in each state has the effect in the table`(state: State) {
        for event in Self.events {
            var machine = Self.machine(in: state)
            let row = Self.table.first { $0.state == state && $0.event == event }
            let actions = machine.handle(event)
            #expect(actions == row?.actions ?? [], "\(state), \(event)")
            #expect(machine.state == row?.next ?? state, "\(state), \(event)")
            #expect(machine.maySendMessages == (machine.state == .open))
            #expect(machine.isReceiving == [.open, .closing].contains(machine.state))
            #expect(machine.endsWhenWritten == [.answered, .failed].contains(machine.state))
        }
    }

    // MARK: Codes

    /// The code and reason that the app or a failure closes with, and the close frame that is sent.
    @Test(
        arguments: [
            (WebSocketClose(), WebSocketClose()), (WebSocketClose(code: 1000), WebSocketClose(code: 1000)),
            (WebSocketClose(code: nil, reason: "why"), WebSocketClose()),
            (WebSocketClose(code: 4000, reason: "why"), WebSocketClose(code: 4000, reason: "why")),
            (WebSocketClose(code: 0), WebSocketClose()), (WebSocketClose(code: 1004, reason: "why"), WebSocketClose()),
            (WebSocketClose(code: 1005, reason: "why"), WebSocketClose()), (WebSocketClose(code: 1006), WebSocketClose()),
            (WebSocketClose(code: 1015), WebSocketClose()), (WebSocketClose(code: 5000), WebSocketClose()),
        ])
    func `codes that must not be sent are omitted`(said: WebSocketClose, sent: WebSocketClose) {
        var machine = WebSocketMachine()
        #expect(machine.handle(.appCloses(said)) == [.sendClose(sent), .startCloseTimer])
        var failing = WebSocketMachine()
        let failure = WebSocketFailure(code: said.code ?? 0, message: said.reason)
        #expect(failing.handle(.failed(failure)).first == .sendClose(sent))
    }

    @Test func `a close frame without a code is reported as 1005, and answered without one`() {
        var machine = WebSocketMachine()
        #expect(
            machine.handle(.received(.close(WebSocketClose()))) == [
                .sendClose(WebSocketClose()), .startCloseTimer, .closed(code: 1005, reason: nil),
            ])
        var closing = Self.machine(in: .closing)
        #expect(closing.handle(.received(.close(WebSocketClose()))) == [.closed(code: 1005, reason: nil)])
    }

    @Test func `the peer's code is reported, regardless of ours`() {
        var machine = WebSocketMachine()
        _ = machine.handle(.appCloses(WebSocketClose(code: 4001, reason: "ours")))
        #expect(
            machine.handle(.received(.close(WebSocketClose(code: 4002, reason: "")))) == [
                .closed(code: 4002, reason: "")
            ])
    }

    // MARK: Pings

    private static func pong(_ number: UInt8) -> Event { .received(.pong([0, 0, 0, 0, 0, 0, 0, number])) }

    @Test func `a pong answers its ping and all earlier ones, once`() {
        var machine = WebSocketMachine()
        #expect(machine.handle(Self.pong(1)) == [], "no ping was sent")
        for number in 1...5 as ClosedRange<UInt8> {
            #expect(machine.handle(.appPings) == [.sendPing([0, 0, 0, 0, 0, 0, 0, number])])
        }
        #expect(machine.handle(Self.pong(0)) == [])
        #expect(machine.handle(Self.pong(6)) == [])
        #expect(machine.handle(.received(.pong([]))) == [])
        #expect(machine.handle(.received(.pong([3]))) == [])
        #expect(machine.handle(.received(.pong([0, 0, 0, 0, 0, 0, 0, 0, 3]))) == [])
        #expect(machine.handle(Self.pong(1)) == [.answerPings(1)])
        #expect(machine.handle(Self.pong(1)) == [])
        #expect(machine.handle(Self.pong(4)) == [.answerPings(3)])
        #expect(machine.handle(Self.pong(3)) == [])
        _ = machine.handle(.appCloses(Self.closeFrame))
        #expect(machine.handle(.appPings) == [])
        #expect(machine.handle(Self.pong(5)) == [.answerPings(1)])
        #expect(machine.handle(Self.pong(5)) == [])
    }

    /// What can delay a pong to our own ping, and is therefore no evidence against the peer.
    enum Delay: CaseIterable {
        case traffic, holdingBack, appDoesNotReceive, suspension
    }

    @Test func `a peer that does not answer our ping until the next is due is gone`() {
        var machine = WebSocketMachine()
        #expect(machine.handle(Self.pingIsDue) == [.sendPing([0, 0, 0, 0, 0, 0, 0, 1])])
        #expect(machine.handle(Self.pong(1)) == [], "the app waits for no pong")
        #expect(machine.handle(.appPings) == [.sendPing([0, 0, 0, 0, 0, 0, 0, 2])])
        #expect(machine.handle(Self.pingIsDue) == [.sendPing([0, 0, 0, 0, 0, 0, 0, 3])])
        #expect(machine.handle(.appPings) == [.sendPing([0, 0, 0, 0, 0, 0, 0, 4])])
        var other = machine
        #expect(other.handle(Self.pong(4)) == [.answerPings(2)])
        #expect(other.handle(Self.pingIsDue) == [.sendPing([0, 0, 0, 0, 0, 0, 0, 5])])
        #expect(machine.handle(Self.pong(2)) == [.answerPings(1)])
        #expect(machine.handle(Self.pingIsDue) == [.dropTransport, .broken(.silence)])
        #expect(machine.state == .closed)
    }

    @Test(arguments: Delay.allCases) func `a peer whose pong may be delayed gets another interval`(delay: Delay) {
        var machine = WebSocketMachine()
        #expect(machine.handle(Self.pingIsDue).count == 1)
        switch delay {
        case .traffic: machine.noteTraffic()
        case .holdingBack: machine.noteHoldingBack()
        case .appDoesNotReceive: #expect(machine.handle(.pingIsDue(appReceives: false, isSuspended: false)) == [])
        case .suspension: #expect(machine.handle(.pingIsDue(appReceives: true, isSuspended: true)) == [])
        }
        #expect(machine.handle(Self.pingIsDue) == [])
        #expect(machine.handle(Self.pingIsDue) == [.dropTransport, .broken(.silence)])
    }

    @Test func `while the task is suspended no ping is sent, but while the app only does not receive one is`() {
        var machine = WebSocketMachine()
        #expect(machine.handle(.pingIsDue(appReceives: true, isSuspended: true)) == [])
        #expect(machine.handle(.pingIsDue(appReceives: false, isSuspended: true)) == [])
        #expect(machine.handle(.pingIsDue(appReceives: false, isSuspended: false)).count == 1)
    }

    @Test func `the newest 32 pings are answered if pings arrive faster than pongs are written`() {
        var machine = WebSocketMachine()
        #expect(machine.handle(.received(.ping([1]))) == [.sendPong([1])])
        for number in 2...100 as ClosedRange<UInt8> { #expect(machine.handle(.received(.ping([number]))) == []) }
        #expect(machine.handle(.pongWritten) == (69...100).map { .sendPong([$0]) })
        for number in [101, 102] as [UInt8] { #expect(machine.handle(.received(.ping([number]))) == []) }
        #expect(machine.handle(.pongWritten) == [.sendPong([101]), .sendPong([102])])
        #expect(machine.handle(.pongWritten) == [])
        #expect(machine.handle(.received(.ping([]))) == [.sendPong([])])
    }

    @Test func `a waiting pong is not sent after the peer's close`() {
        var machine = WebSocketMachine()
        for number in 1...2 as ClosedRange<UInt8> { _ = machine.handle(.received(.ping([number]))) }
        _ = machine.handle(.appCloses(Self.closeFrame))
        var other = machine
        #expect(machine.handle(.pongWritten) == [.sendPong([2])])
        _ = other.handle(.received(.close(Self.closeFrame)))
        #expect(other.handle(.pongWritten) == [])
    }

    // MARK: Histories

    @Test func `a million random events keep every rule and cover every transition`() {
        var history = WebSocketHistory(seed: 6455)
        while history.count < 1_000_000, history.fault == nil { history.runLife() }
        #expect(history.fault == nil, "life \(history.lives): \(history.log)")
        #expect(history.lives > 10_000)
        for state in State.allCases {
            for kind in WebSocketHistory.Kind.allCases {
                #expect(history.hasSeen(state, kind), "\(kind) did not occur in \(state)")
            }
        }
    }
}
