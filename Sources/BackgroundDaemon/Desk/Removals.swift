// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel
import SystemThreads

/// Removes transfers whose programs know their ends.
final class Removals {
    /// Seconds after which syncing a folder is retried.
    private static let pause = 5.0

    /// Syncs the folders from which files were removed; it is a separate thread, because programs wait for the sync.
    private let thread = WorkThread("bg-folders")

    func told(_ task: TaskID, _ session: Session, _ desk: isolated TransferDesk) {
        if let transfer = session.transfers[task] { return desk.handle(.told, transfer) }
        // The program repeats this message after a lost connection, perhaps before the removal is durable.
        if !session.pendingRemovals.contains(task) { session.client?.send(.forgotten(task)) }
    }

    /// Removes a transfer whose program knows the end and has the file.
    func retire(_ transfer: Transfer, _ desk: isolated TransferDesk) {
        let session = transfer.session
        desk.unregister(transfer)
        desk.noteRemoval(of: transfer)
        session.pendingRemovals.add(
            PendingRemovals.Entry(number: transfer.number, task: transfer.task, file: transfer.record.end?.file))
        removeNextBatch(of: session, desk)
        if session.transfers.isEmpty { session.release() }
        desk.updateIdleTimer()
    }

    /// Removes the rows of reported transfers, many at a time, after the removal of their files is synced.
    private func removeNextBatch(of session: Session, _ desk: isolated TransferDesk) {
        guard let batch = session.pendingRemovals.next() else { return }
        let (id, folder) = (session.id, session.folder)
        guard batch.contains(where: { $0.file != nil }) else { return remove(batch, of: id, desk) }
        thread.run {
            let trouble = Spool.sync(folder: folder)
            desk.enter { $0.removals.synced(batch, of: id, trouble, $0) }
        }
    }

    private func synced(_ batch: [PendingRemovals.Entry], of id: Int64, _ trouble: String?, _ desk: isolated TransferDesk) {
        guard let session = desk.sessionsByID[id] else { return }
        if let trouble { desk.journal.log(.error, "\(session.folder) cannot be brought to the disk: \(trouble)") }
        guard session.pendingRemovals.synced(trouble == nil) else {
            return desk.enter(after: Self.pause) { desk in
                guard let session = desk.sessionsByID[id] else { return }
                session.pendingRemovals.retry()
                desk.removals.removeNextBatch(of: session, desk)
            }
        }
        remove(batch, of: id, desk)
    }

    private func remove(_ batch: [PendingRemovals.Entry], of id: Int64, _ desk: isolated TransferDesk) {
        guard let session = desk.sessionsByID[id] else { return }
        // The session's row keeps the number of its last task, so that the number is not reused.
        let isLast = batch.contains { $0.task == session.record.lastTask }
        desk.keep(batch.map { .removeTransfer($0.number) } + (isLast ? [.saveSession(session.row)] : [])) { desk in
            guard let session = desk.sessionsByID[id] else { return }
            let folder = session.folder
            let files = batch.flatMap { [$0.file, Spool.handedName($0.number)].compactMap { $0 } }
            // A file is removed after its row, because a row without its file would cause another download.
            desk.ownFiles.run { [spool = desk.spool] in for file in files { spool.remove(file, in: folder) } }
            desk.space.noteRemoval(desk)
            session.pendingRemovals.removed()
            for removal in batch { session.client?.send(.forgotten(removal.task)) }
            desk.removals.removeNextBatch(of: session, desk)
            desk.clients.forget(session, ifUnused: session.record.isInvalidated, desk)
            desk.updateIdleTimer()
        }
    }
}
