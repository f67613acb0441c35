// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import HTTPRules
import LoadingModel

/// The data that an attempt needs from the disk.
struct Preparation: Sendable {
    var order: BackgroundOrder
    private var resuming: Data?
    private(set) var startCount: Int64 = 0
    /// The state that an upload resumes from.
    private(set) var upload: UploadResumeData?
    /// Whether the attempt starts with the program's resume data.
    private(set) var resumesForProgram = false

    /// Reads the order, unless it is known, and the resume data.
    init(
        _ number: Int64, _ record: TransferRecord, _ known: BackgroundOrder?, _ uploadPoint: UploadResumeData?,
        _ folder: String,
        _ store: TransferStore, _ spool: Spool
    ) throws(LoadError) {
        do {
            // The spool may have been removed.
            try Spool.make(spool.directory)
            try Spool.make(folder)
            order = try known ?? Self.order(number, store)
        } catch let failure as StorageFailure {
            switch failure {
            case .failed: throw LoadError(.cannotCreateFile, failure.reason)
            // A disk that fails now may work the next time.
            case .busy, .diskFull, .closed: throw LoadError(.resourceUnavailable, failure.reason)
            case .damaged, .newer, .missing, .refused:
                throw LoadError(.cannotOpenFile, "the task can no longer be read: \(failure.reason)")
            }
        } catch {
            throw LoadError(.cannotOpenFile, "the task can no longer be read: \(error)")
        }
        guard case .download(let given) = order.task.delivery else {
            let kept = uploadPoint == nil ? (try? store.part(.resume, of: number)) ?? nil : nil
            upload = uploadPoint ?? kept.flatMap { try? UploadResumeData(decoding: Data($0)) }
            return
        }
        resuming = given
        resumesForProgram = given != nil
        guard let file = record.partial else { return }
        let found: [UInt8]?
        do { found = try store.part(.resume, of: number) } catch { return }
        guard let bytes = found, var point = try? ResumePoint(decoding: Data(bytes)), point.temporaryFileName == file else {
            // Without matching resume data, the partial file cannot be used.
            spool.remove(file, in: folder)
            return
        }
        resumesForProgram = false
        let usable = spool.usableBytes(of: file, in: folder, synced: record.syncedBytes, bootID: record.bootID)
        point.receivedByteCount = usable
        if usable > 0, point.totalByteCount.map({ $0 >= usable }) ?? true, let data = point.encodedIfPossible() {
            resuming = data
            startCount = usable
        } else {
            resuming = nil
            spool.remove(file, in: folder)
        }
        return
    }

    private static func order(_ number: Int64, _ store: TransferStore) throws -> BackgroundOrder {
        guard let bytes = try store.part(.order, of: number) else { throw StorageFailure.missing("The order is missing.") }
        return try MessageCoding.decodeOrder(bytes)
    }

    /// Returns the order for the engine.
    func engineOrder(for transfer: Transfer) -> TaskOrder {
        var task = order.task
        // The engine gets the transfer's number instead of the program's task ID.
        task.id = Int(transfer.number)
        task.earliestBegin = nil
        task.bodyFile = transfer.record.uploadFile
        task.interests = order.task.interests.intersection([.challenges, .metrics])
        task.interests.formUnion([.sentBytes, .receivedBytes, .resumePoints])
        let given = task.upload?.resuming
        task.upload = nil
        if case .download = task.delivery {
            task.delivery = .download(resuming: resuming)
        } else if let data = upload?.encoded() ?? (transfer.uploadRestarts ? nil : given) {
            task.upload = UploadOrder(resuming: data)
        } else if transfer.session.settings.policy.usesResumableUploads {
            task.upload = UploadOrder()
        }
        return task
    }

    /// Returns the order with which the engine asks the server to discard the upload; nil if the server has none.
    func discardingOrder(for transfer: Transfer) -> TaskOrder? {
        guard let data = upload?.encoded() else { return nil }
        var task = engineOrder(for: transfer)
        task.upload = UploadOrder(resuming: data, isGivenUp: true)
        return task
    }
}
