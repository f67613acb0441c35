// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingStores

#if Daemon
import GRDB
#endif

/// Replaces the database by a new one with the same sessions and transfers.
///
/// The new database is complete before it gets its name, so that a process that ends meanwhile loses neither.
extension TransferFile {
    /// Returns a part of a transfer, or nil if there is none or it cannot be read.
    typealias PartReader = (TransferStore.Part, Int64) throws -> [UInt8]?

    /// Sets the damaged database aside; the new one contains all sessions and transfers that can still be named, of which those
    /// without an end are lost.
    static func beginAnew(
        afterDamageIn folder: borrowing StoreDirectory, _ directory: String, _ seal: StorageSeal
    ) throws {
        let rows = StoredRows(seal: seal, keyPath: directory + "/" + StorageKey.name)
        let path = directory + "/" + name
        if try exists(name, in: folder), let old = try Damage.nilIfFound({ try openForReading(at: path) }) {
            defer { try? old.close() }
            var contents = try old.inDatabase { try rows.remains($0) }
            for index in contents.transfers.indices {
                contents.transfers[index].state = TransferRecord.lost(contents.transfers[index].state)
            }
            // The results of ended transfers are encrypted, and so are whole if they can be read.
            try build(contents, in: folder, directory, seal) { part, id in
                guard part == .outcome else { return nil }
                return try old.inDatabase { database in try Damage.nilIfFound { try rows.part(part, of: id, database) } }
            }
        } else {
            try build(TransferStore.Contents(), in: folder, directory, seal) { _, _ in nil }
        }
        try setAside(in: folder)
        try nameNext(in: folder)
    }

    /// Begins a new database, and sets aside what has the database's name; this one stays open, to be closed or to be read again.
    ///
    /// - Parameters:
    ///   - contents: Returns the sessions and transfers of the new database.
    ///   - part: Returns a part of a transfer.
    /// - Returns: The inode of the new database; nil if it is not known.
    /// - Throws: An error if the new database cannot be completed or named.
    @discardableResult
    func beginAnew(
        with contents: (Database) throws -> TransferStore.Contents,
        _ part: (TransferStore.Part, Int64, Database) throws -> [UInt8]?
    ) throws -> (inode: UInt64?, seal: StorageSeal) {
        let folder = try StoreDirectory(directory, creating: true)
        // The key may have been removed together with the database.
        guard let seal = StorageSeal(key: try StorageKey.find(in: folder)) else {
            throw StorageFailure.failed("The key of background transfers has the wrong length.")
        }
        // Readers may have to open the file, which may be gone.
        try pool.writeWithoutTransaction { database in
            try Self.build(contents(database), in: folder, directory, seal) { try part($0, $1, database) }
        }
        let inode = Self.inode(of: Self.nextName, in: directory)
        if try Self.exists(Self.name, in: folder) { try Self.setAside(in: folder) }
        try Self.nameNext(in: folder)
        return (inode, seal)
    }

    /// Names the new database of a process that ended before it did so.
    static func adoptNext(in folder: borrowing StoreDirectory, _ directory: String) throws {
        guard try exists(nextName, in: folder) else { return }
        do {
            let pool = try open(in: folder, directory, as: nextName)
            defer { try? pool.close() }
            try emptyLog(of: pool)
        } catch {
            guard Damage.isShown(by: error) else { throw error }
            return removeNext(in: folder)
        }
        try nameNext(in: folder)
    }

    static func exists(_ name: String, in folder: borrowing StoreDirectory) throws -> Bool {
        guard faccessat(folder.number, name, F_OK, 0) != 0 else { return true }
        guard errno == ENOENT else { throw StoreFailure.system(errno, while: "looking for \(name)") }
        return false
    }

    private static func build(
        _ contents: TransferStore.Contents, in folder: borrowing StoreDirectory, _ directory: String, _ seal: StorageSeal,
        _ part: PartReader
    ) throws {
        removeNext(in: folder)
        do {
            try fill(contents, in: folder, directory, seal, part)
        } catch {
            // It would keep the space that a disk lacks.
            removeNext(in: folder)
            throw error
        }
    }

    private static func fill(
        _ contents: TransferStore.Contents, in folder: borrowing StoreDirectory, _ directory: String, _ seal: StorageSeal,
        _ part: PartReader
    ) throws {
        let pool = try open(in: folder, directory, as: nextName)
        defer { try? pool.close() }
        let next = TransferFile(pool: pool, seal: seal, directory: directory, inodes: []) { _ in }
        let rows = contents.sessions + contents.namedSessions
        try next.commitAlone(rows.map { .saveSession($0) })
        let sessions = Set(rows.map(\.id))
        var changes: [TransferStore.Change] = []
        var weight = 0
        for row in contents.transfers where sessions.contains(row.session) {
            var own = [TransferStore.Change.addTransfer(row, order: try part(.order, row.id) ?? [])]
            for other in TransferStore.Part.allCases where other != .order {
                if let bytes = try part(other, row.id) { own.append(.setPart(row.id, other, bytes)) }
            }
            changes += own
            weight += own.reduce(0) { $0 + $1.weight }
            guard weight >= batch else { continue }
            try next.commitAlone(changes)
            (changes, weight) = ([], 0)
        }
        try next.commitAlone(changes)
        try emptyLog(of: pool)
    }

    /// About how many bytes are written at a time; a single transfer may have more.
    private static let batch = 8 << 20

    /// Moves the log into the database file: only that file gets another name.
    private static func emptyLog(of pool: DatabasePool) throws {
        let log = try pool.writeWithoutTransaction { database in try database.checkpoint(.truncate) }
        guard log.walFrameCount <= 0 else {
            throw StorageFailure.failed("The log of a new list of background transfers could not be emptied.")
        }
    }

    static func removeNext(in folder: borrowing StoreDirectory) {
        for end in ends { unlinkat(folder.number, nextName + end, 0) }
    }

    private static func nameNext(in folder: borrowing StoreDirectory) throws {
        // Another database's log, which SQLite would copy into this one.
        for end in ends.dropFirst() where unlinkat(folder.number, name + end, 0) != 0 && errno != ENOENT {
            throw StoreFailure.system(errno, while: "removing the log of another database")
        }
        guard renameat(folder.number, nextName, folder.number, name) == 0 else {
            throw StoreFailure.system(errno, while: "naming a new database")
        }
        try folder.sync()
    }
}
