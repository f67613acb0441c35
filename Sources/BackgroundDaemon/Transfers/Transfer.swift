//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import HTTPRules
import HTTPWire
import LoadingModel

/// One task of a program's session.
///
/// Confined to the desk.
final class Transfer {
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
    private(set) var life: TransferLife
    /// What runs, or is being made ready.
    var attempt: Attempt?
    var counts = TransferCounts()
    /// Bytes that the last attempt began with.
    var startCount: Int64 = 0
    var isWaitingForNetwork = false
    var hasToldThatItWaits = false
    var lastTrouble = ""
    var question: Question? {
        didSet { session.askingCount += (question == nil ? 0 : 1) - (oldValue == nil ? 0 : 1) }
    }
    /// What came of its attempt, until that is dealt with or durable.
    var outcome: TaskOutcome?
    /// With the request that its program put in the place of the first, until that is durable.
    var changedOrder: BackgroundOrder?
    /// What the next attempt of an upload continues with, which the store may not have yet; nil where it begins anew, or has not been looked at.
    var uploadPoint: UploadResumeData?
    /// The server does not have what the program's resume data was about.
    var uploadBeginsAnew = false
    /// The last attempt got the server to have more of the upload.
    var hasUploadMoved = false
    /// Its whole file, when that is on the disk.
    var finishedFile: TransferRecord.FileVersion?

    init(number: Int64, session: Session, task: TaskID, record: TransferRecord, life: TransferLife) {
        self.number = number
        self.session = session
        self.task = task
        self.record = record
        self.life = life
        session.count(nil, life)
    }

    var isOver: Bool { life.isOver }
    var movedBytes: Int64 { counts.sent.addingSaturating(counts.received) }

    func handle(_ event: TransferLife.Event) -> [TransferLife.Action] {
        let before = life
        let actions = life.handle(event)
        session.count(before, life)
        if before.hasAttempt, !life.hasAttempt {
            attempt = nil
            question = nil
            isWaitingForNetwork = false
        }
        return actions
    }
}

/// One try of a transfer.
final class Attempt {
    let load: RunningLoad
    /// Nil until it is known.
    var preparation: Preparation?
    /// Some of its file is being brought to the disk.
    var isSyncing = false
    /// What carries it out.
    private var service: (any LoadingService)?

    init(_ load: RunningLoad) { self.load = load }

    var isOrdered: Bool { service != nil }

    func begin(_ order: TaskOrder, with service: any LoadingService) {
        self.service = service
        if service.submit(order, client: load) { service.wake() }
    }

    func halt(with command: TaskCommand, _ number: Int) {
        if let service, service.command(command, for: number) { service.wake() }
    }
}
