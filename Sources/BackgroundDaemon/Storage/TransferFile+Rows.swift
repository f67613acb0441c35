//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials

#if Daemon
import GRDB
#endif

extension TransferStore.Part {
    var table: String { rawValue + "s" }
}

extension TransferFile {
    func contents(_ database: Database) throws -> TransferStore.Contents {
        var contents = TransferStore.Contents()
        let sessions = try Row.fetchCursor(
            database.cachedStatement(sql: "SELECT id, program, identifier, settings, state FROM sessions ORDER BY id"))
        while let row = try sessions.next() {
            guard let id = Self.number(row[0]) else { continue }
            if let session = session(id, row) {
                contents.sessions.append(session)
            } else {
                contents.damagedSessions.append(id)
                if let names = names(id, row) { contents.namedSessions.append(names) }
            }
        }
        let transfers = try Row.fetchCursor(
            database.cachedStatement(sql: "SELECT id, session, task, state FROM transfers ORDER BY id"))
        while let row = try transfers.next() {
            guard let id = Self.number(row[0]) else { continue }
            if let session = Self.number(row[1]), let task = Self.number(row[2]).flatMap(Int.init(exactly:)) {
                let state = Self.bytes(row[3]) ?? Data()
                contents.transfers.append(TransferStore.TransferRow(id: id, session: session, task: task, state: [UInt8](state)))
            } else {
                contents.damagedTransfers.append(id)
            }
        }
        if contents.sessions.isEmpty, !contents.damagedSessions.isEmpty { try requireOwnKey(contents.transfers, database) }
        return contents
    }

    /// Throws if no row can be decrypted: the key is then wrong, the data need not be damaged, and the user can restore the right
    /// key.
    private func requireOwnKey(_ transfers: [TransferStore.TransferRow], _ database: Database) throws {
        let sample = transfers.prefix(16)
        guard !sample.isEmpty else { return }
        for transfer in sample where (try? part(.order, of: transfer.id, database)) != nil { return }
        throw StorageFailure.refused(
            "The list of background transfers was encrypted with another key than the one in \(keyPath): restore that key, or "
                + "remove \(Self.name) beside it, which removes all transfers.")
    }

    func part(_ part: TransferStore.Part, of transfer: Int64, _ database: Database) throws -> [UInt8]? {
        let statement = try database.cachedStatement(sql: "SELECT sealed FROM \"\(part.table)\" WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [transfer]) else { return nil }
        guard let sealed = Self.bytes(row[0]) else {
            throw StorageFailure.damaged("The \(part.rawValue) of transfer \(transfer) is not a blob.")
        }
        return try seal.open(sealed, part.rawValue, transfer)
    }

    private func session(_ id: Int64, _ row: Row) -> TransferStore.SessionRow? {
        guard var session = names(id, row),
            let settings = Self.bytes(row[3]).flatMap({ try? seal.open($0, "settings", id) }), Self.bytes(row[4]) != nil
        else { return nil }
        session.settings = settings
        return session
    }

    private func names(_ id: Int64, _ row: Row) -> TransferStore.SessionRow? {
        guard let program = Self.bytes(row[1]).flatMap({ String(validating: $0, as: UTF8.self) }), !program.isEmpty,
            let identifier = Self.bytes(row[2]).flatMap({ String(validating: $0, as: UTF8.self) })
        else { return nil }
        let state = Self.bytes(row[4]) ?? Data()
        return TransferStore.SessionRow(id: id, program: program, identifier: identifier, settings: [], state: [UInt8](state))
    }

    /// Not inlined: otherwise the optimizer of Swift 6.3 fails.
    @inline(never)
    private static func number(_ value: DatabaseValue) -> Int64? {
        guard case .int64(let number) = value.storage else { return nil }
        return number
    }

    /// Returns the bytes of a value; empty data are stored as NULL.
    private static func bytes(_ value: DatabaseValue) -> Data? {
        switch value.storage {
        case .blob(let data): data
        case .null: Data()
        default: nil
        }
    }
}
