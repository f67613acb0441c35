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

/// Keeps what the daemon must not lose, in SQLite.
///
/// What is in a request is encrypted, with a key that is in a file beside: whoever gets hold of the database alone, in a backup say, has
/// no use of it. What the daemon has to look at in order to know what it has to do is in clear.
package final class TransferStore: Sendable {
    /// A program's session.
    package struct SessionRow: Sendable, Hashable {
        package var id: Int64
        package var program: String
        package var identifier: String
        /// Encrypted in the file.
        package var settings: [UInt8]
        /// In clear.
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
        /// In clear.
        package var state: [UInt8]

        package init(id: Int64, session: Int64, task: Int, state: [UInt8]) {
            self.id = id
            self.session = session
            self.task = task
            self.state = state
        }
    }

    /// What of a transfer is large, encrypted in the file, and read only when it is wanted.
    package enum Part: String, Sendable, CaseIterable { case order, resume, response, outcome }

    /// One thing to change.
    package enum Change: Sendable {
        /// Begins or changes the session of that id.
        case saveSession(SessionRow)
        /// With its transfers; nothing where there is none.
        case removeSession(Int64)
        /// Fails where there is one of that id already, or no such session.
        case addTransfer(TransferRow, order: [UInt8])
        /// Fails where there is no such transfer.
        case setState(Int64, [UInt8])
        /// Fails where there is no such transfer, unless the part is to be removed.
        case setPart(Int64, Part, [UInt8]?)
        /// Nothing where there is none.
        case removeTransfer(Int64)
    }

    /// All rows, by id.
    package struct Contents: Sendable {
        package var sessions: [SessionRow] = []
        /// A transfer whose state cannot be read has none.
        package var transfers: [TransferRow] = []
        /// What is there, but cannot be read: the ids.
        package var damagedSessions: [Int64] = []
        package var damagedTransfers: [Int64] = []
        /// Of the damaged sessions those whose names can be read; their settings are empty.
        package var namedSessions: [SessionRow] = []
    }

    /// What is to be told to whoever runs the daemon: that a damaged database was set aside.
    package let trouble: String?

    private let file: TransferFile
    private let queue = CommitQueue()

    /// Opens what is in the folder, which is made if there is none.
    ///
    /// Only one process may have it open.
    ///
    /// - Parameter directory: An absolute path.
    /// - Returns: The store.
    /// - Throws: That the folder or the files cannot be used.
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

    /// Seals a credential for resume data, under a key that is made of the store's.
    var resumeSeal: @Sendable (String) -> String {
        let seal = file.seal
        return { seal.resumeSeal(of: $0) }
    }

    /// All sessions and transfers, without the transfers' parts.
    ///
    /// Where it throws that the database is damaged, it is set aside by the next ``open(directory:)``.
    package func load() throws(StorageFailure) -> Contents {
        try file.reading { [file] database in try file.contents(database) }
    }

    /// Nil where the transfer has no such part.
    package func part(_ part: Part, of transfer: Int64) throws(StorageFailure) -> [UInt8]? {
        try file.reading { [file] database in try file.part(part, of: transfer, database) }
    }

    /// The orders of many transfers at once, by id; those that do not open are `damaged`.
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

    /// Makes the changes durable: all of one call together, or none of them, and in order of the calls.
    ///
    /// It does not wait. `done` is called when they are durable, on a thread where it should not stay long; or when they could not be
    /// made so, or with ``StorageFailure/busy``, at once, where too much waits already.
    package func apply(_ changes: [Change], done: @escaping @Sendable (Result<Void, StorageFailure>) -> Void) {
        let call = CommitQueue.Call(changes: changes, done: done, weight: changes.reduce(0) { $0 + $1.weight })
        if let failure = queue.add(call) { done(.failure(failure)) }
    }

    /// Waits until what was given to it is durable, and closes the files.
    package func close() { queue.close(andWait: true) }
}

extension TransferStore.Change {
    /// The bytes that it takes in memory, roughly.
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
