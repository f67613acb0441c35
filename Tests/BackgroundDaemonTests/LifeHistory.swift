// SPDX-License-Identifier: Apache-2.0

import SeededNumbers

@testable import BackgroundDaemon

/// Sends likely and arbitrary events to one `TransferMachine` after another, and records violations of the rules.
///
/// The rules refer only to events and actions, not to the state of the machine.
struct LifeHistory {
    typealias State = TransferMachine.State
    typealias Event = TransferMachine.Event

    /// What the simulated shell of one machine has done.
    private struct Shell {
        var isAccepted = false
        /// Whether the scheduler knows the transfer, and whether it has given the transfer a place.
        var isAdded = false
        var isStarted = false
        /// Whether there is an attempt, and whether the engine has its order.
        var hasAttempt = false
        var isOrdered = false
        /// Whether the disk lost part of the file.
        var isSpoiled = false
        /// Whether the files of the transfer are being processed.
        var isClosing = false
        /// Whether the end of the transfer is known, is being written to disk, and is durable.
        var hasEnded = false
        var isKeeping = false
        var isDurable = false
        /// Whether the file was handed to the program, the program was told of the end, and the transfer was removed.
        var hasFile = false
        var wasTold = false
        var hasDeparted = false
    }

    private static let events = TransferMachineTests.events
    /// The events that come next if nothing fails, and events that may come in between.
    private static func likely(_ state: State) -> [Event] {
        switch state {
        case .ordered: [.accepted]
        case .waiting: [.start]
        case .preparing: [.prepared(asks: false), .prepared(asks: true), .spoiled, .stop, .giveUp(.expired, wantsData: false)]
        case .asking: [.allowed]
        case .running:
            [
                .finished(.whole), .spoiled, .stop, .restarted, .giveUp(.cancelled, wantsData: false),
                .giveUp(.quit, wantsData: true),
            ]
        case .closing: [.closed(isWhole: true), .spoiled, .giveUp(.expired, wantsData: false), .giveUp(.quit, wantsData: false)]
        case .keeping: [.dataKept, .spoiled]
        case .ending: [.endKept]
        case .ended: [.awaited, .fileLost, .told]
        case .told: [.start, .told]
        }
    }
    private static let likelyIndices: [[Int]] = TransferMachineTests.states.map {
        likely($0).compactMap { events.firstIndex(of: $0) }
    }

    private(set) var count = 0
    private(set) var lives = 0
    private(set) var fault: String?
    private(set) var log: [String] = []
    private var seen = [Bool](repeating: false, count: TransferMachineTests.states.count * events.count)
    private var random: SeededNumbers
    private var shell = Shell()

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    /// Whether an event came in a state.
    func hasSeen(_ state: State, _ event: Event) -> Bool {
        guard let state = TransferMachineTests.states.firstIndex(of: state), let event = Self.events.firstIndex(of: event) else {
            return false
        }
        return seen[state * Self.events.count + event]
    }

    /// Runs one transfer, from its order until it is forgotten.
    mutating func runLife() {
        lives += 1
        shell = Shell()
        log = []
        var life = TransferMachine()
        // After the end, late events must change nothing.
        var late = 3
        for _ in 0..<10_000 where late > 0 && fault == nil {
            let state = Self.index(of: life.state)
            let likely = Self.likelyIndices[state]
            let number =
                random.next(below: 3) > 0 ? likely[random.next(below: likely.count)] : random.next(below: Self.events.count)
            let event = Self.events[number]
            count += 1
            seen[state * Self.events.count + number] = true
            record(event, life.state)
            let actions = life.handle(event)
            for action in actions { perform(action, event) }
            compare(at: life)
            if life.state == .told { late -= 1 }
            if fault != nil { log.append("\(event) → \(life.state): \(actions)") }
        }
        if late > 0, fault == nil { fault = "the life does not end" }
    }

    private mutating func require(_ isTrue: Bool, _ rule: @autoclosure () -> String) {
        if !isTrue, fault == nil { fault = rule() }
    }

    /// Updates the shell for an event that it sends.
    private mutating func record(_ event: Event, _ state: State) {
        switch (event, state) {
        case (.accepted, _): shell.isAccepted = true
        case (.start, _) where shell.isAdded: shell.isStarted = true
        case (.finished, _) where shell.isOrdered: (shell.hasAttempt, shell.isOrdered) = (false, false)
        case (.spoiled, .preparing), (.spoiled, .asking), (.spoiled, .running), (.spoiled, .closing), (.spoiled, .keeping):
            shell.isSpoiled = true
        case (.restarted, .running): shell.isSpoiled = false
        case (.closed, .closing), (.dataKept, .keeping): shell.isClosing = false
        case (.endKept, .ending): (shell.isKeeping, shell.isDurable) = (false, true)
        case (.rejected, .ordered): shell.hasDeparted = true
        case (.told, _) where shell.hasEnded: shell.wasTold = true
        default: break
        }
    }

    private mutating func perform(_ action: TransferMachine.Action, _ event: Event) {
        require(!shell.hasDeparted || action == .remove || action == .confirmForgotten, "\(action) after the life was removed")
        switch action {
        case .add:
            require(shell.isAccepted && !shell.isAdded && !shell.hasEnded, "a life is added twice, or after its end")
            shell.isAdded = true
        case .remove: if shell.isClosing || shell.hasEnded { shell.isAdded = false }
        case .stopped, .retry:
            require(shell.isAdded, "the scheduler does not know the life")
            require(!shell.isOrdered && !shell.isClosing && !shell.hasEnded, "a retry while something is running")
            (shell.isStarted, shell.hasAttempt) = (false, false)
        case .prepare:
            require(shell.isStarted && !shell.hasAttempt && !shell.isClosing && !shell.hasEnded, "a second attempt")
            shell.hasAttempt = true
        case .ask: require(shell.hasAttempt && !shell.isOrdered, "a question after the attempt has begun")
        case .begin:
            require(shell.hasAttempt && !shell.isOrdered, "an attempt begins twice, or before it was prepared")
            shell.isOrdered = true
        case .halt: require(shell.isOrdered, "a halt of an attempt that is not running")
        case .note: require(shell.isAccepted && !shell.hasEnded, "a note without a row")
        case .discardFile, .forgetPartial, .spoil:
            require(!shell.hasFile, "a file of the program is removed")
            if action != .discardFile { shell.isSpoiled = false }
        case .closeFile, .keepData:
            require(!shell.isOrdered && !shell.isClosing && !shell.hasEnded, "files are processed twice, or while they change")
            require(!shell.isSpoiled, "a damaged file is kept")
            shell.isClosing = true
            shell.hasAttempt = false
        case .dropData: shell.isSpoiled = false
        case .discardUpload: require(!shell.hasEnded && !shell.isOrdered, "the upload of a running attempt is discarded")
        case .giveUp: require(!shell.hasEnded && !shell.isOrdered, "an ended life is given up")
        case .end(let hasFile):
            require(!shell.hasEnded && !shell.isOrdered && !shell.isClosing, "a second end, or an end while something is running")
            require(!shell.isSpoiled, "a damaged file, or resume data that names one, is handed over")
            (shell.hasEnded, shell.hasFile, shell.hasAttempt) = (true, hasFile, false)
            (shell.isAdded, shell.isStarted) = (false, false)
        case .keepEnd:
            require(shell.isAccepted && shell.hasEnded && !shell.isKeeping && !shell.isDurable, "not an end, or stored twice")
            shell.isKeeping = true
        case .deliver: require(shell.isDurable, "an end is told before it is durable")
        case .forgetEnd:
            require(shell.isDurable && event == .fileLost, "an end is forgotten without a lost file")
            (shell.hasEnded, shell.isDurable, shell.hasFile) = (false, false, false)
        case .retire:
            require(shell.wasTold, "a life is removed before its end was told")
            shell.hasDeparted = true
        case .confirmForgotten: require(!shell.hasEnded || shell.hasDeparted, "an end is reported as forgotten and is not")
        }
    }

    private mutating func compare(at life: TransferMachine) {
        if !life.hasAttempt, !shell.isOrdered { shell.hasAttempt = false }
        require(life.hasAttempt == shell.hasAttempt, "the life and the shell disagree about an attempt")
        require(life.isClosing == shell.isClosing, "the life and the shell disagree about files being processed")
        require(life.isOver == shell.hasEnded || life.state == .told, "the life and the shell disagree about the end")
    }

    /// The position of a state in the list of all states.
    private static func index(of state: State) -> Int {
        let isSpoiled: Bool
        let place: Int
        switch state {
        case .ordered(let isOver): return isOver ? 1 : 0
        case .waiting: return 2
        case .asking: return 3
        case .ending: return 4
        case .ended: return 5
        case .told: return 6
        case .keeping(let isSpoiled): return isSpoiled ? 8 : 7
        case .preparing(let halt, let lost): (place, isSpoiled) = (2 * index(of: halt), lost)
        case .running(let halt, let lost): (place, isSpoiled) = (2 * index(of: halt) + 1, lost)
        case .closing(let known, let lost): (place, isSpoiled) = (10 + index(of: known), lost)
        }
        return 9 + place + (isSpoiled ? 14 : 0)
    }

    private static func index(of halt: TransferMachine.Halt?) -> Int {
        switch halt {
        case nil: 0
        case .stopped?: 1
        case .givenUp(let why)?: 1 + index(of: why)
        }
    }

    private static func index(of why: TransferMachine.GiveUpReason?) -> Int {
        switch why {
        case nil: 0
        case .cancelled?: 1
        case .expired?: 2
        case .quit?: 3
        }
    }
}
