//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingStores

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

    private let file: TransferFile
    private let queue = CommitQueue()

    /// Opens the store in a folder, which is created if it does not exist.
    ///
    /// Only one process at a time may have the store open.
    ///
    /// - Parameter directory: An absolute path.
    /// - Returns: The store.
    /// - Throws: An error if the folder or the files cannot be used.
    package static func open(directory: String) throws(StorageFailure) -> TransferStore {
        try TransferStore(directory)
    }

    private init(_ directory: String) throws(StorageFailure) {
        (file, trouble) = try TransferFile.open(directory)
        let file = file
        try queue.start(
            CommitQueue.Work(commit: { file.commit($0) }, tidy: { file.tidy() }, end: { file.close() }))
    }

    deinit { queue.close(andWait: false) }

    /// Seals a credential for resume data, under a key derived from the store's key.
    var resumeSeal: @Sendable (String) -> String {
        let seal = file.seal
        return { seal.resumeSeal(of: $0) }
    }

    /// Returns all sessions and transfers, without the transfers' parts.
    ///
    /// If this method throws that the database is damaged, the next ``open(directory:)`` sets the database aside.
    package func load() throws(StorageFailure) -> Contents {
        try file.reading { [file] database in try file.contents(database) }
    }

    /// Returns nil if the transfer has no such part.
    package func part(_ part: Part, of transfer: Int64) throws(StorageFailure) -> [UInt8]? {
        try file.reading { [file] database in try file.part(part, of: transfer, database) }
    }

    /// Returns the orders of many transfers by ID, and as `damaged` the IDs of the orders that cannot be decrypted.
    package func orders(
        of transfers: [Int64]
    ) throws(StorageFailure) -> (orders: [Int64: [UInt8]], damaged: [Int64]) {
        try file.reading { [file] database in
            var orders: [Int64: [UInt8]] = [:]
            var damaged: [Int64] = []
            orders.reserveCapacity(transfers.count)
            for transfer in transfers {
                do {
                    orders[transfer] = try file.part(.order, of: transfer, database)
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
    fileprivate var weight: Int {
        switch self {
        case .saveSession(let row): 128 + row.settings.count + row.state.count
        case .addTransfer(let row, let order): 128 + row.state.count + order.count
        case .setState(_, let bytes): 128 + bytes.count
        case .setPart(_, _, let bytes): 128 + (bytes?.count ?? 0)
        case .removeSession, .removeTransfer: 128
        }
    }
}
