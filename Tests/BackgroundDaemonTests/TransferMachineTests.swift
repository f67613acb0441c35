// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import SeededNumbers
import Testing

@testable import BackgroundDaemon

/// The actions of a transfer's state machine for each event in each state.
struct TransferMachineTests {
    typealias State = TransferMachine.State
    typealias Event = TransferMachine.Event
    typealias Action = TransferMachine.Action

    /// One row: in a state, an event leads to another state and to actions.
    struct Row: Hashable, Sendable {
        var state: State
        var event: Event
        var next: State
        var actions: [Action]

        init(_ state: State, _ event: Event, _ next: State, _ actions: Action...) {
            (self.state, self.event, self.next, self.actions) = (state, event, next, actions)
        }
    }

    private static let unstarted = State.preparing(nil, isSpoiled: false)
    private static let running = State.running(nil, isSpoiled: false)
    private static let closing = State.closing(nil, isSpoiled: false)
    private static let keeping = State.keeping(isSpoiled: false)
    private static let keepings = [false, true].map { State.keeping(isSpoiled: $0) }

    /// All transitions.
    ///
    /// Events that are not listed cause no actions, except a late `start` or `told`; see ``expectation(_:_:)``.
    static let table: [Row] =
        [
            Row(.ordered(isOver: false), .accepted, .waiting, .add),
            Row(.ordered(isOver: true), .accepted, .ending, .keepEnd),
            Row(.ordered(isOver: false), .rejected, .told),
            Row(.ordered(isOver: true), .rejected, .told),
            Row(.ordered(isOver: true), .told, .told, .retire),
            Row(.waiting, .unreadable, .ending, .forgetPartial, .end(hasFile: false), .keepEnd),
            Row(.waiting, .start, unstarted, .prepare),
            Row(.waiting, .stop, .waiting, .stopped),
            Row(.waiting, .spoiled, .waiting, .forgetPartial),
            Row(unstarted, .prepared(asks: false), running, .begin),
            Row(unstarted, .prepared(asks: true), .asking, .ask),
            Row(.asking, .allowed, running, .begin),
            Row(.asking, .stop, .waiting, .stopped),
            Row(.asking, .spoiled, .waiting, .spoil, .discardFile, .retry(.noSpace, isRefusal: false)),
            Row(keeping, .dataKept, .ending, .end(hasFile: false), .keepEnd),
            Row(keeping, .spoiled, .keeping(isSpoiled: true)),
            Row(.keeping(isSpoiled: true), .spoiled, .keeping(isSpoiled: true)),
            Row(.keeping(isSpoiled: true), .dataKept, .ending, .dropData, .end(hasFile: false), .keepEnd),
            Row(.ending, .endKept, .ended, .deliver),
            Row(.ending, .told, .told, .retire),
            Row(.ended, .awaited, .ended, .deliver),
            Row(.ended, .fileLost, .waiting, .forgetEnd, .add),
            Row(.ended, .told, .told, .retire),
        ] + givenUp + halted + ends + closes

    /// The reasons to give a transfer up, each with and without a request for its resume data.
    private static let ways = TransferMachine.GiveUpReason.allCases.flatMap { why in
        [false, true].map { (why: why, wants: $0, event: Event.giveUp(why, wantsData: $0)) }
    }

    private static func keepsData(_ why: TransferMachine.GiveUpReason, _ wants: Bool) -> Bool { wants || why == .quit }

    private static func over(_ why: TransferMachine.GiveUpReason, _ wants: Bool) -> (State, [Action]) {
        keepsData(why, wants)
            ? (keeping, [.giveUp(why), .remove, .keepData])
            : (
                .ending,
                (why == .cancelled ? [.discardUpload] : []) + [.giveUp(why), .forgetPartial, .end(hasFile: false), .keepEnd]
            )
    }

    private static func row(_ state: State, _ event: Event, _ next: State, _ actions: [Action]) -> Row {
        var row = Row(state, event, next)
        row.actions = actions
        return row
    }

    private static let givenUp: [Row] = ways.flatMap { why, wants, event in
        let (next, actions) = over(why, wants)
        var rows = [
            Row(.ordered(isOver: false), event, .ordered(isOver: true), .giveUp(why), .end(hasFile: false)),
            row(.waiting, event, next, [.note(why)] + actions),
            row(.asking, event, next, [.note(why), .discardFile] + actions),
            Row(keeping, event, keeping, .note(why)),
            Row(.keeping(isSpoiled: true), event, .keeping(isSpoiled: true), .note(why)),
        ]
        for isSpoiled in [false, true] {
            for halt in halts {
                let ending = TransferMachine.Halt.givenUp(why)
                rows += [
                    Row(.preparing(halt, isSpoiled: isSpoiled), event, .preparing(ending, isSpoiled: isSpoiled), .note(why)),
                    Row(.running(halt, isSpoiled: isSpoiled), event, .running(ending, isSpoiled: isSpoiled), .note(why), .halt),
                ]
            }
            for known in [nil] + TransferMachine.GiveUpReason.allCases {
                // The first reason counts.
                rows.append(
                    Row(.closing(known, isSpoiled: isSpoiled), event, .closing(known ?? why, isSpoiled: isSpoiled), .note(why)))
            }
        }
        return rows
    }

    private static let halts: [TransferMachine.Halt?] =
        [nil, .stopped] + TransferMachine.GiveUpReason.allCases.map { .givenUp($0) }

    private static let halted: [Row] = halts.flatMap { halt in
        [false, true].flatMap { isSpoiled in
            let (preparing, running) = (State.preparing(halt, isSpoiled: isSpoiled), State.running(halt, isSpoiled: isSpoiled))
            return [
                Row(preparing, .stop, .preparing(halt ?? .stopped, isSpoiled: isSpoiled)),
                Row(preparing, .spoiled, .preparing(halt, isSpoiled: true)),
                Row(running, .stop, .running(halt ?? .stopped, isSpoiled: isSpoiled), .halt),
                Row(running, .spoiled, .running(halt, isSpoiled: true), .halt),
                Row(running, .restarted, .running(halt, isSpoiled: false)),
            ]
        }
    }

    static let verdicts: [TransferMachine.Verdict] = [
        .whole, .answered, .failed(leavesData: false), .failed(leavesData: true), .again(.server, isRefusal: true),
        .again(.network), .again(.network, isRefusal: true), .again(.noSpace), .again(.other),
    ]

    /// The next state and the actions after an attempt that was not stopped, written independently of the implementation.
    private static func conclusion(_ verdict: TransferMachine.Verdict) -> (State, [Action]) {
        switch verdict {
        case .whole: (closing, [.closeFile])
        case .answered, .failed(leavesData: false): (.ending, [.forgetPartial, .end(hasFile: false), .keepEnd])
        case .failed(leavesData: true): (keeping, [.remove, .keepData])
        case .again(let failure, let isRefusal): (.waiting, [.discardFile, .retry(failure, isRefusal: isRefusal)])
        }
    }

    private static let answers: Set<TransferMachine.Verdict> = [.whole, .answered, .again(.server, isRefusal: true)]

    private static func settled(
        _ halt: TransferMachine.Halt?, _ isSpoiled: Bool, _ verdict: TransferMachine.Verdict
    ) -> (State, [Action]) {
        let verdict = isSpoiled ? .again(.noSpace) : verdict
        var (next, actions) = conclusion(verdict)
        switch halt {
        case .stopped? where !answers.contains(verdict): (next, actions) = (.waiting, [.stopped])
        case .givenUp(let why)?:
            (next, actions) = over(why, false)
            actions.insert(.discardFile, at: 0)
        case nil, .stopped: break
        }
        return (next, (isSpoiled ? [.spoil] : []) + actions)
    }

    private static let ends: [Row] = halts.flatMap { halt in
        [false, true].flatMap { isSpoiled in
            var rows = verdicts.flatMap { verdict in
                let (next, actions) = settled(halt, isSpoiled, verdict)
                return [
                    row(.preparing(halt, isSpoiled: isSpoiled), .finished(verdict), next, actions),
                    row(.running(halt, isSpoiled: isSpoiled), .finished(verdict), next, actions),
                ]
            }
            guard halt != nil || isSpoiled else { return rows }
            let (next, actions) = settled(halt, isSpoiled, .failed(leavesData: false))
            rows += [false, true].map { row(.preparing(halt, isSpoiled: isSpoiled), .prepared(asks: $0), next, actions) }
            return rows
        }
    }

    private static let closes: [Row] = ([nil] + TransferMachine.GiveUpReason.allCases).flatMap { known in
        [false, true].flatMap { isSpoiled in
            let state = State.closing(known, isSpoiled: isSpoiled)
            var (next, actions) = known.map { over($0, false) } ?? conclusion(.again(.noSpace))
            actions.insert(.spoil, at: 0)
            return [
                isSpoiled
                    ? row(state, .closed(isWhole: true), next, actions)
                    : Row(state, .closed(isWhole: true), .ending, .end(hasFile: true), .keepEnd),
                row(state, .closed(isWhole: false), next, actions),
                Row(state, .spoiled, .closing(known, isSpoiled: true)),
            ]
        }
    }

    // MARK: Every state and event

    static let states: [State] =
        [.ordered(isOver: false), .ordered(isOver: true), .waiting, .asking, .ending, .ended, .told]
        + keepings
        + [false, true].flatMap { isSpoiled in
            halts.flatMap { [.preparing($0, isSpoiled: isSpoiled), .running($0, isSpoiled: isSpoiled)] }
                + ([nil] + TransferMachine.GiveUpReason.allCases).map { .closing($0, isSpoiled: isSpoiled) }
        }

    static let events: [Event] =
        [
            .accepted, .rejected, .unreadable, .start, .stop, .prepared(asks: false), .prepared(asks: true), .allowed, .spoiled,
            .restarted, .closed(isWhole: true), .closed(isWhole: false), .dataKept, .endKept, .awaited, .fileLost, .told,
        ] + ways.map(\.event) + verdicts.map { .finished($0) }

    private struct Cell: Hashable {
        var state: State
        var event: Event
    }

    private static let cells: [Cell: Row] = Dictionary(
        table.map { (Cell(state: $0.state, event: $0.event), $0) }, uniquingKeysWith: { $1 })

    /// The row of the table for an event in a state, or a row without a change of the state.
    private static func expectation(_ state: State, _ event: Event) -> Row {
        if let row = cells[Cell(state: state, event: event)] { return row }
        switch event {
        case .start where TransferMachine(state).isOver || keepings.contains(state): return Row(state, event, state, .remove)
        case .told: return Row(state, event, state, .confirmForgotten)
        default: return Row(state, event, state)
        }
    }

    @Test func `the table has no duplicate rows`() {
        #expect(Set(Self.table).count == Self.table.count && Self.cells.count == Self.table.count)
    }

    @Test func `every event in every state does what the table lists`() {
        for state in Self.states {
            for event in Self.events {
                var life = TransferMachine(state)
                let expected = Self.expectation(state, event)
                #expect(life.handle(event) == expected.actions, "\(state), \(event)")
                #expect(life.state == expected.next, "\(state), \(event)")
            }
        }
    }

    @Test func `a complete response takes precedence over a cancellation that wants resume data`() {
        for verdict in Self.verdicts {
            var life = TransferMachine(.running(nil, isSpoiled: false))
            _ = life.handle(.giveUp(.cancelled, wantsData: true))
            let (next, actions) =
                Self.answers.contains(verdict)
                ? Self.conclusion(verdict) : (Self.keeping, [.discardFile, .giveUp(.cancelled), .remove, .keepData])
            #expect(life.handle(.finished(verdict)) == actions)
            #expect(life.state == next)
        }
        // If the program then gives the transfer up for a different reason, the complete response does not count.
        var life = TransferMachine(.running(nil, isSpoiled: false))
        _ = life.handle(.giveUp(.cancelled, wantsData: true))
        _ = life.handle(.giveUp(.expired, wantsData: false))
        #expect(life.handle(.finished(.whole)) == [.discardFile, .giveUp(.expired), .remove, .keepData])
    }

    @Test func `a program that allowed a transfer to begin is not asked again`() {
        var life = TransferMachine(.waiting)
        for event in [Event.start, .prepared(asks: true), .allowed, .finished(.again(.network)), .start] {
            _ = life.handle(event)
        }
        #expect(life.handle(.prepared(asks: true)) == [.begin])
    }

    @Test func `a file that is lost repeatedly is downloaded again at most three times`() {
        var life = TransferMachine(.ended)
        for _ in 0..<3 {
            #expect(life.handle(.fileLost) == [.forgetEnd, .add])
            for event in [Event.start, .prepared(asks: false), .finished(.whole), .closed(isWhole: true), .endKept] {
                _ = life.handle(event)
            }
        }
        #expect(life.handle(.fileLost) == [] && life.state == .ended)
    }

    @Test func `every state leads to the end`() {
        var ways: [State: Set<State>] = [:]
        for row in Self.table { ways[row.next, default: []].insert(row.state) }
        var found: Set<State> = [.told]
        var edge: [State] = [.told]
        while let state = edge.popLast() {
            for before in ways[state] ?? [] where found.insert(before).inserted { edge.append(before) }
        }
        #expect(found == Set(Self.states))
    }

    // MARK: Histories

    @Test func `in a million events every rule holds, and every row of the table occurs`() {
        var history = LifeHistory(seed: 1)
        while history.count < 1_000_000, history.fault == nil { history.runLife() }
        #expect(history.fault == nil, "\(history.log)")
        let missing = Self.table.filter { !history.hasSeen($0.state, $0.event) }
        #expect(missing == [])
        #expect(history.lives > 10_000)
    }
}
