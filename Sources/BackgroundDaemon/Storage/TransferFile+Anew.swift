//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingStores

#if Daemon
import GRDB
#endif

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Replaces the database by a new one with the same sessions and transfers.
///
/// The new database is complete before it gets its name, so that a process that ends meanwhile loses neither.
extension TransferFile {
    /// Returns a part of a transfer, or nil if there is none or it cannot be read.
    typealias PartReader = (TransferStore.Part, Int64) -> [UInt8]?

    /// Sets the damaged database aside; the new one contains all sessions and transfers that can still be named, of which those
    /// without an end are lost.
    static func beginAnew(
        afterDamageIn folder: borrowing StoreDirectory, _ directory: String, _ seal: StorageSeal
    ) throws {
        let rows = StoredRows(seal: seal, keyPath: directory + "/" + StorageKey.name)
        if let old = try? openForReading(at: directory + "/" + name) {
            defer { try? old.close() }
            var contents = old.inDatabase { rows.remains($0) }
            for index in contents.transfers.indices {
                contents.transfers[index].state = TransferRecord.lost(contents.transfers[index].state)
            }
            // The results of ended transfers are encrypted, and so are whole if they can be read.
            try build(contents, in: folder, directory, seal) { part, id in
                part != .outcome ? nil : old.inDatabase { (try? rows.part(part, of: id, $0)) ?? nil }
            }
        } else {
            try build(TransferStore.Contents(), in: folder, directory, seal) { _, _ in nil }
        }
        try setAside(in: folder)
        try nameNext(in: folder)
    }

    /// Begins a new database, closes this one, and sets aside what has the database's name.
    ///
    /// - Parameters:
    ///   - contents: Returns the sessions and transfers of the new database.
    ///   - part: Returns a part of a transfer.
    /// - Throws: An error if the new database cannot be completed; this one may be closed by then.
    func beginAnew(
        with contents: (Database) throws -> TransferStore.Contents, _ part: (TransferStore.Part, Int64, Database) -> [UInt8]?
    ) throws {
        let folder = try StoreDirectory(directory, creating: true)
        // The key may have been removed together with the database.
        guard let seal = StorageSeal(key: try StorageKey.find(in: folder)) else {
            throw StorageFailure.failed("The key of background transfers has the wrong length.")
        }
        // Readers may have to open the file, which may be gone.
        try pool.writeWithoutTransaction { database in
            try Self.build(contents(database), in: folder, directory, seal) { part($0, $1, database) }
        }
        // SQLite removes the log by its name, which must not be the new database's yet.
        try? pool.close()
        if faccessat(folder.number, Self.name, F_OK, 0) == 0 { try Self.setAside(in: folder) }
        try Self.nameNext(in: folder)
    }

    private static func build(
        _ contents: TransferStore.Contents, in folder: borrowing StoreDirectory, _ directory: String, _ seal: StorageSeal,
        _ part: PartReader
    ) throws {
        removeNext(in: folder)
        let pool = try open(in: folder, directory, as: nextName)
        let next = TransferFile(pool: pool, seal: seal, directory: directory, inodes: []) { _ in }
        defer { next.close() }
        func add(_ changes: [TransferStore.Change]) throws { try next.commitAlone(changes) }
        try add((contents.sessions + contents.namedSessions).map { .saveSession($0) })
        let sessions = Set((contents.sessions + contents.namedSessions).map(\.id))
        let transfers = contents.transfers.filter { sessions.contains($0.session) }
        for start in stride(from: 0, to: transfers.count, by: batch) {
            try add(
                transfers[start..<min(start + batch, transfers.count)].flatMap { row -> [TransferStore.Change] in
                    let others = TransferStore.Part.allCases.filter { $0 != .order }
                    return [.addTransfer(row, order: part(.order, row.id) ?? [])]
                        + others.compactMap { other in part(other, row.id).map { .setPart(row.id, other, $0) } }
                })
        }
    }

    /// How many transfers are written at a time; a single one may take several megabytes.
    private static let batch = 64

    static func removeNext(in folder: borrowing StoreDirectory) {
        for end in ["-shm", "-wal", ""] { unlinkat(folder.number, nextName + end, 0) }
    }

    private static func nameNext(in folder: borrowing StoreDirectory) throws {
        // Another database's log.
        for end in ["-shm", "-wal"] { unlinkat(folder.number, name + end, 0) }
        guard renameat(folder.number, nextName, folder.number, name) == 0 else {
            throw StoreFailure.system(errno, while: "naming a new database")
        }
        try folder.sync()
    }
}
