//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import FoundationEssentials
import HTTPRules
import LoadingModel
import NIOCore
import SystemThreads

/// Transfers run.
extension TransferDesk {
    /// Bytes after which what came of a download is brought to the disk, so that a loss of power costs no more.
    private static let syncInterval: Int64 = 64 << 20

    /// What an attempt needs from the disk.
    private struct Preparation: Sendable {
        var order: BackgroundOrder
        var resuming: Data?
        var startCount: Int64 = 0
        /// It goes on from what the program gave.
        var resumesForProgram = false
    }

    func start(_ number: Int64) {
        guard let transfer = transfers[number], !transfer.isOver, transfer.attempt == nil, !transfer.isClosing else {
            // It is not the scheduler's any more.
            return schedule(.removed(number))
        }
        transfer.attempt = Attempt(RunningLoad(number, self))
        transfer.isWaitingForNetwork = false
        noteChange(transfer)
        let record = transfer.record
        let folder = transfer.session.folder
        let files = files(of: transfer.session.program)
        ownFiles.run { [store, spool] in
            let result = Result { () throws(LoadError) in
                try Self.prepare(number, record, folder, store, spool)
            }
            guard case .success(let preparation) = result, case .file(let path) = preparation.order.task.request.body else {
                return self.enter { $0.begin(number, result) }
            }
            files.run {
                let checked = Result { () throws(LoadError) in
                    let now = try Spool.version(ofProgramFile: path).get()
                    guard record.uploadFile == nil || now == record.uploadFile else {
                        throw LoadError(
                            .cannotOpenFile, "\(path) has changed since its upload was ordered; order it again",
                            url: preparation.order.task.request.url)
                    }
                    return preparation
                }
                self.enter { $0.begin(number, checked) }
            }
        }
    }

    private static func prepare(
        _ number: Int64, _ record: TransferRecord, _ folder: String, _ store: TransferStore, _ spool: Spool
    ) throws(LoadError) -> Preparation {
        var preparation: Preparation
        do {
            try Spool.make(folder)
            guard let bytes = try store.part(.order, of: number) else { throw StorageFailure.missing("There is no such order.") }
            preparation = Preparation(order: try MessageCoding.decodeOrder(bytes))
        } catch let failure as StorageFailure {
            switch failure {
            case .failed: throw LoadError(.cannotCreateFile, failure.reason)
            // That the disk does not give it now says nothing of the next time.
            case .busy, .diskFull, .closed: throw LoadError(.resourceUnavailable, failure.reason)
            case .damaged, .newer, .missing, .refused:
                throw LoadError(.cannotOpenFile, "the task cannot be read any more: \(failure.reason)")
            }
        } catch {
            throw LoadError(.cannotOpenFile, "the task cannot be read any more: \(error)")
        }
        guard case .download(let given) = preparation.order.task.delivery else { return preparation }
        preparation.resuming = given
        preparation.resumesForProgram = given != nil
        guard let file = record.partial else { return preparation }
        let found: [UInt8]?
        do { found = try store.part(.resume, of: number) } catch { return preparation }
        guard let bytes = found, var point = try? ResumePoint(decoding: Data(bytes)), point.temporaryFileName == file else {
            // Nothing says how it goes on.
            spool.remove(file, in: folder)
            return preparation
        }
        preparation.resumesForProgram = false
        let usable = spool.usableBytes(of: file, in: folder, synced: record.syncedBytes, bootID: record.bootID)
        point.receivedByteCount = usable
        if usable > 0, point.totalByteCount.map({ $0 >= usable }) ?? true, let data = point.encodedIfPossible() {
            preparation.resuming = data
            preparation.startCount = usable
        } else {
            preparation.resuming = nil
            spool.remove(file, in: folder)
        }
        return preparation
    }

    private func begin(_ number: Int64, _ result: Result<Preparation, LoadError>) {
        guard let transfer = transfers[number], let attempt = transfer.attempt else { return }
        let preparation: Preparation
        switch result {
        case .success(let ready): preparation = ready
        case .failure(let error):
            return finished(transfer, TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0))
        }
        guard transfer.ending == nil else { return finishedUnstarted(transfer) }
        let session = transfer.session
        if transfer.record.asksBeforeBegin, !transfer.mayBegin, session.isListening || session.canBeLaunched {
            return askBeforeBegin(transfer, preparation, attempt)
        }
        transfer.startCount = preparation.startCount
        transfer.counts.received = preparation.startCount
        transfer.counts.sent = 0
        var order = preparation.order.task
        // Numbers of an engine are its own: the same task may be tried again before the last of an earlier attempt was heard.
        order.id = Int(number)
        order.earliestBegin = nil
        order.interests = preparation.order.task.interests.intersection([.challenges, .metrics])
        order.interests.formUnion([.sentBytes, .receivedBytes, .resumePoints])
        if case .download = order.delivery { order.delivery = .download(resuming: preparation.resuming) }
        attempt.isOrdered = true
        attempt.resumesForProgram = preparation.resumesForProgram
        let service = transfer.session.service(of: store)
        attempt.service = service
        if service.submit(order, client: attempt.load) { service.wake() }
    }

    private func askBeforeBegin(_ transfer: Transfer, _ preparation: Preparation, _ attempt: Attempt) {
        lastQuestion += 1
        let number = transfer.number
        let load = attempt.load
        let asked = Transfer.Question(number: lastQuestion, question: .delayedRequest(preparation.order.task.request)) { answer in
            self.enter { desk in
                guard let transfer = desk.transfers[number], transfer.attempt?.load === load else { return }
                transfer.mayBegin = true
                var next = preparation
                switch answer {
                case .delayed(.cancel):
                    transfer.ending = .cancelled
                case .delayed(.replace(var request)):
                    if case .file = preparation.order.task.request.body { request.body = preparation.order.task.request.body }
                    next.order.task.request = request
                    if let encoded = try? MessageCoding.encode(next.order) { desk.keep([.setPart(number, .order, encoded)]) }
                    desk.tell(.requestChanged(request), of: transfer)
                default: break
                }
                desk.begin(number, .success(next))
            }
        }
        put(asked, of: transfer)
    }

    // MARK: Ending an attempt from here

    func stop(_ number: Int64, because reason: TransferScheduler.StopReason) {
        guard let transfer = transfers[number] else { return schedule(.removed(number)) }
        guard transfer.attempt != nil else {
            // What is done with its file is the answer.
            if !transfer.isClosing { schedule(.stopped(number)) }
            return
        }
        transfer.ending = transfer.ending ?? .stopped
        halt(transfer)
    }

    func expire(_ number: Int64) {
        guard let transfer = transfers[number], !transfer.isOver else { return }
        cancel(transfer, as: .expired)
    }

    func halt(_ transfer: Transfer) {
        guard let attempt = transfer.attempt else { return }
        if transfer.question != nil, !attempt.isOrdered {
            transfer.question = nil
            return finishedUnstarted(transfer)
        }
        guard attempt.isOrdered, let service = attempt.service else { return }
        let command: TaskCommand = transfer.record.isUpload ? .cancel : .cancelProducingResumeData
        if service.command(command, for: Int(transfer.number)) { service.wake() }
    }

    private func finishedUnstarted(_ transfer: Transfer) {
        finished(transfer, TaskOutcome(result: .failure(.cancelled), response: nil, timelines: [], redirectCount: 0))
    }

    // MARK: What is heard of one

    func progressed(_ number: Int64, _ counts: TransferCounts, of load: RunningLoad) {
        guard let transfer = transfers[number], transfer.attempt?.load === load else { return }
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
        schedule(.progressed(number, bytes: transfer.movedBytes))
        noteChange(transfer)
        if !transfer.record.isUpload, after.received - transfer.record.syncedBytes >= Self.syncInterval { sync(transfer) }
    }

    private func sync(_ transfer: Transfer) {
        guard let file = transfer.record.partial, !transfer.isSyncing else { return }
        transfer.isSyncing = true
        let number = transfer.number
        let folder = transfer.session.folder
        let load = transfer.attempt?.load
        syncs.run { [spool] in
            let synced = spool.sync(file, in: folder)
            self.enter { desk in
                guard let transfer = desk.transfers[number] else { return }
                transfer.isSyncing = false
                guard let synced, transfer.record.partial == file, !transfer.isOver else { return }
                guard case .success(let count) = synced else { return desk.endSpoiled(transfer) }
                // An attempt that has ended may have left less of the file than there was.
                guard load != nil, transfer.attempt?.load === load else { return }
                transfer.record.syncedBytes = count
                transfer.record.bootID = spool.bootID
                desk.save(transfer)
            }
        }
    }

    /// Gives up a file of which the disk lost something: a system says so once, and the next time that all is well (fsync(2)).
    private func endSpoiled(_ transfer: Transfer) {
        journal.say(.warning, "the file of transfer \(transfer.number) cannot be brought to the disk")
        guard transfer.attempt != nil || transfer.isClosing else { return forgetPartial(of: transfer) }
        transfer.isSpoiled = true
        halt(transfer)
    }

    func heard(_ event: TaskEvent, of number: Int64, by load: RunningLoad) {
        guard let transfer = transfers[number], transfer.attempt?.load === load else {
            if case .finished(let outcome) = event, case .success(.file(let path)) = outcome.result {
                ownFiles.run { try? FileManager.default.removeItem(atPath: path) }
            }
            return
        }
        switch event {
        case .requestChanged: tell(event, of: transfer)
        case .waitingForConnectivity:
            transfer.isWaitingForNetwork = true
            tell(event, of: transfer)
            noteChange(transfer)
        case .response(let response):
            transfer.isWaitingForNetwork = false
            // What asks to come again is not the program's to see.
            guard !asksToComeAgain(response, transfer) else { return }
            if let encoded = try? MessageCoding.encode(response) { keep([.setPart(number, .response, encoded)]) }
            tell(event, of: transfer)
        case .resumable(let data):
            let point = data.flatMap { try? ResumePoint(decoding: $0) }
            if transfer.record.partial != point?.temporaryFileName {
                transfer.record.syncedBytes = 0
                transfer.isSpoiled = false
            }
            transfer.record.partial = point?.temporaryFileName
            transfer.record.bootID = spool.bootID
            keep([
                .setPart(number, .resume, point == nil ? nil : data.map { Array($0) }),
                .setState(number, transfer.record.encoded),
            ])
        // What an attempt of the daemon's goes on from is its own affair.
        case .resumed: if transfer.attempt?.resumesForProgram == true { tell(event, of: transfer) }
        case .finished(let outcome): finished(transfer, outcome)
        case .sent, .wrote, .data, .sentHead, .informational, .becameDownload: break
        }
    }

    /// Tells the program, if it is there.
    func tell(_ event: TaskEvent, of transfer: Transfer) {
        guard transfer.session.isListening else { return }
        transfer.session.client?.send(.event(event, transfer.task))
    }
}
