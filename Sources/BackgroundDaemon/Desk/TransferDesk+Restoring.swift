// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel
import SystemThreads

/// Hands over from one daemon to the next, even if the first daemon was killed.
extension TransferDesk {
    /// Restores the state of an earlier daemon.
    func restore(_ contents: TransferStore.Contents) {
        // Unreadable rows are left alone, and their numbers are not reused.
        reserve(contents.damagedTransfers.max() ?? 0, session: contents.damagedSessions.max() ?? 0)
        for id in contents.damagedSessions { journal.log(.error, "session \(id) is damaged") }
        for id in contents.damagedTransfers { journal.log(.error, "transfer \(id) is damaged") }
        for row in contents.sessions + contents.namedSessions {
            let settings = try? MessageCoding.decodeSettings(row.settings)
            if settings == nil { journal.log(.error, "session \(row.identifier) of \(row.program) cannot be read") }
            register(Session(row, settings, folder: spool.folder(of: row.id), isSaved: settings != nil))
        }
        var files: [Int64: Set<String>] = [:]
        var unreadable: Set<Int64> = []
        for row in contents.transfers {
            let known = TransferRecord.decoded(row.state)
            guard let session = sessionsByID[row.session], session.transfers[row.task] == nil else {
                journal.log(.error, "transfer \(row.id) cannot be read")
                reserve(row.id)
                continue
            }
            let record = known ?? TransferRecord()
            let transfer = Transfer(
                number: row.id, session: session, task: row.task, record: record,
                machine: TransferMachine(record.end == nil ? .waiting : .ended))
            transfer.counts.sent = record.end?.sent ?? 0
            transfer.counts.received = record.end?.received ?? record.syncedBytes
            if known == nil || record.isLost == true || session.isUnreadable, !transfer.isOver { unreadable.insert(row.id) }
            register(transfer)
            // A program may be using the file that was handed to it.
            let handed = record.end?.file == nil ? nil : Spool.handedName(row.id)
            files[session.id, default: []].formUnion([record.partial, record.end?.file, handed].compactMap { $0 })
        }
        launches.restoreLimits(self)
        restoreTerms()
        // A transfer number is not reused while a file with that number may exist.
        reserve(spool.highestNumber)
        let known = files
        let numbers = Set(contents.sessions.map(\.id))
        // The files of a damaged transfer are not known.
        let isWhole = contents.damagedTransfers.isEmpty && unreadable.isEmpty
        let skipped = Set((isWhole ? [] : contents.sessions.map(\.id)) + contents.damagedSessions)
        ownFiles.run { [spool, journal] in
            let count = spool.tidy(sessions: numbers, files: known, unreadable: skipped)
            guard count > 0 else { return }
            let place = spool.directory
            journal.log(.notice, "\(count) files in \(place) are older than this start of the machine, and stay for a week")
        }
        for transfer in transfers.values.sorted(by: { $0.number < $1.number }) where !transfer.isOver {
            guard !unreadable.contains(transfer.number) else {
                journal.log(.error, "transfer \(transfer.number) cannot be read, and has failed")
                let reason = "the task can no longer be read: urlsessiond's list of transfers was damaged"
                transfer.outcome = TaskOutcome(failing: LoadError(.cannotOpenFile, reason))
                handle(.unreadable, transfer)
                continue
            }
            if let why = transfer.record.givenUp { handle(.giveUp(why, wantsData: false), transfer) } else { add(transfer) }
        }
        launches.awaitReturns(self)
        updateIdleTimer()
    }

    /// Stops everything so that another daemon can take over; calls back when everything is on disk.
    func shutDown(_ done: @escaping @Sendable () -> Void) {
        close()
        for connection in clients.connections.values { connection.close() }
        for transfer in transfers.values where transfer.machine.hasAttempt { handle(.stop, transfer) }
        waitForEnd(2, done)
    }

    /// Returns all sessions and transfers for a new list, and the outcomes of ended transfers that may not be stored yet; of those
    /// that have not ended, the orders are lost.
    private func remains() -> (contents: TransferStore.Contents, outcomes: [Int64: [UInt8]]) {
        var contents = TransferStore.Contents()
        contents.sessions = sessionsByID.values.map(\.row).sorted { $0.id < $1.id }
        var outcomes: [Int64: [UInt8]] = [:]
        for transfer in transfers.values.sorted(by: { $0.number < $1.number }) where transfer.machine.isAccepted {
            let state = TransferRecord.lost(transfer.record.encoded)
            contents.transfers.append(
                TransferStore.TransferRow(id: transfer.number, session: transfer.session.id, task: transfer.task, state: state))
            if transfer.isOver { outcomes[transfer.number] = transfer.outcome.flatMap { Self.encoded($0)?.bytes } }
        }
        return (contents, outcomes)
    }

    private func closeStore(_ done: @escaping @Sendable () -> Void) {
        let remains = isListDamaged ? remains() : nil
        ownFiles.run { [store, journal] in
            if let remains {
                do throws(StorageFailure) {
                    journal.log(.error, try store.beginAnew(with: remains.contents, outcomes: remains.outcomes))
                } catch {
                    // The next daemon sets the list aside.
                    journal.log(.error, error.reason)
                }
            }
            store.close()
            done()
        }
    }

    private func waitForEnd(_ seconds: Double, _ done: @escaping @Sendable () -> Void) {
        let isBusy =
            transfers.values.contains { $0.machine.hasAttempt || $0.machine.isClosing }
            || sessions.values.contains { !$0.pendingRemovals.isEmpty }
        guard seconds > 0, isBusy else { return closeStore(done) }
        enter(after: 0.02) { $0.waitForEnd(seconds - 0.02, done) }
    }
}
