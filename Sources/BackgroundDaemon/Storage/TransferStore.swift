// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingStores
import Synchronization

#if Daemon
import GRDB
#endif

/// Stores the data that the daemon must not lose, in SQLite.
///
/// The content of requests is encrypted with a key in a separate file: the database without the key, in a backup for example, does
/// not reveal that content. The data that the daemon needs for its decisions are in clear text.
package final class TransferStore: Sendable {
    /// A program's session.
    package struct SessionRow: Sendable, Hashable {
        package var id: Int64
        package var program: String
        package var identifier: String
        /// Encrypted in the file.
        package var settings: [UInt8]
        /// In clear text.
        package var state: [UInt8]

        package init(id: Int64, program: String, identifier: String, settings: [UInt8], state: [UInt8]) {
            self.id = id
            self.program = program
            self.identifier = identifier
            self.settings = settings
            self.state = state
        }
    }

    /// A transfer, without its parts.
    package struct TransferRow: Sendable, Hashable {
        package var id: Int64
        package var session: Int64
        package var task: Int
        /// In clear text.
        package var state: [UInt8]

        package init(id: Int64, session: Int64, task: Int, state: [UInt8]) {
            self.id = id
            self.session = session
            self.task = task
            self.state = state
        }
    }

    /// A large part of a transfer, encrypted in the file, and read only when needed.
    package enum Part: String, Sendable, CaseIterable { case order, resume, response, outcome }

    /// A single change.
    package enum Change: Sendable {
        /// Creates or updates the session with that ID.
        case saveSession(SessionRow)
        /// Removes the session and its transfers; has no effect if there is no such session.
        case removeSession(Int64)
        /// Fails if there is already a transfer with that ID, or if there is no such session.
        case addTransfer(TransferRow, order: [UInt8])
        /// Fails if there is no such transfer.
        case setState(Int64, [UInt8])
        /// Fails if there is no such transfer, unless the part is to be removed.
        case setPart(Int64, Part, [UInt8]?)
        /// Has no effect if there is no such transfer.
        case removeTransfer(Int64)
    }

    /// All rows, by ID.
    package struct Contents: Sendable {
        package var sessions: [SessionRow] = []
        /// A transfer whose state cannot be read has an empty state.
        package var transfers: [TransferRow] = []
        /// The IDs of rows that exist but cannot be read.
        package var damagedSessions: [Int64] = []
        package var damagedTransfers: [Int64] = []
        /// The damaged sessions whose names can be read; their settings are empty.
        package var namedSessions: [SessionRow] = []
    }

    /// A message for the user who runs the daemon, if a damaged database was set aside.
    package let trouble: String?

    private let files: Files
    private let queue = CommitQueue()

    /// What happens to the database while it is open.
    package enum Event: Sendable {
        /// SQLite finds the database malformed, for this reason: from now on, no changes are stored.
        case damaged(String)
        /// The database was removed or renamed, and was written again.
        case written
    }

    /// Watches the open database.
    private final class Watch: Sendable {
        private struct State {
            var damage: String?
            var onEvent: (@Sendable (Event) -> Void)?
        }

        private let state = Mutex(State())

        var damage: String? { state.withLock { $0.damage } }

        func found(_ reason: String) {
            let onEvent = state.withLock { state -> (@Sendable (Event) -> Void)? in
                guard state.damage == nil else { return nil }
                state.damage = reason
                return state.onEvent
            }
            onEvent?(.damaged(reason))
        }

        func noteWritten() { state.withLock { $0.onEvent }?(.written) }

        func begin(_ onEvent: @escaping @Sendable (Event) -> Void) {
            let damage = state.withLock { state in
                state.onEvent = onEvent
                return state.damage
            }
            if let damage { onEvent(.damaged(damage)) }
        }
    }

    /// The open database; while it is replaced, readers wait.
    private final class Files: Sendable {
        private let current: Mutex<TransferFile>
        /// Known even while the database is replaced.
        private let currentSeal: Mutex<StorageSeal>
        let watch: Watch

        init(_ file: TransferFile, _ watch: Watch) {
            current = Mutex(file)
            currentSeal = Mutex(file.seal)
            self.watch = watch
        }

        var file: TransferFile { current.withLock { $0 } }
        var seal: StorageSeal { currentSeal.withLock { $0 } }

        /// Commits the calls, unless the database is malformed: a change of its intact pages would be lost with the others.
        func commit(_ calls: [CommitQueue.Call]) -> [Result<Void, StorageFailure>] {
            do throws(StorageFailure) {
                if let reason = watch.damage { throw .damaged(reason) }
                try mend()
            } catch {
                return calls.map { _ in .failure(error) }
            }
            return file.commit(calls)
        }

        /// Writes the database again if it was removed or renamed: nothing else has its content.
        ///
        /// If this fails, the next call tries again, unless the database is malformed.
        private func mend() throws(StorageFailure) {
            guard !file.isInPlace else { return }
            do {
                try current.withLock { file in
                    let old = file
                    let (inode, seal) = try old.beginAnew(with: { database in
                        // Damage must be found twice.
                        if let contents = try Damage.nilIfFound({ try old.rows.contents(database) }) { return contents }
                        return try old.rows.contents(database)
                    }) { part, id, database in
                        try Damage.nilIfFound { try old.rows.part(part, of: id, database) }
                    }
                    // Until the new one is open, this one is needed for another attempt.
                    let next = try TransferFile.open(old.directory, onDamage: old.onDamage).0
                    guard next.inodes.first == .some(inode), next.seal == seal else {
                        try? next.pool.close()
                        throw StorageFailure.failed("The list of background transfers was removed while it was written again.")
                    }
                    file = next
                    try? old.pool.close()
                }
            } catch {
                let failure = StorageFailure(error)
                if case .damaged(let reason) = failure { watch.found(reason) }
                throw failure
            }
            currentSeal.withLock { $0 = file.seal }
            watch.noteWritten()
        }
    }

    /// Opens the store in a folder, which is created if it does not exist.
    ///
    /// Only one process at a time may have the store open.
    ///
    /// - Parameters:
    ///   - directory: An absolute path.
    ///   - damage: Why the existing database is known to be damaged; nil if it is to be checked.
    ///   - trouble: The message if a damaged database was set aside just before.
    /// - Returns: The store.
    /// - Throws: An error if the folder or the files cannot be used.
    package static func open(
        directory: String, knownDamage damage: String? = nil, trouble: String? = nil
    ) throws(StorageFailure) -> TransferStore {
        try TransferStore(directory, damage, trouble)
    }

    private init(_ directory: String, _ knownDamage: String?, _ earlier: String?) throws(StorageFailure) {
        let watch = Watch()
        let (file, trouble) = try TransferFile.open(directory, knownDamage: knownDamage) { watch.found($0) }
        self.trouble = trouble ?? earlier
        files = Files(file, watch)
        let files = files
        try queue.start(
            CommitQueue.Work(
                commit: { files.commit($0) }, tidy: { watch.damage == nil && files.file.tidy() }, end: { files.file.close() }))
    }

    deinit { queue.close(andWait: false) }

    /// Calls back on any thread when something happens to the database; at once if it was already found to be malformed.
    package func watch(_ onEvent: @escaping @Sendable (Event) -> Void) { files.watch.begin(onEvent) }

    /// Closes the store, sets its damaged database aside, and begins a new one with the sessions and transfers that are known.
    ///
    /// - Parameters:
    ///   - contents: The sessions and transfers.
    ///   - outcomes: The outcomes of ended transfers, by their numbers. The others are read, as far as that is possible.
    /// - Returns: A message for the user.
    /// - Throws: An error if the new database cannot be written; the next ``open(directory:knownDamage:trouble:)`` then sets the
    ///   damaged one aside.
    func beginAnew(with contents: Contents, outcomes: [Int64: [UInt8]]) throws(StorageFailure) -> String {
        let file = files.file
        do {
            try file.beginAnew(with: { _ in contents }) { part, id, database in
                guard part == .outcome else { return nil }
                if let known = outcomes[id] { return known }
                return try Damage.nilIfFound { try file.rows.part(part, of: id, database) }
            }
        } catch {
            throw StorageFailure(error)
        }
        queue.close(andWait: true)
        return TransferFile.setAsideMessage(files.watch.damage ?? "", file.directory)
    }

    /// Seals a credential for resume data, under a key derived from the store's key.
    var resumeSeal: @Sendable (String) -> String {
        let seal = files.seal
        return { seal.resumeSeal(of: $0) }
    }

    /// Returns all sessions and transfers, without the transfers' parts.
    ///
    /// If this method throws that the database is damaged, it can be opened as one with known damage.
    package func load() throws(StorageFailure) -> Contents {
        let file = files.file
        return try file.reading { database in try file.rows.contents(database) }
    }

    /// Returns nil if the transfer has no such part.
    package func part(_ part: Part, of transfer: Int64) throws(StorageFailure) -> [UInt8]? {
        let file = files.file
        return try file.reading { database in try file.rows.part(part, of: transfer, database) }
    }

    /// Returns the orders of many transfers by ID, and as `damaged` the IDs of the orders that cannot be decrypted.
    package func orders(
        of transfers: [Int64]
    ) throws(StorageFailure) -> (orders: [Int64: [UInt8]], damaged: [Int64]) {
        let file = files.file
        return try file.reading { database in
            var orders: [Int64: [UInt8]] = [:]
            var damaged: [Int64] = []
            orders.reserveCapacity(transfers.count)
            for transfer in transfers {
                do {
                    orders[transfer] = try file.rows.part(.order, of: transfer, database)
                } catch StorageFailure.damaged {
                    damaged.append(transfer)
                }
            }
            return (orders, damaged)
        }
    }

    /// Makes the changes durable, atomically for each call, and in the order of the calls.
    ///
    /// Does not wait. `done` is called on a thread that it must not block, when the changes are durable or could not be stored; if
    /// too many changes are already waiting, it is called at once with ``StorageFailure/busy``.
    package func apply(_ changes: [Change], done: @escaping @Sendable (Result<Void, StorageFailure>) -> Void) {
        let call = CommitQueue.Call(changes: changes, done: done, weight: changes.reduce(0) { $0 + $1.weight })
        if let failure = queue.add(call) { done(.failure(failure)) }
    }

    /// Waits until all calls are durable, and closes the files.
    package func close() { queue.close(andWait: true) }
}

extension TransferStore.Change {
    /// The approximate number of bytes in memory.
    var weight: Int {
        switch self {
        case .saveSession(let row): 128 + row.settings.count + row.state.count
        case .addTransfer(let row, let order): 128 + row.state.count + order.count
        case .setState(_, let bytes): 128 + bytes.count
        case .setPart(_, _, let bytes): 128 + (bytes?.count ?? 0)
        case .removeSession, .removeTransfer: 128
        }
    }
}
