// SPDX-License-Identifier: Apache-2.0

import LoadingModel

/// The state machine of a transfer, from its order until its program has been told of its end.
///
/// The state machine decides what to do next; the desk does it and reports the result. The program is told of an end only after
/// the end is durable, nothing is removed before the program was told, and there is at most one attempt at a time. An event that
/// does not apply to a state has no effect.
struct TransferMachine: Hashable, Sendable {
    /// Why a transfer is given up.
    enum GiveUpReason: String, Codable, Hashable, Sendable, CaseIterable {
        case cancelled, expired
        /// The user force-quit the program.
        case quit
    }

    /// Why a running attempt is stopped.
    enum Halt: Hashable, Sendable {
        /// The attempt is to be resumed later.
        case stopped
        case givenUp(GiveUpReason)
    }

    enum State: Hashable, Sendable {
        /// The transfer's order is being made durable; the transfer may be given up before the order is durable.
        case ordered(isOver: Bool)
        /// Waits for its turn, for its start time, for the network, or for disk space; the scheduler knows which.
        case waiting
        /// An attempt's order and files are being read.
        case preparing(Halt?, isSpoiled: Bool)
        /// The program is asked whether the attempt may start.
        case asking
        /// The attempt is running; if it is spoiled, the disk may have lost some of the file.
        case running(Halt?, isSpoiled: Bool)
        /// The transfer's complete file is being synced. If the sync fails, the transfer is given up for the associated reason, or
        /// retried if there is no reason.
        case closing(GiveUpReason?, isSpoiled: Bool)
        /// The transfer's partial file is being kept for another task.
        case keeping(isSpoiled: Bool)
        /// The transfer's end is being made durable.
        case ending
        /// The program has to be told of the transfer's end.
        case ended
        case told
    }

    enum Event: Hashable, Sendable {
        /// The order has been made durable, or cannot be made durable.
        case accepted, rejected
        /// An earlier daemon's order cannot be read.
        case unreadable
        /// The scheduler starts or stops the transfer.
        case start, stop
        case giveUp(GiveUpReason, wantsData: Bool)
        /// The attempt is prepared, and may have to ask the program first.
        case prepared(asks: Bool)
        /// The program allows the attempt to start.
        case allowed
        /// The attempt is over.
        case finished(Verdict)
        /// The disk lost some of the file, or another file was started.
        case spoiled, restarted
        /// The complete file is synced, or could not be synced.
        case closed(isWhole: Bool)
        case dataKept
        case endKept
        /// The program is connected, possibly again.
        case awaited
        /// The file was changed before the program got it.
        case fileLost
        /// The program knows the transfer's end.
        case told
    }

    enum Action: Hashable, Sendable {
        /// Notifies the scheduler.
        case add, remove, stopped
        /// Notifies the scheduler of a failed attempt; a refusal is counted.
        case retry(TransferScheduler.Failure, isRefusal: Bool)
        case prepare, ask, begin, halt
        /// Stores that the transfer was given up.
        case note(GiveUpReason)
        case discardFile, forgetPartial
        /// Asks the server to discard what it has of an upload that was cancelled.
        case discardUpload
        /// No part of the file can be used, and the attempt has failed for this reason.
        case spoil
        case closeFile, keepData
        /// The resume data that were kept cannot be used.
        case dropData
        /// Replaces the attempt's outcome with the error for giving up.
        case giveUp(GiveUpReason)
        /// The transfer has ended, with or without a file.
        case end(hasFile: Bool)
        case keepEnd
        /// Tells the program of the end, or launches the program to tell it.
        case deliver
        case forgetEnd
        /// Removes the transfer and then confirms the removal to the program, or confirms it at once.
        case retire, confirmForgotten
    }

    /// How many times a file is downloaded again because it was changed before its program got it.
    private static let repeatLimit = 3

    private(set) var state: State
    private var repeats = 0
    /// Whether the program has allowed the transfer to start.
    private var isAllowed = false
    /// Whether the caller that gave up the transfer wants resume data.
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

    /// Whether the running attempt is being stopped because the transfer was cancelled, and no resume data are wanted.
    var isBeingDiscarded: Bool {
        guard case .running(.givenUp(let why)?, _) = state else { return false }
        return why == .cancelled && !wantsData
    }

    /// Whether the transfer's files are being processed, while the transfer is neither running nor over.
    var isClosing: Bool {
        switch state {
        case .closing, .keeping: true
        default: false
        }
    }

    /// Returns the actions for an event; an action that may make the scheduler start the transfer at once comes last.
    mutating func handle(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.ordered(let isOver), .accepted): return move(to: isOver ? .ending : .waiting, isOver ? .keepEnd : .add)
        case (.ordered, .rejected): return move(to: .told)
        case (.ordered(isOver: false), .giveUp(let why, _)):
            return move(to: .ordered(isOver: true), .giveUp(why), .end(hasFile: false))

        case (.waiting, .unreadable): return move(to: .ending, .forgetPartial, .end(hasFile: false), .keepEnd)
        case (.waiting, .start): return move(to: .preparing(nil, isSpoiled: false), .prepare)
        // The scheduler does not know yet that the transfer is over.
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
        case (.running(let halt, _), .restarted): return move(to: .running(halt, isSpoiled: false))

        case (.closing(_, isSpoiled: false), .closed(isWhole: true)): return move(to: .ending, .end(hasFile: true), .keepEnd)
        // The file is not synced again: a system reports a write error only once, so the next sync might succeed.
        case (.closing(let known, _), .closed): return [.spoil] + (known.map { giveUp($0) } ?? conclude(.again(.noSpace)))
        case (.keeping(let isSpoiled), .dataKept):
            return (isSpoiled ? [.dropData] : []) + move(to: .ending, .end(hasFile: false), .keepEnd)

        case (.ending, .endKept): return move(to: .ended, .deliver)
        case (.ended, .awaited): return [.deliver]
        case (.ended, .fileLost):
            guard repeats < Self.repeatLimit else { return [] }
            repeats += 1
            return move(to: .waiting, .forgetEnd, .add)
        case (.ordered(isOver: true), .told), (.ending, .told), (.ended, .told): return move(to: .told, .retire)
        case (_, .told): return [.confirmForgotten]

        default: return late(event)
        }
    }

    /// Returns the actions for an event that was sent before the transfer got into its state: none.
    private func late(_ event: Event) -> [Action] {
        switch event {
        // An order is made durable, or an earlier daemon's order found unreadable, only once.
        case .accepted, .rejected, .unreadable: []
        // The transfer has been started, or is not known to the scheduler yet.
        case .start: []
        // No attempt is left to stop, the transfer is already over, or the attempt has been settled.
        case .stop, .giveUp, .prepared, .allowed, .finished: []
        // Before it is accepted and after its end, a transfer has no file that could be spoiled; only a running attempt begins another.
        case .spoiled, .restarted: []
        // The file, the resume data or the end were kept for an attempt or an end that has been given up.
        case .closed, .dataKept, .endKept: []
        // There is no end to tell yet, or the program knows it.
        case .awaited, .fileLost: []
        // Each state handles it.
        case .told: []
        }
    }

    private mutating func move(to next: State, _ actions: Action...) -> [Action] {
        state = next
        return actions
    }

    private mutating func note(_ why: GiveUpReason, _ wants: Bool) -> Action {
        wantsData = wantsData || wants
        return .note(why)
    }

    /// Returns the actions after the end of an attempt, which may have been stopped.
    private mutating func settle(_ halt: Halt?, isSpoiled: Bool = false, _ verdict: Verdict) -> [Action] {
        let verdict = isSpoiled ? .again(.noSpace) : verdict
        let before: [Action] = isSpoiled ? [.spoil] : []
        switch halt {
        case .stopped? where !verdict.isResponse: return before + move(to: .waiting, .stopped)
        case .givenUp(let why)? where !(verdict.isResponse && wantsData && why == .cancelled):
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

    /// Ends the transfer without an attempt.
    private mutating func giveUp(_ why: GiveUpReason) -> [Action] {
        guard !wantsData, why != .quit else { return move(to: .keeping(isSpoiled: false), .giveUp(why), .remove, .keepData) }
        return (why == .cancelled ? [.discardUpload] : [])
            + move(to: .ending, .giveUp(why), .forgetPartial, .end(hasFile: false), .keepEnd)
    }
}

extension TransferMachine {
    /// The result of an attempt.
    enum Verdict: Hashable, Sendable {
        /// A complete file, or a response without a file.
        case whole, answered
        /// The attempt failed, and may have left data from which another task can resume.
        case failed(leavesData: Bool)
        /// The attempt has to be retried; a refusal is a response that asks the client to retry later, or an invalid response.
        case again(TransferScheduler.Failure, isRefusal: Bool = false)

        static let unstarted = failed(leavesData: false)

        /// Creates the verdict on a response; `status` is nil for a response without a status.
        init(status: Int?, hasFile: Bool, refusals: Int) {
            self = Self.asksForRetry(status, refusals) ? .again(.server, isRefusal: true) : hasFile ? .whole : .answered
        }

        init(_ error: LoadError.Kind, leavesData: Bool, refusals: Int) {
            switch error {
            case .timedOut, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .connectionLost, .notConnectedToInternet,
                .cannotLoadFromNetwork, .backgroundSessionDisconnected:
                self = .again(.network)
            case .cannotWriteToFile, .cannotCreateFile, .cannotCloseFile: self = .again(.noSpace)
            case .resourceUnavailable: self = .again(.other)
            // These may also be the result of a connection that breaks during a handshake or a response head.
            case .badServerResponse, .cannotParseResponse, .secureConnectionFailed:
                self = refusals < Self.refusalLimit ? .again(.network, isRefusal: true) : .failed(leavesData: leavesData)
            default: self = .failed(leavesData: leavesData)
            }
        }

        /// The number of refusals after which the next refusal is delivered to the program.
        static let refusalLimit = 8

        /// Whether the response asks the client to retry later, and the limit of refusals is not reached.
        static func asksForRetry(_ status: Int?, _ refusals: Int) -> Bool {
            refusals < refusalLimit && [408, 425, 429, 502, 503, 504].contains(status)
        }

        /// Whether the server has sent a complete response, whatever its status.
        var isResponse: Bool {
            switch self {
            case .whole, .answered, .again(.server, _): true
            case .failed, .again: false
            }
        }
    }
}
