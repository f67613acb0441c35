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
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// Attempts end, and transfers with them or not.
extension TransferDesk {
    /// Answers that ask to come again, and broken ones, before such an answer is the program's to deal with.
    private static let refusalLimit = 8
    /// Times that a file is downloaded anew because somebody changed it before its program had it.
    private static let repeatLimit = 3
    private static var spoiled: LoadError { LoadError(.cannotWriteToFile, "the downloaded file cannot be brought to the disk") }

    /// What comes after an attempt.
    private enum Verdict {
        /// The transfer is over.
        case over(TaskOutcome)
        case again(TransferScheduler.Failure, after: Double?, String)
    }

    func finished(_ transfer: Transfer, _ outcome: TaskOutcome) {
        let ending = transfer.ending
        var outcome = outcome
        if transfer.isSpoiled {
            transfer.isSpoiled = false
            discardFile(of: outcome)
            forgetPartial(of: transfer)
            outcome.result = .failure(Self.spoiled)
        }
        transfer.attempt = nil
        transfer.ending = nil
        transfer.question = nil
        transfer.isWaitingForNetwork = false
        transfer.counts.sent = max(transfer.counts.sent, outcome.sentBodyBytes)
        transfer.counts.received = max(transfer.counts.received, outcome.receivedBodyBytes)
        keepResumePoint(of: transfer, outcome)
        switch ending {
        case .stopped?:
            if case .success = outcome.result { return conclude(transfer, outcome) }
            schedule(.stopped(transfer.number))
            noteChange(transfer)
        case .cancelled? where transfer.wantsResumeData:
            if case .success = outcome.result { return conclude(transfer, outcome) }
            endAsGivenUp(transfer, .cancelled)
        case .cancelled?, .expired?, .quit?:
            discardFile(of: outcome)
            endAsGivenUp(transfer, ending ?? .cancelled)
        case nil: conclude(transfer, outcome)
        }
    }

    private func conclude(_ transfer: Transfer, _ outcome: TaskOutcome) {
        switch verdict(on: outcome, of: transfer) {
        case .again(let failure, let delay, let reason):
            discardFile(of: outcome)
            // What the next attempt does not begin with was no progress.
            let hasMoved =
                (failure == .network || failure == .noSpace) && outcome.isResumable
                && transfer.counts.received > transfer.startCount
            if failure == .noSpace { waitForSpace(transfer, outcome) }
            transfer.lastTrouble = reason
            journal.say(.info, "transfer \(transfer.number) will be tried again: \(reason)")
            schedule(
                .failed(
                    transfer.number, failure, madeProgress: hasMoved, retryAfter: delay, random: .random(in: 0 ... .max)))
            if let pause = scheduler.pause(of: transfer.number) {
                transfer.record.notBefore = pause.until
                transfer.record.attempts = pause.attempts
            }
            save(transfer)
            noteChange(transfer)
        case .over(let outcome):
            guard case .success(.file(let path)) = outcome.result else { return endWithoutFile(transfer, outcome) }
            transfer.isClosing = true
            let number = transfer.number
            let folder = transfer.session.folder
            let file = String(path.split(separator: "/").last ?? "")
            syncs.run { [spool] in
                let version = spool.finish(file, in: folder)
                self.enter { desk in
                    guard let transfer = desk.transfers[number] else { return }
                    transfer.isClosing = false
                    let isSpoiled = transfer.isSpoiled
                    transfer.isSpoiled = false
                    if let version, !isSpoiled { return desk.end(transfer, outcome, file: file, version) }
                    // A system says once that it could not write something: the next time it might say that all is well.
                    desk.ownFiles.run { spool.remove(file, in: folder) }
                    desk.forgetPartial(of: transfer)
                    if let ending = transfer.ending {
                        transfer.ending = nil
                        return desk.endAsGivenUp(transfer, ending)
                    }
                    var failed = outcome
                    failed.result = .failure(Self.spoiled)
                    desk.conclude(transfer, failed)
                }
            }
        }
    }

    private func verdict(on outcome: TaskOutcome, of transfer: Transfer) -> Verdict {
        switch outcome.result {
        case .success:
            guard let response = outcome.response, let head = response.head, asksToComeAgain(response, transfer) else {
                return .over(outcome)
            }
            transfer.record.refusals = transfer.record.refusals.addingSaturating(1)
            return .again(
                .server, after: Self.retryAfter(head.headers.first("Retry-After"), now: now), "the server said \(head.status)")
        case .failure(let error):
            switch error.kind {
            case .timedOut, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .connectionLost, .notConnectedToInternet,
                .cannotLoadFromNetwork, .backgroundSessionDisconnected:
                return .again(.network, after: nil, error.message)
            case .cannotWriteToFile, .cannotCreateFile, .cannotCloseFile:
                return .again(.noSpace, after: nil, error.message)
            case .resourceUnavailable: return .again(.other, after: nil, error.message)
            case .badServerResponse, .cannotParseResponse, .secureConnectionFailed:
                // A connection that breaks in a handshake or in the middle of a head looks like these, too.
                guard transfer.record.refusals < Self.refusalLimit else { return .over(outcome) }
                transfer.record.refusals = transfer.record.refusals.addingSaturating(1)
                return .again(.network, after: nil, error.message)
            default: return .over(outcome)
            }
        }
    }

    /// Whether the server may answer otherwise later, and it is not too often that it said so.
    func asksToComeAgain(_ response: LoadResponse, _ transfer: Transfer) -> Bool {
        guard let status = response.head?.status, transfer.record.refusals < Self.refusalLimit else { return false }
        return [408, 425, 429, 502, 503, 504].contains(status)
    }

    /// Seconds that a `Retry-After` field asks to wait (RFC 9110, section 10.2.3).
    private static func retryAfter(_ value: String?, now: Double) -> Double? {
        guard let value else { return nil }
        if let seconds = Int(value.filter { $0 != " " }), seconds >= 0 { return Double(min(seconds, 86_400)) }
        guard let date = HTTPDate.parse(value) else { return nil }
        return min(max(0, Double(date) - (now + Date.timeIntervalBetween1970AndReferenceDate)), 86_400)
    }

    /// What a failed attempt left to go on with is what the next one begins with.
    private func keepResumePoint(of transfer: Transfer, _ outcome: TaskOutcome) {
        guard case .failure(let error) = outcome.result, !transfer.record.isUpload else { return }
        let point = error.resumeData.flatMap { try? ResumePoint(decoding: $0) }
        if let point, let data = error.resumeData {
            transfer.record.partial = point.temporaryFileName
            transfer.record.bootID = spool.bootID
            // What was on its way to the disk is not there.
            transfer.counts.received = min(transfer.counts.received, point.receivedByteCount)
            // Nor is it what was synced: some of that may have been given back to a full disk.
            transfer.record.syncedBytes = min(transfer.record.syncedBytes, point.receivedByteCount)
            keep([.setPart(transfer.number, .resume, Array(data)), .setState(transfer.number, transfer.record.encoded)])
        } else if transfer.attempt == nil, transfer.record.partial != nil, error.kind == .badServerResponse {
            // What is there and what the server has do not fit: from the beginning, the next time.
            forgetPartial(of: transfer)
        }
    }

    func forgetPartial(of transfer: Transfer) {
        guard let file = transfer.record.partial else { return }
        transfer.record.partial = nil
        transfer.record.syncedBytes = 0
        let folder = transfer.session.folder
        ownFiles.run { [spool] in spool.remove(file, in: folder) }
        noteRemoval()
        keep([.setPart(transfer.number, .resume, nil), .setState(transfer.number, transfer.record.encoded)])
    }

    private func discardFile(of outcome: TaskOutcome) {
        guard case .success(.file(let path)) = outcome.result else { return }
        ownFiles.run { try? FileManager.default.removeItem(atPath: path) }
    }

    // MARK: Transfers that are over

    /// Ends a transfer that is not running, because somebody wants it to.
    func endAsGivenUp(_ transfer: Transfer, _ ending: Transfer.Ending) {
        var error = LoadError.cancelled
        switch ending {
        case .cancelled, .stopped: break
        case .expired:
            error = LoadError(.timedOut, "the transfer did not end within the time that its session allows for resources")
        case .quit:
            error.message = "the user ended the program"
            error.cancelReason = .userForceQuit
        }
        let failure = error
        let outcome = TaskOutcome(result: .failure(failure), response: nil, timelines: [], redirectCount: 0)
        guard transfer.wantsResumeData || ending == .quit else {
            forgetPartial(of: transfer)
            return end(transfer, outcome, file: nil, nil)
        }
        endResumably(transfer, outcome, failure)
    }

    /// Ends a transfer that failed: what there is of its file can be gone on with by another one, if the error says so.
    private func endWithoutFile(_ transfer: Transfer, _ outcome: TaskOutcome) {
        guard case .failure(let error) = outcome.result, outcome.isResumable else {
            forgetPartial(of: transfer)
            return end(transfer, outcome, file: nil, nil)
        }
        endResumably(transfer, outcome, error)
    }

    private func endResumably(_ transfer: Transfer, _ outcome: TaskOutcome, _ failure: LoadError) {
        guard let partial = transfer.record.partial else { return end(transfer, outcome, file: nil, nil) }
        transfer.isClosing = true
        schedule(.removed(transfer.number))
        let (number, record, folder) = (transfer.number, transfer.record, transfer.session.folder)
        ownFiles.run { [store, spool] in
            var error = failure
            let bytes = failure.resumeData.map { Array($0) } ?? (try? store.part(.resume, of: number)) ?? nil
            error.resumeData = bytes.flatMap { Self.resumeData($0, number, record, partial, folder, spool) }
            var kept = outcome
            kept.result = .failure(error)
            let outcome = kept
            self.enter { desk in
                guard let transfer = desk.transfers[number] else { return }
                transfer.isClosing = false
                transfer.record.partial = nil
                desk.end(transfer, outcome, file: nil, nil)
            }
        }
    }

    /// What the program may go on with, by another task of the session.
    private static func resumeData(
        _ bytes: [UInt8], _ number: Int64, _ record: TransferRecord, _ partial: String, _ folder: String, _ spool: Spool
    ) -> Data? {
        guard var point = try? ResumePoint(decoding: Data(bytes)) else { return nil }
        let usable = spool.usableBytes(of: partial, in: folder, synced: record.syncedBytes, bootID: record.bootID)
        guard usable > 0, spool.keep(partial, number: number, in: folder) else { return nil }
        point.receivedByteCount = usable
        point.temporaryFileName = Spool.keptName(number)
        return point.encodedIfPossible()
    }

    private func end(_ transfer: Transfer, _ outcome: TaskOutcome, file: String?, _ version: TransferRecord.FileVersion?) {
        transfer.record.end = TransferRecord.End(file: file, version: version)
        if let file {
            let folder = transfer.session.folder
            // What the last answer was not about; resume data of the program's may be for another task yet.
            if let partial = transfer.record.partial, partial != file, !Spool.isKept(partial) {
                ownFiles.run { [spool] in spool.remove(partial, in: folder) }
            }
            transfer.record.partial = nil
        }
        transfer.outcome = outcome
        schedule(.removed(transfer.number))
        if case .failure(let error) = outcome.result { transfer.lastTrouble = error.message } else { transfer.lastTrouble = "" }
        if transfer.isAccepted { keepEnd(transfer) }
    }

    /// Has the end be durable, and then tells of it.
    func keepEnd(_ transfer: Transfer) {
        guard let outcome = transfer.outcome else { return }
        var kept = outcome
        // Where it is then is found out when it is handed over.
        if case .success(.file) = kept.result { kept.result = .success(.file(path: "/")) }
        let encoded = Self.encoded(kept)
        let number = transfer.number
        keep([
            .setState(number, transfer.record.encoded), .setPart(number, .outcome, encoded), .setPart(number, .resume, nil),
            .setPart(number, .response, nil),
        ]) { desk in
            guard let transfer = desk.transfers[number] else { return }
            transfer.outcome = nil
            transfer.isEndDurable = true
            desk.noteChange(transfer)
            if transfer.session.isListening { desk.deliver(transfer) } else { desk.considerLaunch(transfer.session) }
            if transfer.session.runningCount == 0 { transfer.session.release() }
            desk.considerIdling()
        }
    }

    /// What cannot be kept of an outcome is left out: first its metrics, then all but what went wrong.
    private static func encoded(_ outcome: TaskOutcome) -> [UInt8] {
        if let whole = try? MessageCoding.encode(outcome) { return whole }
        var less = outcome
        less.timelines = []
        if let encoded = try? MessageCoding.encode(less) { return encoded }
        let error = LoadError(.badServerResponse, "what came of the transfer is too large to be kept")
        let least = TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)
        return (try? MessageCoding.encode(least)) ?? []
    }

    /// Tells the program how a transfer ended, and gives it the file.
    func deliver(_ transfer: Transfer) {
        guard let end = transfer.record.end, transfer.session.isListening, transfer.outcome == nil else { return }
        let (number, folder) = (transfer.number, transfer.session.folder)
        ownFiles.run { [store, spool] in
            let bytes: [UInt8]?
            do {
                bytes = try store.part(.outcome, of: number)
            } catch {
                // The disk may give it the next time.
                return self.enter(after: 5) { if let transfer = $0.transfers[number] { $0.deliver(transfer) } }
            }
            let lost = LoadError(.cannotOpenFile, "how the task ended cannot be read any more")
            var outcome =
                bytes.flatMap { try? MessageCoding.decodeOutcome($0) }
                ?? TaskOutcome(result: .failure(lost), response: nil, timelines: [], redirectCount: 0)
            var isFileLost = false
            if case .success(.file) = outcome.result {
                if let file = end.file, let path = spool.handOver(file, end.version, number: number, in: folder) {
                    outcome.result = .success(.file(path: path))
                } else {
                    isFileLost = true
                    outcome.result = .failure(LoadError(.cannotOpenFile, "the downloaded file was changed before it was taken"))
                }
            }
            let (result, mustRepeat) = (outcome, isFileLost)
            self.enter { $0.hand(number, result, mustRepeat: mustRepeat) }
        }
    }

    private func hand(_ number: Int64, _ outcome: TaskOutcome, mustRepeat: Bool) {
        guard let transfer = transfers[number], transfer.isOver else { return }
        if mustRepeat, transfer.repeats < Self.repeatLimit {
            // Somebody removed or changed the file before the program had it: it is downloaded anew.
            transfer.repeats += 1
            journal.say(.warning, "transfer \(number) is begun anew: its file is not what it was")
            transfer.record.end = nil
            transfer.isEndDurable = false
            transfer.counts.received = 0
            keep([.setState(number, transfer.record.encoded), .setPart(number, .outcome, nil)])
            return add(transfer)
        }
        transfer.counts.sent = max(transfer.counts.sent, outcome.sentBodyBytes)
        tell(.finished(outcome), of: transfer)
    }
}

extension TaskOutcome {
    /// It failed, and left something to go on with.
    fileprivate var isResumable: Bool {
        if case .failure(let error) = result { error.resumeData != nil } else { false }
    }
}
