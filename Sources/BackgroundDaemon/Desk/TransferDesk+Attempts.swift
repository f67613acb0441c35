// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import SystemThreads

/// Running transfers.
extension TransferDesk: AttemptOwner {
    /// The number of downloaded bytes after which the file is synced, which limits the loss after a power failure.
    private static let syncInterval: Int64 = 64 << 20

    func prepare(_ transfer: Transfer) {
        let (number, record, folder) = (transfer.number, transfer.record, transfer.session.folder)
        transfer.attempt = Attempt(RunningLoad(number, self, rateLimiter))
        let files = files(of: transfer.session.program)
        let (order, uploadPoint) = (transfer.order, transfer.uploadPoint)
        ownFiles.run { [store, spool] in
            let result = Result { () throws(LoadError) in
                try Preparation(number, record, order, uploadPoint, folder, store, spool)
            }
            guard case .success(let preparation) = result, case .file(let path) = preparation.order.task.request.body else {
                return self.enter(number) { $0.prepared($1, result) }
            }
            files.run {
                // The engine compares the file with the ordered version when it opens the file.
                let checked = Spool.version(ofProgramFile: path).map { _ in preparation }
                self.enter(number) { $0.prepared($1, checked) }
            }
        }
    }

    private func prepared(_ transfer: Transfer, _ result: Result<Preparation, LoadError>) {
        guard let attempt = transfer.attempt else { return }
        switch result {
        case .success(let preparation):
            attempt.preparation = preparation
            transfer.uploadPoint = preparation.upload
            let session = transfer.session
            handle(.prepared(asks: transfer.record.asksBeforeBegin && (session.isListening || session.canBeLaunched)), transfer)
        case .failure(let error): finished(transfer, TaskOutcome(failing: error))
        }
    }

    func begin(_ transfer: Transfer) {
        guard let attempt = transfer.attempt, let preparation = attempt.preparation else { return }
        transfer.startCount = preparation.startCount
        transfer.counts.received = preparation.startCount
        transfer.counts.sent = 0
        transfer.hasUploadMoved = false
        attempt.begin(preparation.engineOrder(for: transfer), with: transfer.session.service(of: store))
    }

    func askBeforeBegin(_ transfer: Transfer) {
        guard let load = transfer.attempt?.load, let order = transfer.attempt?.preparation?.order else { return }
        questions.asked(.delayedRequest(order.task.request), by: load, self) { answer in
            // The callback runs on the desk, and its result is handled at once, because the next message may stop the attempt.
            self.assumeIsolated { desk in
                guard let transfer = desk.transfer(of: load), let attempt = transfer.attempt else { return }
                switch answer {
                case .delayed(.cancel): return desk.handle(.giveUp(.cancelled, wantsData: false), transfer)
                case .delayed(.replace(var request)):
                    var order = order
                    if case .file = order.task.request.body { request.body = order.task.request.body }
                    order.task.request = request
                    attempt.preparation?.order = order
                    desk.keep(order, of: transfer)
                    desk.tell(.requestChanged(request), of: transfer)
                default: break
                }
                desk.handle(.allowed, transfer)
            }
        }
    }

    /// Replaces the order's request for all later attempts, even if the disk is slow or full.
    private func keep(_ order: BackgroundOrder, of transfer: Transfer) {
        transfer.order = order
        guard let encoded = try? MessageCoding.encode(order) else { return }
        let number = transfer.number
        // The program is asked only once, so its answer must not be lost.
        keep([.setPart(number, .order, encoded)]) { $0.transfers[number]?.order = nil }
    }

    func halt(_ transfer: Transfer) {
        let isPermanent = transfer.record.isUpload && transfer.machine.isBeingDiscarded
        transfer.attempt?.halt(with: isPermanent ? .cancel : .cancelProducingResumeData, Int(transfer.number))
    }

    // MARK: Events

    nonisolated func take(_ event: RunningLoad.Event, of load: RunningLoad) {
        switch event {
        case .moved:
            enter(after: 0.1) { desk in if let counts = load.takeCounts() { desk.progressed(counts, of: load) } }
        case .event(let event, let counts):
            enter { desk in
                if let counts { desk.progressed(counts, of: load) }
                desk.receiveEvent(event, of: load)
            }
        case .challenge(let question, let answer): enter { $0.questions.asked(question, by: load, $0, answer) }
        case .paused(let seconds):
            endPause(of: load, after: seconds)
            if seconds > RunningLoad.reportedPause { enter(load.number) { $0.noteChange(of: $1) } }
        }
    }

    private nonisolated func endPause(of load: RunningLoad, after seconds: Double) {
        enter(after: seconds) { desk in
            // A later attempt has the same number in the same engine.
            guard desk.transfer(of: load) != nil, case let rest = load.endPause(), rest > 0 else { return }
            desk.endPause(of: load, after: rest)
        }
    }

    /// The transfer of a load, if the load is its current attempt.
    func transfer(of load: RunningLoad) -> Transfer? {
        transfers[load.number].flatMap { $0.attempt?.load === load ? $0 : nil }
    }

    private func progressed(_ counts: TransferCounts, of load: RunningLoad) {
        guard let transfer = transfer(of: load) else { return }
        let number = transfer.number
        let before = transfer.counts
        if counts.received > 0 || counts.expectedToReceive >= 0 {
            transfer.counts.received = counts.received
            transfer.counts.expectedToReceive = counts.expectedToReceive
        }
        if counts.sent > 0 || counts.expectedToSend >= 0 {
            transfer.counts.sent = counts.sent
            transfer.counts.expectedToSend = counts.expectedToSend
        }
        let after = transfer.counts
        if after.sent != before.sent {
            tell(.sent(bytes: max(0, after.sent - before.sent), total: after.sent, expected: after.expectedToSend), of: transfer)
        }
        if after.received != before.received, !transfer.record.isUpload {
            tell(
                .wrote(bytes: max(0, after.received - before.received), total: after.received, expected: after.expectedToReceive),
                of: transfer)
        }
        if after.hasSentAll || before.hasSentAll { schedule(.sentAll(number, after.hasSentAll, pausedFor: load.ratePause)) }
        // Moving bytes show that the server is responsive.
        if after.sent > before.sent || after.received > before.received { schedule(.answered(number)) }
        schedule(.progressed(number, bytes: transfer.movedBytes))
        noteChange(of: transfer)
        if !transfer.record.isUpload, after.received - transfer.record.syncedBytes >= Self.syncInterval { sync(transfer) }
    }

    private func sync(_ transfer: Transfer) {
        guard let file = transfer.record.partial, let attempt = transfer.attempt, !attempt.isSyncing else { return }
        attempt.isSyncing = true
        let (number, folder, load) = (transfer.number, transfer.session.folder, attempt.load)
        syncs.run { [spool] in
            let synced = spool.sync(file, in: folder)
            self.enter(number) { desk, transfer in
                let isOfThis = transfer.attempt?.load === load
                if isOfThis { transfer.attempt?.isSyncing = false }
                guard let synced, transfer.record.partial == file, !transfer.isOver else { return }
                guard case .success(let count) = synced else {
                    desk.journal.log(.warning, "the file of transfer \(number) cannot be brought to the disk")
                    return desk.handle(.spoiled, transfer)
                }
                // If the attempt has ended meanwhile, the file may have become shorter.
                guard isOfThis else { return }
                transfer.record.syncedBytes = count
                transfer.record.bootID = spool.bootID
                desk.save(transfer)
            }
        }
    }

    private func receiveEvent(_ event: TaskEvent, of load: RunningLoad) {
        guard let transfer = transfer(of: load) else {
            if case .finished(let outcome) = event, case .success(.file(let path)) = outcome.result {
                ownFiles.run { try? FileManager.default.removeItem(atPath: path) }
            }
            return
        }
        let number = transfer.number
        switch event {
        case .requestChanged:
            // A redirect counts as a response of the server.
            schedule(.answered(number))
            tell(event, of: transfer)
        case .waitingForConnectivity:
            transfer.isWaitingForNetwork = true
            // The program is told once per task, across all attempts.
            if !transfer.hasReportedWaiting { tell(event, of: transfer) }
            transfer.hasReportedWaiting = true
            noteChange(of: transfer)
            schedule(.lacksNetwork(number))
        case .response(let response):
            transfer.isWaitingForNetwork = false
            schedule(.answered(number))
            schedule(.receivedResponse(number))
            // A response that asks the client to retry later is not shown to the program.
            guard !TransferMachine.Verdict.asksForRetry(response.head?.status, transfer.record.refusals) else { return }
            if let encoded = try? MessageCoding.encode(response) { keep([.setPart(number, .response, encoded)]) }
            tell(event, of: transfer)
        case .resumable(let data) where transfer.record.isUpload:
            keepUploadPoint(data, of: transfer)
        case .resumable(let data):
            let point = data.flatMap { try? ResumePoint(decoding: $0) }
            if transfer.record.partial != point?.temporaryFileName {
                transfer.record.syncedBytes = 0
                handle(.restarted, transfer)
            }
            transfer.record.partial = point?.temporaryFileName
            transfer.record.bootID = spool.bootID
            keep([
                .setPart(number, .resume, point == nil ? nil : data.map { Array($0) }),
                .setState(number, transfer.record.encoded),
            ])
        // The program does not need to know that the daemon resumes one of the daemon's own attempts.
        case .resumed: if transfer.attempt?.preparation?.resumesForProgram == true { tell(event, of: transfer) }
        case .finished(let outcome): finished(transfer, outcome)
        case .sent, .wrote, .data, .sentHead, .informational, .becameDownload, .becameStream, .webSocket,
            .stream:
            break
        }
    }

    /// Notifies the program, if it is connected.
    func tell(_ event: TaskEvent, of transfer: Transfer) {
        guard transfer.session.isListening else { return }
        transfer.session.client?.send(.event(event, transfer.task))
    }
}
