//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import CLoadingSystem
import DequeModule
import FoundationEssentials
import LoadingModel
import NIOCore
import SystemThreads

/// The daemon's heart: knows every session and transfer, has the store keep them, the scheduler choose, and engines carry them out, and
/// tells programs what became of theirs.
///
/// All of it lives on one event loop. Nothing here waits for a disk: the store and the work threads do, and call back.
package actor TransferDesk {
    /// The most tasks of one session, and of all.
    static let sessionLimit = 50_000
    static let totalLimit = 200_000
    /// The most bytes of unfinished messages of all connections.
    static let pendingLimit = 64 << 20

    /// Seconds after which it is looked anew what is due: the machine may have slept, or its clock been set.
    private static let longestSleep = 900.0
    /// Seconds without anything to do after which memory is given back.
    private static let restTime = 2.0
    /// Seconds that a program has to come back to a daemon that was started anew, before it counts as gone.
    private static let returnPatience = 3.0
    /// Seconds after which what the disk did not take is saved again.
    private static let savePause = 5.0
    /// Seconds by which the clock may be set without more ado.
    private static let clockTolerance = 30.0

    nonisolated let executor: DeskExecutor
    nonisolated let store: TransferStore
    nonisolated let journal: Journal
    nonisolated let spool: Spool
    nonisolated let options: DaemonOptions
    /// For the daemon's own files, and for bringing them to the disk, which may take long.
    nonisolated let ownFiles = WorkThread("bg-files")
    nonisolated let syncs = WorkThread("bg-syncs")
    /// For the files of programs, which may be on a disk that does not answer: each program waits for its own alone.
    private var programFiles: [String: WorkThread] = [:]
    nonisolated let launches = WorkThread("bg-launches")
    nonisolated let started = Date.timeIntervalSinceReferenceDate

    var sessions: [SessionName: Session] = [:]
    var sessionsByID: [Int64: Session] = [:]
    var transfers: [Int64: Transfer] = [:]
    var connections: [ObjectIdentifier: ClientConnection] = [:]
    var pendingBytes = 0
    private(set) var scheduler: TransferScheduler
    /// Those that have not been dealt with.
    private var events: Deque<TransferScheduler.Event> = []
    private var isScheduling = false
    var conditions = TransferScheduler.Conditions()
    var timer: Scheduled<Void>?
    var lastNumber: Int64 = 0
    var lastSession: Int64 = 0
    var lastQuestion = 0
    var isClosing = false
    /// Accepted since the last turn of the loop, to be said together.
    var accepted: [(ClientConnection, TaskID)] = []
    var watchers: [ObjectIdentifier: [Int]] = [:]
    var changed: Set<Int64> = []
    var isReporting = false
    var storageTrouble: String?
    /// What the clock shows beyond the time since the machine started.
    private var clockOffset = Date.timeIntervalSinceReferenceDate - cls_boot_seconds()
    var isWatchingPower = false
    var room = Room()
    /// The processes that end when it is durable that they were quit.
    var undurableQuits: Set<String> = []
    private var isResting = false
    var onIdle: (@Sendable () -> Void)?
    var idleTimer: Scheduled<Void>?

    struct SessionName: Hashable {
        var program: String
        var identifier: String
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(store: TransferStore, spool: Spool, journal: Journal, options: DaemonOptions, loop: any EventLoop) {
        executor = DeskExecutor(loop)
        self.store = store
        self.spool = spool
        self.journal = journal
        self.options = options
        scheduler = TransferScheduler(limits: options.limits)
    }

    // MARK: The way in

    /// Runs on the loop: at once where the caller is there, else soon.
    nonisolated func enter(_ work: @escaping @Sendable (isolated TransferDesk) -> Void) {
        executor.loop.execute { self.assumeIsolated { work($0) } }
    }

    nonisolated func enter(after seconds: Double, _ work: @escaping @Sendable (isolated TransferDesk) -> Void) {
        executor.loop.scheduleTask(in: .nanoseconds(Int64(max(0, min(seconds, 1e9)) * 1e9))) {
            self.assumeIsolated { work($0) }
        }
    }

    nonisolated var now: Double { Date.timeIntervalSinceReferenceDate }

    // MARK: Scheduling

    /// Has the scheduler decide, and does what it says.
    ///
    /// What comes of doing so waits until all of it is done: its actions are in the order in which they hold.
    func schedule(_ event: TransferScheduler.Event) {
        events.append(event)
        guard !isScheduling else { return }
        isScheduling = true
        defer { isScheduling = false }
        noteClock()
        while let event = events.popFirst() { perform(scheduler.handle(event, now: now)) }
    }

    /// Moves what counts from an instant along where the clock was set: neither does a week pass in a moment, nor does it begin anew.
    private func noteClock() {
        let offset = now - cls_boot_seconds()
        let moved = offset - clockOffset
        clockOffset = offset
        guard abs(moved) > Self.clockTolerance else { return }
        journal.say(.notice, "the clock was set by \(Int(moved)) s")
        for transfer in transfers.values where !transfer.isOver {
            transfer.record.deadline += moved
            transfer.record.notBefore = transfer.record.notBefore.map { $0 + moved }
            save(transfer)
        }
        events.insert(.clockMoved(by: moved), at: 0)
    }

    private func perform(_ actions: [TransferScheduler.Action]) {
        for action in actions {
            switch action {
            // Nothing begins any more, and nobody is told so: whoever is would ask again.
            case .start where isClosing: break
            case .start(let number): start(number)
            case .stop(let number, let reason): stop(number, because: reason)
            case .expire(let number): expire(number)
            case .wake(let at):
                timer?.cancel()
                timer = nil
                guard let at else { continue }
                timer = executor.loop.scheduleTask(
                    in: .nanoseconds(Int64(max(0, min(at - now, Self.longestSleep)) * 1e9) + 1_000_000)
                ) {
                    self.assumeIsolated { $0.schedule(.tick) }
                }
            }
        }
    }

    func setConditions(_ change: (inout TransferScheduler.Conditions) -> Void) {
        var next = conditions
        change(&next)
        guard next != conditions else { return }
        conditions = next
        schedule(.conditionsChanged(next, random: .random(in: 0 ... .max)))
        for transfer in transfers.values where !transfer.isOver { noteChange(transfer) }
    }

    func add(_ transfer: Transfer) {
        let record = transfer.record
        if record.isDiscretionary, !isWatchingPower {
            isWatchingPower = true
            watchPower()
        }
        var item = TransferScheduler.Item(
            id: transfer.number, program: programNumber(transfer.session.program), session: transfer.session.id,
            host: record.host,
            hostLimit: record.hostLimit, priority: record.priority, deadline: record.deadline)
        item.isDiscretionary = record.isDiscretionary
        item.isUpload = record.isUpload
        item.isLocal = record.isLocal
        item.earliestBegin = record.earliestBegin
        item.isHeld = record.isHeld
        item.attempts = record.attempts
        item.notBefore = record.notBefore
        schedule(.added(item))
    }

    /// Transfers, and by negative numbers sessions, that the disk did not take, and that are saved again soon.
    private var unsaved: Set<Int64> = []
    private var programNumbers: [String: Int64] = [:]

    private func programNumber(_ program: String) -> Int64 {
        if let number = programNumbers[program] { return number }
        let number = Int64(programNumbers.count + 1)
        programNumbers[program] = number
        return number
    }

    func files(of program: String) -> WorkThread {
        if let known = programFiles[program] { return known }
        let made = WorkThread("bg-uploads")
        programFiles[program] = made
        return made
    }

    // MARK: Keeping

    /// Has the store keep something whose failure nobody waits for; what is lost by it is had again.
    func keep(_ changes: [TransferStore.Change]) {
        store.apply(changes) { result in
            self.enter { $0.noteStorage(result) }
        }
    }

    /// Has the store keep how a transfer or a session is now, and calls back where that fails.
    private func keepState(
        _ changes: [TransferStore.Change], orElse: @escaping @Sendable (isolated TransferDesk) -> Void
    ) {
        store.apply(changes) { result in
            self.enter { desk in
                desk.noteStorage(result)
                switch result {
                case .success, .failure(.missing), .failure(.closed): break
                case .failure: orElse(desk)
                }
            }
        }
    }

    /// Has the store keep something, and goes on when it is durable; tries again until it is, as an end must not be lost.
    func keep(_ changes: [TransferStore.Change], then: @escaping @Sendable (isolated TransferDesk) -> Void) {
        store.apply(changes) { result in
            self.enter { desk in
                desk.noteStorage(result)
                switch result {
                case .success: then(desk)
                case .failure(.missing), .failure(.closed): break
                case .failure: desk.enter(after: 5) { $0.keep(changes, then: then) }
                }
            }
        }
    }

    func noteStorage(_ result: Result<Void, StorageFailure>) {
        switch result {
        case .success: storageTrouble = nil
        case .failure(let failure):
            if storageTrouble != failure.reason { journal.say(.error, failure.reason) }
            storageTrouble = failure.reason
        }
    }

    func save(_ transfer: Transfer) {
        // It is saved as it is when the disk is looked at again.
        guard !unsaved.contains(transfer.number) else { return }
        let number = transfer.number
        keepState([.setState(number, transfer.record.encoded)]) { desk in
            guard desk.unsaved.insert(number).inserted else { return }
            desk.enter(after: Self.savePause) { desk in
                desk.unsaved.remove(number)
                if let transfer = desk.transfers[number] { desk.save(transfer) }
            }
        }
    }

    func save(_ session: Session) {
        guard !unsaved.contains(-session.id) else { return }
        let id = session.id
        keepState([.saveSession(session.row)]) { desk in
            guard desk.unsaved.insert(-id).inserted else { return }
            desk.enter(after: Self.savePause) { desk in
                desk.unsaved.remove(-id)
                if let session = desk.sessionsByID[id] { desk.save(session) }
            }
        }
    }

    // MARK: Beginning and ending

    /// Takes over what an earlier daemon left.
    func restore(_ contents: TransferStore.Contents) {
        // What cannot be read stays as it is, and nothing else is given its number.
        lastSession = contents.damagedSessions.max() ?? 0
        lastNumber = contents.damagedTransfers.max() ?? 0
        for id in contents.damagedSessions { journal.say(.error, "session \(id) is damaged") }
        for id in contents.damagedTransfers { journal.say(.error, "transfer \(id) is damaged") }
        for row in contents.sessions {
            lastSession = max(lastSession, row.id)
            guard let settings = try? MessageCoding.decodeSettings(row.settings) else {
                journal.say(.error, "session \(row.identifier) of \(row.program) cannot be read")
                continue
            }
            let session = Session(
                id: row.id, program: row.program, identifier: row.identifier, folder: spool.folder(of: row.id),
                settings: settings,
                encodedSettings: row.settings, record: SessionRecord.decoded(row.state) ?? SessionRecord(), isSaved: true)
            sessions[SessionName(program: row.program, identifier: row.identifier)] = session
            sessionsByID[row.id] = session
        }
        var files: [Int64: Set<String>] = [:]
        for row in contents.transfers {
            lastNumber = max(lastNumber, row.id)
            guard let session = sessionsByID[row.session], let record = TransferRecord.decoded(row.state) else {
                journal.say(.error, "transfer \(row.id) cannot be read")
                continue
            }
            let transfer = Transfer(number: row.id, session: session, task: row.task, record: record, isAccepted: true)
            transfer.counts.received = record.syncedBytes
            transfer.isEndDurable = transfer.isOver
            transfers[row.id] = transfer
            session.transfers[row.task] = transfer
            session.record.lastTask = max(session.record.lastTask, row.task)
            // What was handed over may be in a program's hands.
            let handed = record.end?.file == nil ? nil : Spool.handedName(row.id)
            files[session.id, default: []].formUnion([record.partial, record.end?.file, handed].compactMap { $0 })
        }
        // A number is not given again while a file of it may be there.
        lastNumber = max(lastNumber, spool.highestNumber)
        let known = files
        let numbers = Set(contents.sessions.map(\.id))
        // Whose files those of a damaged transfer are is not known.
        let unreadable = contents.damagedTransfers.isEmpty ? contents.damagedSessions : contents.sessions.map(\.id)
        let skipped = Set(unreadable + contents.damagedSessions)
        ownFiles.run { [spool] in spool.tidy(sessions: numbers, files: known, unreadable: skipped) }
        for transfer in transfers.values.sorted(by: { $0.number < $1.number }) where !transfer.isOver {
            if let ending = transfer.record.givenUp { endAsGivenUp(transfer, ending) } else { add(transfer) }
        }
        // Programs that run have their sessions again in a moment.
        for session in sessions.values where session.isLaunchDue { planLaunch(of: session, after: Self.returnPatience) }
        considerIdling()
    }

    /// Ends what goes on so that another daemon can go on with it; calls back when everything is on the disk.
    func shutDown(_ done: @escaping @Sendable () -> Void) {
        isClosing = true
        timer?.cancel()
        for connection in connections.values { connection.close() }
        for transfer in transfers.values where transfer.attempt != nil {
            transfer.ending = transfer.ending ?? .stopped
            halt(transfer)
        }
        waitForEnd(2, done)
    }

    private func waitForEnd(_ seconds: Double, _ done: @escaping @Sendable () -> Void) {
        guard seconds > 0, transfers.values.contains(where: { $0.attempt != nil || $0.isClosing }) else {
            ownFiles.run { [store] in
                store.close()
                done()
            }
            return
        }
        enter(after: 0.02) { $0.waitForEnd(seconds - 0.02, done) }
    }

    /// Ends the daemon after a while in which nobody wants anything of it.
    func considerIdling() {
        let isIdle =
            connections.isEmpty && !sessions.values.contains { $0.endedCount < $0.transfers.count || $0.isLaunchDue }
        if isIdle, !isResting {
            isResting = true
            enter(after: Self.restTime) { $0.rest() }
        } else if !isIdle {
            isResting = false
        }
        guard let limit = options.idleLimit, isIdle, !isClosing else {
            idleTimer?.cancel()
            idleTimer = nil
            return
        }
        guard idleTimer == nil else { return }
        idleTimer = executor.loop.scheduleTask(in: .nanoseconds(Int64(limit * 1e9))) {
            self.assumeIsolated { desk in
                desk.idleTimer = nil
                desk.onIdle?()
            }
        }
    }

    /// Gives memory back that an idle daemon has no use for.
    private func rest() {
        guard isResting, connections.isEmpty else { return }
        ownFiles.run { cls_rest() }
    }
}
