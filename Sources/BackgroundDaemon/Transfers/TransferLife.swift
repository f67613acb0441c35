//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel

/// What a transfer is at, from its order until its program was told how it ended.
///
/// It decides what is done next, and the desk does it, and says what came of that. Nothing is told before the end is durable, nothing is
/// removed before it was told, and there is at most one attempt at a time. An event that says nothing in a state is answered with nothing.
struct TransferLife: Hashable, Sendable {
    /// Why somebody gives a transfer up.
    enum GivenUp: String, Codable, Hashable, Sendable, CaseIterable {
        case cancelled, expired
        /// The user ended the program by force.
        case quit
    }

    /// Why a running attempt is made to end.
    enum Halt: Hashable, Sendable {
        /// To be gone on with later.
        case stopped
        case givenUp(GivenUp)
    }

    enum State: Hashable, Sendable {
        /// Its order is being made durable; somebody may have given it up before that.
        case ordered(isOver: Bool)
        /// For its turn, a time, the network, or room: which of them is the scheduler's to know.
        case waiting
        /// An attempt's order and files are looked at.
        case preparing(Halt?, isSpoiled: Bool)
        /// Its program is asked whether the attempt may begin.
        case asking
        /// Some of the file may have been lost by the disk.
        case running(Halt?, isSpoiled: Bool)
        /// Its whole file is being brought to the disk; it was given up if that comes to nothing.
        case closing(GivenUp?, isSpoiled: Bool)
        /// What there is of its file is being kept for another task.
        case keeping(isSpoiled: Bool)
        /// How it ended is being made durable.
        case ending
        /// Its program is to be told.
        case ended
        case told
    }

    enum Event: Hashable, Sendable {
        /// The order is durable, or will never be.
        case accepted, rejected
        /// An earlier daemon's order cannot be read.
        case unreadable
        /// It has its turn, or has lost it.
        case start, stop
        case giveUp(GivenUp, wantsData: Bool)
        /// The attempt can begin, and may have to wait for what its program says to that.
        case prepared(asks: Bool)
        /// The program lets it begin.
        case allowed
        /// The attempt is over.
        case finished(Verdict)
        /// The disk lost some of the file, or another file was begun.
        case spoiled, beganAnew
        /// The whole file is on the disk, or is not.
        case closed(isWhole: Bool)
        case dataKept
        case endKept
        /// Its program is there, or is there again.
        case awaited
        /// Somebody changed the file before the program had it.
        case fileLost
        /// The program knows how it ended.
        case told
    }

    enum Action: Hashable, Sendable {
        /// The scheduler is told.
        case add, remove, stopped
        /// The same, of an attempt that failed; a refusal is counted.
        case retry(TransferScheduler.Failure, isRefusal: Bool)
        case prepare, ask, begin, halt
        /// That it was given up is kept.
        case note(GivenUp)
        case discardFile, forgetPartial
        /// Nothing of the file is of any use, and the attempt has failed for it.
        case spoil
        case closeFile, keepData
        /// The data that was kept is of no use.
        case dropData
        /// How it ended is no more what the attempt came to.
        case giveUp(GivenUp)
        /// It has ended, with the file or without.
        case end(hasFile: Bool)
        case keepEnd
        /// The program is told, or started to be told.
        case deliver
        case forgetEnd
        /// Nothing of it is kept: that is said when it is done, or at once where nothing is known.
        case depart, sayForgotten
    }

    /// Times that a file is downloaded anew because somebody changed it before its program had it.
    private static let repeatLimit = 3

    private(set) var state: State
    private var repeats = 0
    /// Its program has let it begin.
    private var isAllowed = false
    /// Who gave it up wants what there is of the file.
    private var wantsData = false

    init(_ state: State = .ordered(isOver: false)) { self.state = state }

    var isAccepted: Bool { if case .ordered = state { false } else { true } }

    var isOver: Bool {
        switch state {
        case .ordered(isOver: true), .ending, .ended, .told: true
        default: false
        }
    }

    var hasAttempt: Bool {
        switch state {
        case .preparing, .asking, .running: true
        default: false
        }
    }

    /// It runs no more than it takes to give it up, and nothing is to be kept of it.
    var isBeingForgotten: Bool {
        guard case .running(.givenUp(let why)?, _) = state else { return false }
        return why == .cancelled && !wantsData
    }

    /// Its files are being dealt with, and it is neither running nor over.
    var isClosing: Bool {
        switch state {
        case .closing, .keeping: true
        default: false
        }
    }

    /// An action by which the scheduler may start it at once is the last one.
    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.ordered(let isOver), .accepted): return move(to: isOver ? .ending : .waiting, isOver ? .keepEnd : .add)
        case (.ordered, .rejected): return move(to: .told)
        case (.ordered(isOver: false), .giveUp(let why, _)):
            return move(to: .ordered(isOver: true), .giveUp(why), .end(hasFile: false))

        case (.waiting, .unreadable): return move(to: .ending, .end(hasFile: false), .keepEnd)
        case (.waiting, .start): return move(to: .preparing(nil, isSpoiled: false), .prepare)
        // It is not the scheduler's any more.
        case (_, .start) where isOver: return [.remove]
        case (.keeping, .start): return [.remove]

        case (.waiting, .stop): return [.stopped]
        case (.preparing(let halt, let isSpoiled), .stop): return move(to: .preparing(halt ?? .stopped, isSpoiled: isSpoiled))
        case (.asking, .stop): return settle(.stopped, .unstarted)
        case (.running(let halt, let isSpoiled), .stop): return move(to: .running(halt ?? .stopped, isSpoiled: isSpoiled), .halt)

        case (.waiting, .giveUp(let why, let wants)): return [note(why, wants)] + giveUp(why)
        case (.preparing(_, let isSpoiled), .giveUp(let why, let wants)):
            return move(to: .preparing(.givenUp(why), isSpoiled: isSpoiled), note(why, wants))
        case (.asking, .giveUp(let why, let wants)): return [note(why, wants)] + settle(.givenUp(why), .unstarted)
        case (.running(_, let isSpoiled), .giveUp(let why, let wants)):
            return move(to: .running(.givenUp(why), isSpoiled: isSpoiled), note(why, wants), .halt)
        case (.closing(let known, let isSpoiled), .giveUp(let why, let wants)):
            return move(to: .closing(known ?? why, isSpoiled: isSpoiled), note(why, wants))
        case (.keeping, .giveUp(let why, let wants)): return [note(why, wants)]

        case (.preparing(nil, isSpoiled: false), .prepared(let asks)):
            return asks && !isAllowed ? move(to: .asking, .ask) : move(to: .running(nil, isSpoiled: false), .begin)
        case (.preparing(let halt, let isSpoiled), .prepared): return settle(halt, isSpoiled: isSpoiled, .unstarted)
        case (.asking, .allowed):
            isAllowed = true
            return move(to: .running(nil, isSpoiled: false), .begin)
        case (.preparing(let halt, let isSpoiled), .finished(let verdict)),
            (.running(let halt, let isSpoiled), .finished(let verdict)):
            return settle(halt, isSpoiled: isSpoiled, verdict)

        case (.waiting, .spoiled): return [.forgetPartial]
        case (.preparing(let halt, _), .spoiled): return move(to: .preparing(halt, isSpoiled: true))
        case (.asking, .spoiled): return settle(nil, isSpoiled: true, .unstarted)
        case (.running(let halt, _), .spoiled): return move(to: .running(halt, isSpoiled: true), .halt)
        case (.closing(let known, _), .spoiled): return move(to: .closing(known, isSpoiled: true))
        case (.keeping, .spoiled): return move(to: .keeping(isSpoiled: true))
        case (.running(let halt, _), .beganAnew): return move(to: .running(halt, isSpoiled: false))

        case (.closing(_, isSpoiled: false), .closed(isWhole: true)): return move(to: .ending, .end(hasFile: true), .keepEnd)
        // A system says once that it could not write something: the next time it might say that all is well.
        case (.closing(let known, _), .closed): return [.spoil] + (known.map { giveUp($0) } ?? conclude(.again(.noSpace)))
        case (.keeping(let isSpoiled), .dataKept):
            return (isSpoiled ? [.dropData] : []) + move(to: .ending, .end(hasFile: false), .keepEnd)

        case (.ending, .endKept): return move(to: .ended, .deliver)
        case (.ended, .awaited): return [.deliver]
        case (.ended, .fileLost):
            guard repeats < Self.repeatLimit else { return [] }
            repeats += 1
            return move(to: .waiting, .forgetEnd, .add)
        case (.ordered(isOver: true), .told), (.ending, .told), (.ended, .told): return move(to: .told, .depart)
        case (_, .told): return [.sayForgotten]

        // It comes late.
        default: return []
        }
    }

    private mutating func move(to next: State, _ actions: Action...) -> [Action] {
        state = next
        return actions
    }

    private mutating func note(_ why: GivenUp, _ wants: Bool) -> Action {
        wantsData = wantsData || wants
        return .note(why)
    }

    /// What follows from an attempt that is over, and that may have been made to end.
    private mutating func settle(_ halt: Halt?, isSpoiled: Bool = false, _ verdict: Verdict) -> [Action] {
        let verdict = isSpoiled ? .again(.noSpace) : verdict
        let before: [Action] = isSpoiled ? [.spoil] : []
        switch halt {
        case .stopped? where !verdict.isAnswer: return before + move(to: .waiting, .stopped)
        case .givenUp(let why)? where !(verdict.isAnswer && wantsData && why == .cancelled):
            return before + [.discardFile] + giveUp(why)
        case nil, .stopped, .givenUp: return before + conclude(verdict)
        }
    }

    private mutating func conclude(_ verdict: Verdict) -> [Action] {
        switch verdict {
        case .again(let failure, let isRefusal):
            move(to: .waiting, .discardFile, .retry(failure, isRefusal: isRefusal))
        case .whole: move(to: .closing(nil, isSpoiled: false), .closeFile)
        case .failed(leavesData: true): move(to: .keeping(isSpoiled: false), .remove, .keepData)
        case .answered, .failed: move(to: .ending, .forgetPartial, .end(hasFile: false), .keepEnd)
        }
    }

    /// Ends it without an attempt.
    private mutating func giveUp(_ why: GivenUp) -> [Action] {
        guard !wantsData, why != .quit else { return move(to: .keeping(isSpoiled: false), .giveUp(why), .remove, .keepData) }
        return move(to: .ending, .giveUp(why), .forgetPartial, .end(hasFile: false), .keepEnd)
    }
}

extension TransferLife {
    /// What an attempt came to.
    enum Verdict: Hashable, Sendable {
        /// A whole file; or an answer that has none.
        case whole, answered
        /// It is over, and may have left what another task can begin with.
        case failed(leavesData: Bool)
        /// A refusal is an answer that asks to come again later, or a broken one.
        case again(TransferScheduler.Failure, isRefusal: Bool = false)

        static let unstarted = failed(leavesData: false)

        /// Of a server's answer; nil is one without a status.
        init(status: Int?, hasFile: Bool, refusals: Int) {
            self = Self.asksToComeAgain(status, refusals) ? .again(.server, isRefusal: true) : hasFile ? .whole : .answered
        }

        init(_ error: LoadError.Kind, leavesData: Bool, refusals: Int) {
            switch error {
            case .timedOut, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .connectionLost, .notConnectedToInternet,
                .cannotLoadFromNetwork, .backgroundSessionDisconnected:
                self = .again(.network)
            case .cannotWriteToFile, .cannotCreateFile, .cannotCloseFile: self = .again(.noSpace)
            case .resourceUnavailable: self = .again(.other)
            // A connection that breaks in a handshake or in the middle of a head looks like these, too.
            case .badServerResponse, .cannotParseResponse, .secureConnectionFailed:
                self = refusals < Self.refusalLimit ? .again(.network, isRefusal: true) : .failed(leavesData: leavesData)
            default: self = .failed(leavesData: leavesData)
            }
        }

        /// Refusals before one is the program's to deal with.
        static let refusalLimit = 8

        /// Whether the server may answer otherwise later, and it is not too often that it said so.
        static func asksToComeAgain(_ status: Int?, _ refusals: Int) -> Bool {
            refusals < refusalLimit && [408, 425, 429, 502, 503, 504].contains(status)
        }

        /// The server answered all of it, whatever that was.
        var isAnswer: Bool {
            switch self {
            case .whole, .answered, .again(.server, _): true
            case .failed, .again: false
            }
        }
    }
}
