// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import LoadingModel

#if Daemon
import GRDB
#endif

extension TransferStore.Part {
    var table: String { rawValue + "s" }
}

/// Reads rows of a list of transfers, of which any part may be damaged.
struct StoredRows: Sendable {
    /// The highest number that a task can have; a larger number is damage.
    private static let lastTask: Int64 = 1 << 52

    let seal: StorageSeal
    let keyPath: String

    func contents(_ database: Database) throws -> TransferStore.Contents {
        var reading = Reading()
        try read(.sessions, in: Self.allIDs, database) { take(session: $1, $0, &reading) }
        try read(.transfers, in: Self.allIDs, database) { take(transfer: $1, $0, &reading) }
        try nameByOrders(&reading, database)
        let contents = reading.contents
        if contents.sessions.isEmpty, !contents.damagedSessions.isEmpty { try requireOwnKey(contents.transfers, database) }
        return contents
    }

    /// Throws if no row can be decrypted: the key is then wrong, the data need not be damaged, and the user can restore the right
    /// key.
    private func requireOwnKey(_ transfers: [TransferStore.TransferRow], _ database: Database) throws {
        let sample = transfers.prefix(16)
        guard !sample.isEmpty else { return }
        for transfer in sample {
            if try Damage.nilIfFound({ try part(.order, of: transfer.id, database) }) != nil { return }
        }
        throw StorageFailure.refused(
            "The list of background transfers was encrypted with another key than the one in \(keyPath): restore that key, or "
                + "remove \(TransferFile.name) beside it, which removes all transfers.")
    }

    func part(_ part: TransferStore.Part, of transfer: Int64, _ database: Database) throws -> [UInt8]? {
        let statement = try database.cachedStatement(sql: "SELECT sealed FROM \"\(part.table)\" WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [transfer]) else { return nil }
        guard let sealed = Self.bytes(row[0]) else {
            throw StorageFailure.damaged("The \(part.rawValue) of transfer \(transfer) is not a blob.")
        }
        return try seal.open(sealed, part.rawValue, transfer)
    }

    // MARK: Rows

    private enum Table: String {
        case sessions = "id, program, identifier, settings, state FROM sessions"
        case transfers = "id, session, task, state FROM transfers"
    }

    /// What has been read so far.
    private struct Reading {
        struct TaskName: Hashable {
            var session: Int64
            var task: Int
        }

        struct Unnamed {
            var id: Int64
            var session: Int64
            /// The task in the transfer's row, if that is one, and the state that belongs to it.
            var task: Int?
            var state: [UInt8] = []
        }

        var contents = TransferStore.Contents()
        /// The places of the transfers among the contents.
        var tasks: [TaskName: Int] = [:]
        /// The transfers whose task cannot be read, or is also another one's.
        var unnamed: [Unnamed] = []
    }

    /// A larger ID is damage, and would leave none for later rows.
    private static let allIDs = 0...(Int64(1) << 53)

    /// Reads the rows with these IDs, in their order.
    ///
    /// - Throws: An error if a row cannot be read. The IDs must grow: in a damaged table, pages may be linked so that reading them
    ///   would never end.
    private func read(
        _ table: Table, in ids: ClosedRange<Int64>, isReversed: Bool = false, _ database: Database, _ take: (Int64, Row) -> Void
    ) throws {
        let statement = try database.cachedStatement(
            sql: "SELECT \(table.rawValue) WHERE id BETWEEN ? AND ? ORDER BY id\(isReversed ? " DESC" : "")")
        let rows = try Row.fetchCursor(statement, arguments: [ids.lowerBound, ids.upperBound])
        var last: Int64?
        while let row = try rows.next() {
            guard let id = Self.number(row[0]), ids.contains(id), last.map({ isReversed ? id < $0 : id > $0 }) ?? true else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the rows of \(table) are not in order")
            }
            last = id
            take(id, row)
        }
    }

    private func take(session row: Row, _ id: Int64, _ reading: inout Reading) {
        if let session = session(id, row) {
            reading.contents.sessions.append(session)
        } else {
            reading.contents.damagedSessions.append(id)
            if let names = names(id, row) { reading.contents.namedSessions.append(names) }
        }
    }

    private func take(transfer row: Row, _ id: Int64, _ reading: inout Reading) {
        guard let session = Self.number(row[1]) else { return reading.contents.damagedTransfers.append(id) }
        guard let task = Self.number(row[2]), 0...Self.lastTask ~= task else {
            return reading.unnamed.append(Reading.Unnamed(id: id, session: session))
        }
        let state = [UInt8](Self.bytes(row[3]) ?? Data())
        let name = Reading.TaskName(session: session, task: Int(task))
        if reading.tasks[name] == nil {
            reading.tasks[name] = reading.contents.transfers.count
            reading.contents.transfers.append(
                TransferStore.TransferRow(id: id, session: session, task: name.task, state: state))
        } else {
            reading.unnamed.append(Reading.Unnamed(id: id, session: session, task: name.task, state: state))
        }
    }

    /// Finds the tasks of the transfers without a name in their orders.
    ///
    /// A transfer whose row has another task, or none, gets an empty state.
    private func nameByOrders(_ reading: inout Reading, _ database: Database) throws {
        guard !reading.unnamed.isEmpty else { return }
        // Of the transfers with the same task, any may be the damaged one.
        let doubtful = Set(
            reading.unnamed.compactMap { one in
                one.task.flatMap { reading.tasks[Reading.TaskName(session: one.session, task: $0)] }
            })
        let others = doubtful.map { reading.contents.transfers[$0] }.map {
            Reading.Unnamed(id: $0.id, session: $0.session, task: $0.task, state: $0.state)
        }
        var known = reading.contents.transfers.enumerated().filter { !doubtful.contains($0.offset) }.map(\.element)
        var names = Set(known.map { Reading.TaskName(session: $0.session, task: $0.task) })
        for one in reading.unnamed + others {
            if let order = try Damage.nilIfFound({ try part(.order, of: one.id, database) }),
                let task = try? MessageCoding.decodeOrder(order).task.id,
                0...Self.lastTask ~= Int64(task), names.insert(Reading.TaskName(session: one.session, task: task)).inserted
            {
                let state = task == one.task ? one.state : []
                known.append(TransferStore.TransferRow(id: one.id, session: one.session, task: task, state: state))
            } else {
                reading.contents.damagedTransfers.append(one.id)
            }
        }
        reading.unnamed = []
        reading.contents.transfers = known.sorted { $0.id < $1.id }
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
        // A single changed bit makes a text of a blob.
        case .string(let text): Data(text.utf8)
        case .null: Data()
        default: nil
        }
    }
}

// MARK: Damaged tables

extension StoredRows {
    /// How many times reading may fail, in all and between two rows, before the rest of a table is left.
    ///
    /// Each row of a damaged page makes it fail a few times.
    private static let failureLimit = (all: 50_000, betweenRows: 4_000)

    /// Reads what can be read of a database that SQLite calls malformed; outside of a transaction, because the first failure would
    /// end it.
    ///
    /// - Returns: All sessions and transfers that can be named. A transfer whose own row is lost has an empty state.
    /// - Throws: An error that is no damage, for example of the disk.
    func remains(_ database: Database) throws -> TransferStore.Contents {
        var reading = Reading()
        try readAround(.sessions, database) { take(session: $1, $0, &reading) }
        try readAround(.transfers, database) { take(transfer: $1, $0, &reading) }
        let known = Set(reading.contents.transfers.map(\.id) + reading.unnamed.map(\.id) + reading.contents.damagedTransfers)
        for session in reading.contents.sessions + reading.contents.namedSessions {
            for id in try indexed(session.id, database) where !known.contains(id) {
                reading.unnamed.append(Reading.Unnamed(id: id, session: session.id))
            }
        }
        try nameByOrders(&reading, database)
        reading.contents.sessions.sort { $0.id < $1.id }
        reading.contents.transfers.sort { $0.id < $1.id }
        return reading.contents
    }

    /// Reads a table around its damaged pages: a part that cannot be read in either direction is divided, and each half is read.
    private func readAround(_ table: Table, _ database: Database, _ take: (Int64, Row) -> Void) throws {
        var parts = [Self.allIDs]
        var failures = (all: 0, betweenRows: 0)
        func fail(_ error: any Error) throws {
            guard Damage.isShown(by: error) else { throw error }
            failures = (failures.all + 1, failures.betweenRows + 1)
        }
        while let part = parts.popLast(), failures.all < Self.failureLimit.all,
            failures.betweenRows < Self.failureLimit.betweenRows
        {
            var (low, high) = (part.lowerBound, part.upperBound)
            do {
                try read(table, in: part, database) { id, row in
                    take(id, row)
                    failures.betweenRows = 0
                    low = id + 1
                }
                continue
            } catch { try fail(error) }
            guard low < high else { continue }
            do {
                try read(table, in: low...high, isReversed: true, database) { id, row in
                    take(id, row)
                    failures.betweenRows = 0
                    high = id - 1
                }
                continue
            } catch { try fail(error) }
            guard low < high else { continue }
            let middle = low + (high - low) / 2
            // The lower half is read first: the upper one may be without rows, and endless.
            parts += [middle + 1...high, low...middle]
        }
    }

    /// The IDs of a session's transfers, according to the index.
    private func indexed(_ session: Int64, _ database: Database) throws -> [Int64] {
        var ids: Set<Int64> = []
        for order in ["", " DESC"] {
            let found = try Damage.nilIfFound {
                try Int64.fetchCursor(
                    database,
                    sql: "SELECT id FROM transfers INDEXED BY transfers_session WHERE session = ? ORDER BY id\(order)",
                    arguments: [session])
            }
            var last: Int64?
            while let id = try Damage.nilIfFound({ try found?.next() }), last.map({ order.isEmpty ? id > $0 : id < $0 }) ?? true {
                ids.insert(id)
                last = id
            }
        }
        return ids.sorted()
    }
}
