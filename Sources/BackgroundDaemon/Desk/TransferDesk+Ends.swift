// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import SystemThreads

/// The ends of attempts and of transfers.
extension TransferDesk {
    func finished(_ transfer: Transfer, _ outcome: TaskOutcome) {
        transfer.counts.sent = max(transfer.counts.sent, outcome.sentBodyBytes)
        transfer.counts.received = max(transfer.counts.received, outcome.receivedBodyBytes)
        keepResumePoint(of: transfer, outcome)
        transfer.outcome = outcome
        handle(.finished(outcome.verdict(after: transfer.record.refusals)), transfer)
    }

    func retry(_ transfer: Transfer, _ failure: TransferScheduler.Failure, _ isRefusal: Bool) {
        let outcome = transfer.outcome ?? TaskOutcome(failing: .cancelled)
        transfer.outcome = nil
        if isRefusal { transfer.record.refusals = transfer.record.refusals.addingSaturating(1) }
        // Bytes count as progress only if the next attempt starts after them.
        let hasMoved =
            (failure == .network || failure == .noSpace) && outcome.isResumable
            && (transfer.record.isUpload ? transfer.hasUploadMoved : transfer.counts.received > transfer.startCount)
        if failure == .noSpace { space.wait(transfer, after: outcome, self) }
        var delay: Double?
        switch outcome.result {
        case .success:
            delay = outcome.response?.head?.headers.first("Retry-After").flatMap {
                RetryAfter.seconds($0, now: now + Date.timeIntervalBetween1970AndReferenceDate)
            }
            transfer.lastTrouble = "the server responded with status \(outcome.response?.head?.status ?? 0)"
        case .failure(let error): transfer.lastTrouble = error.message
        }
        journal.log(.info, "transfer \(transfer.number) will be tried again: \(transfer.lastTrouble)")
        schedule(
            .failed(transfer.number, failure, madeProgress: hasMoved, retryAfter: delay, random: .random(in: 0 ... .max)))
        if let pause = scheduler.pause(of: transfer.number) {
            transfer.record.notBefore = pause.until
            transfer.record.attempts = pause.attempts
        }
        save(transfer)
    }

    func closeFile(of transfer: Transfer) {
        guard let file = transfer.outcome?.file else { return handle(.closed(isWhole: false), transfer) }
        let (number, folder) = (transfer.number, transfer.session.folder)
        syncs.run { [spool] in
            let version = spool.finish(file, in: folder)
            self.enter(number) { desk, transfer in
                transfer.finishedFile = version
                desk.handle(.closed(isWhole: version != nil), transfer)
            }
        }
    }

    /// Stores the data that a failed attempt left, so that the next attempt resumes from them.
    private func keepResumePoint(of transfer: Transfer, _ outcome: TaskOutcome) {
        guard case .failure(let error) = outcome.result else { return }
        guard !transfer.record.isUpload else {
            // An attempt that could not be prepared leaves the server's part as it was.
            guard transfer.attempt?.isOrdered == true else { return }
            if error.uploadResumeData == nil { transfer.uploadRestarts = true }
            return keepUploadPoint(error.uploadResumeData, of: transfer)
        }
        let point = error.resumeData.flatMap { try? ResumePoint(decoding: $0) }
        if let point, let data = error.resumeData {
            transfer.record.partial = point.temporaryFileName
            transfer.record.bootID = spool.bootID
            // Bytes that had not been written to the file are lost.
            transfer.counts.received = min(transfer.counts.received, point.receivedByteCount)
            // Synced bytes may be lost, too: if the file has filled the disk, the end of the file is released.
            transfer.record.syncedBytes = min(transfer.record.syncedBytes, point.receivedByteCount)
            keep([.setPart(transfer.number, .resume, Array(data)), .setState(transfer.number, transfer.record.encoded)])
        } else if error.kind == .badServerResponse {
            // The existing part and the server's file do not match: the next attempt starts over.
            forgetPartial(of: transfer)
        }
    }

    /// Stores the state from which the next attempt of an upload resumes; nil if the upload starts over.
    func keepUploadPoint(_ data: Data?, of transfer: Transfer) {
        let (before, point) = (transfer.uploadPoint, data.flatMap { try? UploadResumeData(decoding: $0) })
        guard point != before else { return }
        transfer.uploadPoint = point
        transfer.hasUploadMoved = (point?.point.acknowledged ?? 0) > (before?.point.acknowledged ?? 0)
        keep([.setPart(transfer.number, .resume, point == nil ? nil : data.map { Array($0) })])
    }

    /// Asks the server to discard what it has of an upload that its program has cancelled, without waiting for the answer.
    ///
    /// A running attempt that is cancelled does so itself, and then leaves no state.
    func discardUpload(of transfer: Transfer) {
        guard transfer.record.isUpload, transfer.uploadPoint != nil || !transfer.uploadRestarts, !isClosing else { return }
        let (number, record, folder) = (transfer.number, transfer.record, transfer.session.folder)
        let (knownOrder, known) = (transfer.order, transfer.uploadPoint)
        // On this thread, the end is delivered later, so the transfer still exists.
        ownFiles.run { [store, spool] in
            guard known != nil || (try? store.part(.resume, of: number)) != nil,
                let preparation = try? Preparation(number, record, knownOrder, known, folder, store, spool)
            else { return }
            self.enter(number) { desk, transfer in
                guard let order = preparation.discardingOrder(for: transfer) else { return }
                let service = transfer.session.service(of: desk.store)
                if service.submit(order, client: RunningLoad(number, desk, desk.rateLimiter)) { service.wake() }
            }
        }
    }

    func forgetPartial(of transfer: Transfer) {
        guard let file = transfer.record.partial else { return }
        transfer.record.partial = nil
        transfer.record.syncedBytes = 0
        let folder = transfer.session.folder
        ownFiles.run { [spool] in spool.remove(file, in: folder) }
        space.noteRemoval(self)
        keep([.setPart(transfer.number, .resume, nil), .setState(transfer.number, transfer.record.encoded)])
    }

    func discardFile(of transfer: Transfer) {
        guard let file = transfer.outcome?.file else { return }
        let folder = transfer.session.folder
        ownFiles.run { [spool] in spool.remove(file, in: folder) }
    }

    func spoil(_ transfer: Transfer) {
        discardFile(of: transfer)
        forgetPartial(of: transfer)
        let error = LoadError(.cannotWriteToFile, "the downloaded file cannot be written to the disk")
        transfer.outcome = transfer.outcome ?? TaskOutcome(failing: error)
        transfer.outcome?.result = .failure(error)
    }

    // MARK: Ended transfers

    /// Keeps the partial file for another task, and adds resume data for it to the error.
    func keepData(of transfer: Transfer) {
        if transfer.record.isUpload { return keepUploadData(of: transfer) }
        guard let partial = transfer.record.partial, let outcome = transfer.outcome,
            case .failure(let failure) = outcome.result
        else { return handle(.dataKept, transfer) }
        let (number, record, folder) = (transfer.number, transfer.record, transfer.session.folder)
        syncs.run { [store, spool] in
            var error = failure
            let bytes = failure.resumeData.map { Array($0) } ?? (try? store.part(.resume, of: number)) ?? nil
            error.resumeData = bytes.flatMap { Self.resumeData($0, number, record, partial, folder, spool) }
            let result = Result<TaskOutcome.Body, LoadError>.failure(error)
            self.enter(number) { desk, transfer in
                transfer.record.partial = nil
                transfer.outcome?.result = result
                desk.handle(.dataKept, transfer)
            }
        }
    }

    /// Adds resume data for an upload, which has no file, to the error.
    private func keepUploadData(of transfer: Transfer) {
        guard case .failure(let failure)? = transfer.outcome?.result, failure.uploadResumeData == nil else {
            return handle(.dataKept, transfer)
        }
        let (number, known) = (transfer.number, transfer.uploadPoint)
        ownFiles.run { [store] in
            var error = failure
            error.uploadResumeData = known?.encoded() ?? ((try? store.part(.resume, of: number)) ?? nil).map { Data($0) }
            let result = Result<TaskOutcome.Body, LoadError>.failure(error)
            self.enter(number) { desk, transfer in
                transfer.outcome?.result = result
                desk.handle(.dataKept, transfer)
            }
        }
    }

    /// Removes resume data from the error if the disk lost part of the file that they refer to.
    func dropData(of transfer: Transfer) {
        guard case .failure(var error)? = transfer.outcome?.result, error.resumeData != nil else { return }
        error.resumeData = nil
        transfer.outcome?.result = .failure(error)
        let (file, folder) = (Spool.keptName(transfer.number), transfer.session.folder)
        ownFiles.run { [spool] in spool.remove(file, in: folder) }
        space.noteRemoval(self)
    }

    /// Returns the resume data with which the program can continue in another task of the session.
    private static func resumeData(
        _ bytes: [UInt8], _ number: Int64, _ record: TransferRecord, _ partial: String, _ folder: String, _ spool: Spool
    ) -> Data? {
        guard var point = try? ResumePoint(decoding: Data(bytes)) else { return nil }
        let usable = spool.usableBytes(of: partial, in: folder, synced: record.syncedBytes, bootID: record.bootID)
        // The file is synced, because the program may use the resume data after a power failure; the data cannot show that the
        // file then lost bytes.
        guard usable > 0, case .success? = spool.sync(partial, in: folder), spool.keep(partial, number: number, in: folder)
        else { return nil }
        point.receivedByteCount = usable
        point.temporaryFileName = Spool.keptName(number)
        return point.encodedIfPossible()
    }

    func end(_ transfer: Transfer, _ hasFile: Bool) {
        let file = hasFile ? transfer.outcome?.file : nil
        transfer.record.end = TransferRecord.End(
            file: file, version: file == nil ? nil : transfer.finishedFile, sent: transfer.counts.sent,
            received: transfer.counts.received)
        if let file {
            // Removes a partial file that is not the delivered one, unless it belongs to the program's resume data, which another
            // task may use.
            if let partial = transfer.record.partial, partial != file, !Spool.isKept(partial) {
                let folder = transfer.session.folder
                ownFiles.run { [spool] in spool.remove(partial, in: folder) }
            }
            transfer.record.partial = nil
        }
        schedule(.removed(transfer.number))
        if case .failure(let error)? = transfer.outcome?.result {
            transfer.lastTrouble = error.message
        } else {
            transfer.lastTrouble = ""
        }
    }

    /// Makes the end durable, and then reports it.
    func keepEnd(_ transfer: Transfer) {
        guard let outcome = transfer.outcome else { return }
        let number = transfer.number
        let encoded = Self.encoded(outcome)
        var changes: [TransferStore.Change] = [
            .setState(number, transfer.record.encoded), .setPart(number, .outcome, encoded?.bytes ?? []),
            .setPart(number, .response, nil),
        ]
        // The state of an upload that the server is to discard may not have been read yet.
        if !transfer.record.isUpload || transfer.record.givenUp != .cancelled { changes.append(.setPart(number, .resume, nil)) }
        keep(changes) { desk in
            guard let transfer = desk.transfers[number] else { return }
            transfer.outcome = nil
            transfer.encodedOutcome = encoded
            desk.handle(.endKept, transfer)
            transfer.encodedOutcome = nil
            if transfer.session.runningCount == 0 { transfer.session.release() }
            desk.updateIdleTimer()
        }
    }

    /// Encodes an outcome: without metrics if the outcome is too large, or as an error if it is still too large.
    static func encoded(_ outcome: TaskOutcome) -> EncodedOutcome? {
        if let whole = try? EncodedOutcome(outcome) { return whole }
        var less = outcome
        less.timelines = []
        if let encoded = try? EncodedOutcome(less) { return encoded }
        return failure(.badServerResponse, "the result of the transfer is too large to be stored")
    }

    private static func failure(_ kind: LoadError.Kind, _ text: String) -> EncodedOutcome? {
        try? EncodedOutcome(TaskOutcome(failing: LoadError(kind, text)))
    }

    /// Reads the outcome of a transfer; throws if the disk may work the next time.
    private static func outcome(of number: Int64, _ store: TransferStore) throws -> EncodedOutcome? {
        do throws(StorageFailure) {
            if let bytes = try store.part(.outcome, of: number), let known = try? EncodedOutcome(stored: bytes) { return known }
        } catch {
            guard case .damaged = error else { throw error }
        }
        return failure(.cannotOpenFile, "the result of the task can no longer be read")
    }

    /// Tells the program of a transfer's end, and gives it the file.
    func deliver(_ transfer: Transfer) {
        guard let end = transfer.record.end else { return }
        let (number, task, folder, known) = (transfer.number, transfer.task, transfer.session.folder, transfer.encodedOutcome)
        ownFiles.run { [store, spool] in
            guard var outcome = try? known ?? Self.outcome(of: number, store) else {
                return self.enter(number, after: 5) { $0.handle(.awaited, $1) }
            }
            var file: String?
            if outcome.hasFile {
                file = end.file.flatMap { spool.handOver($0, end.version, number: number, in: folder) }
            }
            let isLost = outcome.hasFile && file == nil
            if isLost, var whole = try? MessageCoding.decodeOutcome(outcome.bytes) {
                let reason = "the downloaded file was changed before it was delivered"
                whole.result = .failure(LoadError(.cannotOpenFile, reason))
                outcome = Self.encoded(whole) ?? outcome
            }
            let message = try? outcome.message(to: task, file: file)
            self.enter(number) { desk, transfer in
                if isLost { desk.handle(.fileLost, transfer) }
                guard transfer.isOver, transfer.session.isListening, let message else { return }
                transfer.session.client?.send(message)
            }
        }
    }

    /// Forgets the end, so that the file is downloaded again.
    func forgetEnd(of transfer: Transfer) {
        journal.log(.warning, "transfer \(transfer.number) is begun anew: its file is not what it was")
        transfer.record.end = nil
        transfer.counts.received = 0
        keep([.setState(transfer.number, transfer.record.encoded), .setPart(transfer.number, .outcome, nil)])
    }
}

extension TransferMachine.GiveUpReason {
    /// The error that the program gets.
    var error: LoadError {
        switch self {
        case .cancelled: return .cancelled
        case .expired:
            return LoadError(.timedOut, "the transfer did not end within the session's timeout for resources")
        case .quit:
            var error = LoadError.cancelled
            error.message = "the user quit the program"
            error.cancelReason = .userForceQuit
            return error
        }
    }
}

extension TaskOutcome {
    init(failing error: LoadError) {
        self.init(result: .failure(error), response: nil, timelines: [], redirectCount: 0)
    }

    /// Whether the attempt failed, and left data to resume from.
    fileprivate var isResumable: Bool {
        if case .failure(let error) = result { error.resumeData != nil || error.uploadResumeData != nil } else { false }
    }

    /// The name of the downloaded file.
    fileprivate var file: String? {
        if case .success(.file(let path)) = result { path.split(separator: "/").last.map(String.init) } else { nil }
    }

    fileprivate func verdict(after refusals: Int) -> TransferMachine.Verdict {
        switch result {
        case .success: TransferMachine.Verdict(status: response?.head?.status, hasFile: file != nil, refusals: refusals)
        case .failure(let error): TransferMachine.Verdict(error.kind, leavesData: isResumable, refusals: refusals)
        }
    }
}
