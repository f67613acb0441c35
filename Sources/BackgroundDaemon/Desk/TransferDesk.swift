// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import DequeModule
import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// The core of the daemon: it manages all sessions and transfers, uses the store, the scheduler and the engines, and reports
/// results to programs.
///
/// The desk is confined to one event loop, which never blocks on a disk: only the store and the work threads do, and they call
/// back.
package actor TransferDesk {
    /// The maximum number of tasks, for one session and in total.
    static let sessionLimit = 50_000
    static let totalLimit = 200_000

    /// The number of seconds after which due events are checked again: the machine may have slept, or its clock may have been set.
    private static let longestSleep = 900.0
    /// Seconds after which a failed save is retried.
    private static let savePause = 5.0
    /// Changes of the clock up to this many seconds are ignored.
    private static let clockTolerance = 30.0

    nonisolated let executor: DeskExecutor
    nonisolated let store: TransferStore
    nonisolated let journal: Journal
    nonisolated let spool: Spool
    nonisolated let options: DaemonOptions
    /// Threads for the daemon's own files, and for syncing them, which may take long.
    nonisolated let ownFiles = WorkThread("bg-files")
    nonisolated let syncs = WorkThread("bg-syncs")
    /// Threads for the files of programs, which may be on a disk that does not respond: each program waits only for its own files.
    private var programFiles: [String: WorkThread] = [:]
    nonisolated let started = Date.timeIntervalSinceReferenceDate

    private(set) var sessions: [SessionName: Session] = [:]
    private(set) var sessionsByID: [Int64: Session] = [:]
    private(set) var transfers: [Int64: Transfer] = [:]
    private(set) var scheduler: TransferScheduler
    /// The events that are still to be processed.
    private var events: Deque<TransferScheduler.Event> = []
    private var isScheduling = false
    var conditions = TransferScheduler.Conditions()
    private var timer: Scheduled<Void>?
    private var lastNumber: Int64 = 0
    private var lastSession: Int64 = 0
    private(set) var isClosing = false
    /// Why a new daemon has to take this one's place; nil if none has to.
    private(set) var reasonToBeginAnew: String?
    /// Whether a signal has told the daemon to end: it then does not begin anew.
    var mustEnd = false
    /// Whether the list of transfers cannot be used any more.
    private(set) var isListDamaged = false
    private(set) var storageTrouble: String?
    /// The difference between the clock and the time since boot.
    private var clockOffset = Date.timeIntervalSinceReferenceDate - cls_boot_seconds()
    let clients = Clients()
    let launches = Launches()
    let questions = Questions()
    let removals = Removals()
    let space = SpaceWatch()
    let quits = Quits()
    let reports = Reports()
    /// Called when the daemon is to end, with the reason unless it is that no program needs it.
    var onEnd: (@Sendable (String?) -> Void)?
    /// The timer that ends an idle daemon, and the one that returns its memory, which remains set after it has fired.
    var idleTimer: Scheduled<Void>?
    var restTimer: Scheduled<Void>?
    var isWatchingPower = false
    var terms = TransferTerms()
    /// Why the terms are not those that were stored.
    var termsTrouble: String?
    var hoursTimer: Scheduled<Void>?
    /// Limits the total rate of all transfers.
    nonisolated let rateLimiter = SharedRateLimiter()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(store: TransferStore, spool: Spool, journal: Journal, options: DaemonOptions, loop: any EventLoop) {
        executor = DeskExecutor(loop)
        self.store = store
        self.spool = spool
        self.journal = journal
        self.options = options
        scheduler = TransferScheduler(limits: options.limits)
    }

    // MARK: Entering the loop

    /// Runs work on the loop, in a later turn.
    nonisolated func enter(_ work: @escaping @Sendable (isolated TransferDesk) -> Void) {
        executor.loop.execute { self.assumeIsolated { work($0) } }
    }

    nonisolated func enter(after seconds: Double, _ work: @escaping @Sendable (isolated TransferDesk) -> Void) {
        if seconds > 0 { _ = timer(after: seconds, work) } else { enter(work) }
    }

    /// Runs work after a time; the returned timer can be canceled.
    nonisolated func timer(
        after seconds: Double, _ work: @escaping @Sendable (isolated TransferDesk) -> Void
    ) -> Scheduled<Void> {
        executor.loop.scheduleTask(in: .nanoseconds(Int64(max(0, min(seconds, 1e9)) * 1e9))) {
            self.assumeIsolated { work($0) }
        }
    }

    /// Runs work for a transfer, if it still exists.
    nonisolated func enter(
        _ number: Int64, after seconds: Double = 0, _ work: @escaping @Sendable (isolated TransferDesk, Transfer) -> Void
    ) {
        enter(after: seconds) { desk in if let transfer = desk.transfers[number] { work(desk, transfer) } }
    }

    nonisolated var now: Double { Date.timeIntervalSinceReferenceDate }

    // MARK: Sessions and transfers

    var nextNumber: Int64 { lastNumber.addingSaturating(1) }
    var nextSession: Int64 { lastSession.addingSaturating(1) }

    /// Marks all numbers up to these as used.
    func reserve(_ number: Int64, session: Int64 = 0) {
        lastNumber = max(lastNumber, number)
        lastSession = max(lastSession, session)
    }

    func register(_ session: Session) {
        sessions[session.name] = session
        sessionsByID[session.id] = session
        reserve(0, session: session.id)
    }

    func unregister(_ session: Session) {
        sessions[session.name] = nil
        sessionsByID[session.id] = nil
    }

    func register(_ transfer: Transfer) {
        transfers[transfer.number] = transfer
        transfer.session.transfers[transfer.task] = transfer
        transfer.session.record.lastTask = max(transfer.session.record.lastTask, transfer.task)
        reserve(transfer.number)
    }

    func unregister(_ transfer: Transfer) {
        transfers[transfer.number] = nil
        transfer.session.transfers[transfer.task] = nil
    }

    /// Stops accepting messages, and ends the daemon so that it begins anew; with another list of transfers if the list is damaged.
    func beginAnew(because reason: String, isListDamaged: Bool = false) {
        guard reasonToBeginAnew == nil else { return }
        self.isListDamaged = isListDamaged
        reasonToBeginAnew = isListDamaged ? TransferFile.setAsideMessage(reason, options.stateDirectory) : reason
        close()
        onEnd?("it begins anew. \(reason)")
    }

    /// Looks again for everything that waits for a date or for an hour of the day.
    func clockWasSet() {
        schedule(.tick)
        watchHours()
    }

    /// Prevents further transfers from starting.
    func close() {
        isClosing = true
        timer?.cancel()
    }

    // MARK: Decisions

    /// Passes an event to a transfer's state machine, and performs its actions.
    func handle(_ event: TransferMachine.Event, _ transfer: Transfer) {
        for action in transfer.handle(event) { perform(action, transfer) }
        noteChange(of: transfer)
    }

    private func perform(_ action: TransferMachine.Action, _ transfer: Transfer) {
        switch action {
        case .add: add(transfer)
        case .remove: schedule(.removed(transfer.number))
        case .stopped:
            transfer.outcome = nil
            schedule(.stopped(transfer.number))
        case .retry(let failure, let isRefusal): retry(transfer, failure, isRefusal)
        case .prepare: prepare(transfer)
        case .ask: askBeforeBegin(transfer)
        case .begin: begin(transfer)
        case .halt: halt(transfer)
        case .note(let why): note(why, of: transfer)
        case .discardFile: discardFile(of: transfer)
        case .forgetPartial: forgetPartial(of: transfer)
        case .discardUpload: discardUpload(of: transfer)
        case .spoil: spoil(transfer)
        case .closeFile: closeFile(of: transfer)
        case .keepData: keepData(of: transfer)
        case .dropData: dropData(of: transfer)
        case .giveUp(let why): transfer.outcome = TaskOutcome(failing: why.error)
        case .end(let hasFile): end(transfer, hasFile)
        case .keepEnd: keepEnd(transfer)
        case .deliver: if transfer.session.isListening { deliver(transfer) } else { launches.consider(transfer.session, self) }
        case .forgetEnd: forgetEnd(of: transfer)
        case .retire: removals.retire(transfer, self)
        case .confirmForgotten: transfer.session.client?.send(.forgotten(transfer.task))
        }
    }

    /// Passes an event to the scheduler, and performs its actions.
    ///
    /// Events that result from actions are queued until all actions are performed, because the order of the actions matters.
    func schedule(_ event: TransferScheduler.Event) {
        events.append(event)
        guard !isScheduling else { return }
        isScheduling = true
        defer { isScheduling = false }
        noteClock()
        while let event = events.popFirst() { perform(scheduler.handle(event, now: now)) }
        updateRestTimer()
    }

    /// Adjusts times after the clock was set, so that a timeout neither ends at once nor starts over.
    private func noteClock() {
        let offset = now - cls_boot_seconds()
        let moved = offset - clockOffset
        clockOffset = offset
        guard abs(moved) > Self.clockTolerance else { return }
        journal.log(.notice, "the clock was set by \(Int(moved)) s")
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
            // No more transfers start. The scheduler is not notified, because it would start the transfer again.
            case .start where isClosing: break
            case .start(let number): decide(.start, number)
            case .stop(let number, _): decide(.stop, number)
            case .expire(let number): decide(.giveUp(.expired, wantsData: false), number)
            case .wake(let at):
                timer?.cancel()
                timer = at.map { timer(after: max(0, min($0 - now, Self.longestSleep)) + 0.001) { $0.schedule(.tick) } }
            }
        }
    }

    private func decide(_ event: TransferMachine.Event, _ number: Int64) {
        guard let transfer = transfers[number] else { return schedule(.removed(number)) }
        handle(event, transfer)
    }

    func add(_ transfer: Transfer) {
        let record = transfer.record
        if record.isDiscretionary { watchPower() }
        if hoursTimer == nil, !terms.hours.isEmpty { watchHours() }
        var item = TransferScheduler.Item(
            id: transfer.number, program: programNumber(transfer.session.program), session: transfer.session.id,
            host: record.host, origin: record.origin, hostLimit: record.hostLimit, priority: record.priority,
            deadline: record.deadline)
        item.isDiscretionary = record.isDiscretionary
        item.isUpload = record.isUpload
        item.isLocal = record.isLocal
        item.earliestBegin = record.earliestBegin
        item.isHeld = record.isHeld
        item.attempts = record.attempts
        item.notBefore = record.notBefore
        schedule(.added(item))
    }

    /// The numbers of the transfers, and the negated IDs of the sessions, whose last save failed and is retried soon.
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

    // MARK: Storing

    /// Stores changes without waiting for the result; only for changes that can be recovered if they are lost.
    func keep(_ changes: [TransferStore.Change]) {
        store.apply(changes) { result in
            self.enter { $0.noteStorage(result) }
        }
    }

    /// Stores changes, with retries, and calls `then` when they are durable; for example for transfers' ends, which must not be
    /// lost.
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
            if storageTrouble != failure.reason { journal.log(.error, failure.reason) }
            storageTrouble = failure.reason
        }
    }

    func save(_ transfer: Transfer) { save(transfer.number) }
    func save(_ session: Session) { save(-session.id) }

    /// Stores the state of a transfer or, if the number is negative, of a session.
    private func save(_ number: Int64) {
        let transfer = transfers[number].map { TransferStore.Change.setState(number, $0.record.encoded) }
        // After a failed save, a retry is already planned, which stores the latest state.
        guard !unsaved.contains(number), let change = transfer ?? sessionsByID[-number].map({ .saveSession($0.row) }) else {
            return
        }
        store.apply([change]) { result in
            self.enter { desk in
                desk.noteStorage(result)
                switch result {
                case .success, .failure(.missing), .failure(.closed): return
                case .failure: guard desk.unsaved.insert(number).inserted else { return }
                }
                desk.enter(after: Self.savePause) { desk in
                    desk.unsaved.remove(number)
                    desk.save(number)
                }
            }
        }
    }
}
