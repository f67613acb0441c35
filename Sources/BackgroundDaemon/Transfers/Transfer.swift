// SPDX-License-Identifier: Apache-2.0

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

    /// The number that the user sees in lists.
    let number: Int64
    let session: Session
    let task: TaskID
    var record: TransferRecord
    private(set) var machine: TransferMachine
    /// The attempt that is running or being prepared.
    var attempt: Attempt?
    var counts = TransferCounts()
    /// The number of bytes that the last attempt started with.
    var startCount: Int64 = 0
    var isWaitingForNetwork = false
    var hasReportedWaiting = false
    var lastTrouble = ""
    var question: Question? {
        didSet { session.askingCount += (question == nil ? 0 : 1) - (oldValue == nil ? 0 : 1) }
    }
    /// The outcome of the transfer's attempt, until the outcome is processed or durable.
    var outcome: TaskOutcome?
    /// The durable outcome, while its message is made.
    var encodedOutcome: EncodedOutcome?
    /// The order while it is in memory: when it arrives and, with the program's replacement for its request, until that is durable.
    var order: BackgroundOrder?
    /// The state that the next attempt of an upload resumes from.
    ///
    /// The store may not contain this state yet. Nil if the upload starts over, or if the state has not been read yet.
    var uploadPoint: UploadResumeData?
    /// Whether the server does not have the upload that the program's resume data describe.
    var uploadRestarts = false
    /// Whether the last attempt increased the number of bytes that the server has.
    var hasUploadMoved = false
    /// The version of the transfer's complete file; nil until that file is synced.
    var finishedFile: TransferRecord.FileVersion?

    init(number: Int64, session: Session, task: TaskID, record: TransferRecord, machine: TransferMachine) {
        self.number = number
        self.session = session
        self.task = task
        self.record = record
        self.machine = machine
        session.count(nil, machine)
    }

    var isOver: Bool { machine.isOver }
    var movedBytes: Int64 { counts.sent.addingSaturating(counts.received) }

    func handle(_ event: TransferMachine.Event) -> [TransferMachine.Action] {
        let before = machine
        let actions = machine.handle(event)
        session.count(before, machine)
        if before.hasAttempt, !machine.hasAttempt {
            attempt = nil
            question = nil
            isWaitingForNetwork = false
        }
        return actions
    }
}

/// One attempt of a transfer.
final class Attempt {
    let load: RunningLoad
    /// Nil until the attempt is prepared.
    var preparation: Preparation?
    /// Whether the attempt's partial file is being synced.
    var isSyncing = false
    /// The engine that runs the attempt.
    private var service: (any LoadingService)?

    init(_ load: RunningLoad) { self.load = load }

    var isOrdered: Bool { service != nil }

    func begin(_ order: TaskOrder, with service: any LoadingService) {
        self.service = service
        load.begin(order, with: service)
    }

    func halt(with command: TaskCommand, _ number: Int) {
        if let service, service.command(command, for: number) { service.wake() }
    }
}
