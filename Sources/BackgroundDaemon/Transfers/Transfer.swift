//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import HTTPWire
import LoadingModel

/// One task of a program's session.
///
/// Confined to the desk.
final class Transfer {
    /// Why a running attempt is made to end.
    enum Ending: String, Codable {
        /// To be gone on with later.
        case stopped
        case cancelled
        case expired
        /// The user ended the program by force.
        case quit
    }

    struct Question {
        let number: Int
        let question: TaskQuestion
        let answer: @Sendable (TaskAnswer) -> Void
    }

    /// As people see it.
    let number: Int64
    let session: Session
    let task: TaskID
    var record: TransferRecord
    /// False until its order is durable.
    var isAccepted: Bool
    /// A running attempt, or one that is being made ready.
    var attempt: Attempt? {
        didSet { session.runningCount += (attempt == nil ? 0 : 1) - (oldValue == nil ? 0 : 1) }
    }
    var ending: Ending?
    /// Its files are being dealt with, and it is neither running nor over.
    var isClosing = false
    var counts = TransferCounts()
    /// Bytes that this attempt began with.
    var startCount: Int64 = 0
    var isWaitingForNetwork = false
    /// What came of it is being brought to the disk.
    var isSyncing = false
    /// Some of the file that is being written was lost by the disk.
    var isSpoiled = false
    var lastTrouble = ""
    var question: Question? {
        didSet { session.askingCount += (question == nil ? 0 : 1) - (oldValue == nil ? 0 : 1) }
    }
    /// How it ended, until that is durable.
    var outcome: TaskOutcome?
    var isEndDurable = false {
        didSet { session.endedCount += (isEndDurable ? 1 : 0) - (oldValue ? 1 : 0) }
    }
    /// Given up so that it can be gone on with by resume data.
    var wantsResumeData = false
    /// Bytes that must be free before it is tried again, as it found too few.
    var neededSpace: Int64 = 0
    /// How often its file was not what it had been.
    var repeats = 0
    /// Asked whether it may begin, and allowed to.
    var mayBegin = false

    init(number: Int64, session: Session, task: TaskID, record: TransferRecord, isAccepted: Bool) {
        self.number = number
        self.session = session
        self.task = task
        self.record = record
        self.isAccepted = isAccepted
    }

    var isOver: Bool { record.end != nil }
    var movedBytes: Int64 { counts.sent.addingSaturating(counts.received) }
}

/// One try of a transfer.
final class Attempt {
    let load: RunningLoad
    var isOrdered = false
    /// It goes on from resume data of the program's.
    var resumesForProgram = false
    /// What carries it out.
    var service: (any LoadingService)?
    init(_ load: RunningLoad) { self.load = load }
}
