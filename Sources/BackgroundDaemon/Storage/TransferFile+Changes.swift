// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

#if Daemon
import GRDB
#endif

extension TransferFile {
    /// Commits all calls in one transaction; if that fails, commits each call in a separate transaction, so that one failing call
    /// does not affect the others.
    func commit(_ calls: [CommitQueue.Call]) -> [Result<Void, StorageFailure>] {
        if let results = commitTogether(calls) { return results }
        var hasCheckpointed = false
        return calls.map { call in
            let result = commitAlone(call)
            guard case .failure(.diskFull) = result, !hasCheckpointed else { return result }
            hasCheckpointed = true
            // The log's pages often replace pages of the database, so a checkpoint may free space.
            _ = try? pool.writeWithoutTransaction { database in try database.checkpoint(.truncate) }
            return commitAlone(call)
        }
    }

    /// Returns nil if nothing was committed.
    private func commitTogether(_ calls: [CommitQueue.Call]) -> [Result<Void, StorageFailure>]? {
        guard calls.count > 1 else { return nil }
        return try? pool.writeWithoutTransaction { database in
            var results: [Result<Void, StorageFailure>] = []
            try database.inTransaction(.immediate) {
                for call in calls { results.append(try commitOne(call, database)) }
                return .commit
            }
            return results
        }
    }

    /// Throws if the other calls cannot be committed either.
    private func commitOne(_ call: CommitQueue.Call, _ database: Database) throws -> Result<Void, StorageFailure> {
        var result = Result<Void, StorageFailure>.success(())
        try statement("SAVEPOINT one_call", database)
        do {
            for change in call.changes { try make(change, database) }
        } catch {
            let failure = StorageFailure(error)
            guard failure.concernsOneCall, database.isInsideTransaction else { throw error }
            try statement("ROLLBACK TO one_call", database)
            result = .failure(failure)
        }
        try statement("RELEASE one_call", database)
        return result
    }

    private func commitAlone(_ call: CommitQueue.Call) -> Result<Void, StorageFailure> {
        do throws(StorageFailure) {
            return .success(try commitAlone(call.changes))
        } catch {
            return .failure(error)
        }
    }

    func commitAlone(_ changes: [TransferStore.Change]) throws(StorageFailure) {
        do {
            try pool.writeWithoutTransaction { database in
                try database.inTransaction(.immediate) {
                    for change in changes { try make(change, database) }
                    return .commit
                }
            }
        } catch {
            let failure = StorageFailure(error)
            note(failure, of: error)
            throw failure
        }
    }

    private func statement(_ text: String, _ database: Database, _ arguments: StatementArguments = []) throws {
        try database.cachedStatement(sql: text).execute(arguments: arguments)
    }

    private func make(_ change: TransferStore.Change, _ database: Database) throws {
        switch change {
        case .saveSession(let row):
            // Not REPLACE, which would remove the session's transfers.
            try statement(
                """
                INSERT INTO sessions (id, program, identifier, settings, state) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET program = excluded.program, identifier = excluded.identifier,
                settings = excluded.settings, state = excluded.state
                """,
                database,
                [
                    row.id, Data(row.program.utf8), Data(row.identifier.utf8), try seal.seal(row.settings, "settings", row.id),
                    try Self.checkedData(row.state),
                ])
        case .removeSession(let id): try statement("DELETE FROM sessions WHERE id = ?", database, [id])
        case .addTransfer(let row, let order):
            try statement(
                "INSERT INTO transfers (id, session, task, state) VALUES (?, ?, ?, ?)", database,
                [row.id, row.session, Int64(row.task), try Self.checkedData(row.state)])
            try set(.order, of: row.id, order, database)
        case .setState(let id, let state):
            try statement("UPDATE transfers SET state = ? WHERE id = ?", database, [try Self.checkedData(state), id])
            guard database.changesCount == 1 else { throw StorageFailure.missing("There is no transfer \(id).") }
        case .setPart(let id, let part, let bytes?): try set(part, of: id, bytes, database)
        case .setPart(let id, let part, nil): try statement("DELETE FROM \"\(part.table)\" WHERE id = ?", database, [id])
        case .removeTransfer(let id): try statement("DELETE FROM transfers WHERE id = ?", database, [id])
        }
    }

    private func set(_ part: TransferStore.Part, of id: Int64, _ bytes: [UInt8], _ database: Database) throws {
        try statement(
            "INSERT INTO \"\(part.table)\" (id, sealed) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed",
            database, [id, try seal.seal(bytes, part.rawValue, id)])
    }

    private static func checkedData(_ bytes: [UInt8]) throws(StorageFailure) -> Data {
        guard bytes.count <= StorageSeal.limit else { throw .failed("\(bytes.count) bytes are too many to store.") }
        return Data(bytes)
    }

    /// Returns some of the unused space to the system, if there is a lot of unused space.
    ///
    /// - Returns: Whether more unused space can be returned.
    func tidy() -> Bool {
        let piece = 512
        let left = try? pool.writeWithoutTransaction { database in
            guard let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count"),
                let all = try Int.fetchOne(database, sql: "PRAGMA page_count"), free > 1024, free > all / 2
            else { return false }
            try database.execute(sql: "PRAGMA incremental_vacuum(\(piece))")
            return try Int.fetchOne(database, sql: "PRAGMA page_count").map { $0 < all } ?? false
        }
        return left ?? false
    }
}

extension StorageFailure {
    /// Whether the failure concerns only this call, not the other calls that are committed with it.
    fileprivate var concernsOneCall: Bool {
        switch self {
        case .missing, .failed: true
        case .busy, .diskFull, .damaged, .newer, .refused, .closed: false
        }
    }
}
