// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import FoundationEssentials
import LibC
import LoadingStores
import Synchronization

#if Daemon
import GRDB
#endif

/// The database of a ``TransferStore``, with its files.
struct TransferFile: Sendable {
    static let name = "transfers.sqlite"
    static let damagedName = name + ".damaged"
    /// A file that exists if damage was found while the database was open.
    static let suspectName = name + ".suspect"
    /// A complete database that is about to get the name of another one.
    static let nextName = name + ".next"
    /// What the names of a database's files end with.
    static let ends = ["", "-wal", "-shm"]
    /// Up to this size, a database that was not closed is checked completely before it is used.
    private static let fullCheckLimit = 32 << 20

    let pool: DatabasePool
    let seal: StorageSeal
    let directory: String
    /// Distinguishes the opened files from others that have the same names; nil if it is not known.
    let inodes: [UInt64?]
    /// Called with the reason when SQLite finds the database malformed.
    let onDamage: @Sendable (String) -> Void

    var rows: StoredRows { StoredRows(seal: seal, keyPath: directory + "/" + StorageKey.name) }

    /// Opens the database; creates a new one if no database exists, or if the existing one is damaged and has been set aside.
    ///
    /// - Parameters:
    ///   - directory: The folder of the files.
    ///   - damage: Why the existing database is known to be damaged; nil if it is to be checked.
    ///   - onDamage: Called with the reason when the database is found to be malformed later; on any thread.
    /// - Returns: The database, and a message if a damaged database was set aside.
    /// - Throws: An error if the folder or the files cannot be used.
    static func open(
        _ directory: String, knownDamage damage: String? = nil, onDamage: @escaping @Sendable (String) -> Void
    ) throws(StorageFailure) -> (TransferFile, trouble: String?) {
        do {
            let folder = try StoreDirectory(directory, creating: true)
            guard let seal = StorageSeal(key: try StorageKey.find(in: folder)) else {
                throw StorageFailure.failed("The key of background transfers has the wrong length.")
            }
            // An earlier process may have ended between the two renames, or before them.
            if try exists(name, in: folder) { removeNext(in: folder) } else { try adoptNext(in: folder, directory) }
            do throws(StorageFailure) {
                if let damage { throw .damaged(damage) }
                return (try opened(in: folder, directory, seal, onDamage), nil)
            } catch .damaged(let reason) {
                try beginAnew(afterDamageIn: folder, directory, seal)
                return (try opened(in: folder, directory, seal, onDamage), setAsideMessage(reason, directory))
            }
        } catch {
            throw StorageFailure(error)
        }
    }

    private static func opened(
        in folder: borrowing StoreDirectory, _ directory: String, _ seal: StorageSeal,
        _ onDamage: @escaping @Sendable (String) -> Void
    ) throws(StorageFailure) -> TransferFile {
        let pool = try open(in: folder, directory)
        return TransferFile(pool: pool, seal: seal, directory: directory, inodes: inodes(in: directory), onDamage: onDamage)
    }

    static func setAsideMessage(_ reason: String, _ directory: String) -> String {
        "\(reason) It was renamed to \(directory)/\(damagedName), and a new list was started, in which its unfinished tasks have failed."
    }

    /// Whether the database and its log are still at their place, and there is a key; otherwise changes would be lost with the process.
    ///
    /// Also true if that cannot be found out.
    var isInPlace: Bool {
        // A file may have been removed before its inode was known.
        zip(Self.inodes(in: directory), inodes).allSatisfy { $0 == nil || $0 != 0 && ($1 == nil || $0 == $1) }
            && Self.inode(of: StorageKey.name, in: directory) != 0
    }

    private static func inodes(in directory: String) -> [UInt64?] {
        [name, name + "-wal"].map { inode(of: $0, in: directory) }
    }

    /// Returns 0 for a file that does not exist, and nil if the system does not say.
    static func inode(of name: String, in directory: String) -> UInt64? {
        var facts = cls_file_facts()
        return switch cls_path_facts(directory + "/" + name, &facts) {
        case 0: facts.inode
        case -ENOENT, -ENOTDIR: 0
        default: nil
        }
    }

    /// Moves the log into the database file, and closes the database.
    func close() {
        // An empty log tells the next process that the database was closed properly.
        _ = try? pool.writeWithoutTransaction { database in try database.checkpoint(.truncate) }
        try? pool.close()
    }

    /// Reads committed data, on the calling thread.
    func reading<Value>(_ work: @Sendable (Database) throws -> Value) throws(StorageFailure) -> Value {
        do {
            return try pool.read(work)
        } catch {
            let failure = StorageFailure(error)
            note(failure, of: error)
            throw failure
        }
    }

    /// If the failure shows damage, marks the database, so that the next process that opens it checks it completely.
    func note(_ failure: StorageFailure, of error: any Error) {
        guard case .damaged(let reason) = failure, error is DatabaseError else { return }
        onDamage(reason)
        guard let folder = try? StoreDirectory(directory, creating: false) else { return }
        _ = try? Descriptor(Self.suspectName, in: folder.number, O_WRONLY | O_CREAT, doing: "marking it")
        try? folder.sync()
    }
}

// MARK: Opening

extension TransferFile {
    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1", foreignKeyChecks: .immediate) { database in
            // Names are stored as bytes: SQLite's text ends at a NUL.
            try database.execute(
                sql: """
                    CREATE TABLE sessions (id INTEGER PRIMARY KEY, program BLOB, identifier BLOB, settings BLOB, state BLOB);
                    CREATE TABLE transfers (
                        id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
                        task INTEGER NOT NULL, state BLOB);
                    CREATE INDEX transfers_session ON transfers (session);
                    """)
            // Each part has a separate table, so that a change of the state does not rewrite the parts.
            for part in TransferStore.Part.allCases {
                try database.execute(
                    sql: """
                        CREATE TABLE "\(part.table)" (
                            id INTEGER PRIMARY KEY REFERENCES transfers ON DELETE CASCADE, sealed BLOB NOT NULL);
                        """)
            }
        }
        // From here on, rows are written in the format of protocol version 2, and read in both formats; versions that know only the
        // first format leave the database alone. Nothing is converted now, because programs wait and the disk may be full.
        migrator.registerMigration("2", foreignKeyChecks: .immediate) { _ in }
        return migrator
    }

    /// The connections that checked a database, retained for the lifetime of the process.
    ///
    /// If a connection were released, Dispatch would dispose of its queue on a separate thread, which would wake every second
    /// from then on.
    private static let checkingQueues = Mutex<[DatabaseQueue]>([])

    static func open(
        in folder: borrowing StoreDirectory, _ directory: String, as name: String = name
    ) throws(StorageFailure) -> DatabasePool {
        do {
            try prepare(name, in: folder)
            var facts = cls_file_facts()
            let log = cls_path_facts("\(directory)/\(name)-wal", &facts) == 0 ? Int(clamping: facts.size) : 0
            let size = cls_path_facts("\(directory)/\(name)", &facts) == 0 ? Int(clamping: facts.size) : 0
            let isSuspect = name == Self.name && faccessat(folder.number, suspectName, F_OK, 0) == 0
            let path = directory + "/" + name
            let isUnclosed = log > 0 && log + size <= fullCheckLimit
            try verify(at: path, isSuspect ? "integrity_check" : isUnclosed ? "quick_check" : nil)
            let pool = try DatabasePool(path: path, configuration: configuration)
            // With GRDB's own setting, a power failure may lose committed changes.
            try pool.writeWithoutTransaction { database in try database.execute(sql: "PRAGMA synchronous = FULL") }
            try migrator.migrate(pool)
            if isSuspect { unlinkat(folder.number, suspectName, 0) }
            return pool
        } catch {
            throw StorageFailure(error)
        }
    }

    /// Throws if the database is damaged, or a newer version has written it; opens the database read-only, so that it is not
    /// modified before the check, which one of SQLite's pragmas makes, has passed.
    private static func verify(at path: String, _ pragma: String?) throws {
        let queue = try openForReading(at: path)
        defer { try? queue.close() }
        try queue.read { database in
            if let pragma { try check(database, pragma) }
            try checkVersion(database)
        }
    }

    static func openForReading(at path: String) throws -> DatabaseQueue {
        var configuration = configuration
        configuration.readonly = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        checkingQueues.withLock { $0.append(queue) }
        return queue
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "transfers"
        configuration.busyMode = .timeout(5)
        // Otherwise GRDB traps if a transaction cannot be rolled back.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA trusted_schema = OFF;
                    PRAGMA cell_size_check = ON;
                    PRAGMA temp_store = MEMORY;
                    """)
            guard !database.configuration.readonly else { return }
            // `auto_vacuum` applies only to an empty database.
            try database.execute(
                sql: """
                    PRAGMA auto_vacuum = INCREMENTAL;
                    PRAGMA journal_size_limit = 4194304;
                    """)
        }
        return configuration
    }

    /// Throws if a newer version has written the database, or its tables are not the expected ones: damage may turn a name into
    /// another name.
    private static func checkVersion(_ database: Database) throws {
        let tables = ["sessions": "program, identifier, settings, state", "transfers": "session, task, state"]
            .merging(TransferStore.Part.allCases.map { ($0.table, "sealed") }) { first, _ in first }
        do {
            guard try !migrator.hasBeenSuperseded(database) else {
                throw StorageFailure.newer("A newer version has written the list of background transfers.")
            }
            if try migrator.appliedIdentifiers(database).isEmpty {
                guard try Row.fetchOne(database, sql: "SELECT name FROM sqlite_master WHERE tbl_name <> 'grdb_migrations'") == nil
                else {
                    throw StorageFailure.damaged("The list of background transfers has no version.")
                }
            } else {
                for (table, columns) in tables {
                    _ = try database.makeStatement(sql: "SELECT id, \(columns) FROM \"\(table)\"")
                    // Reading a view may never end.
                    let isTable = "SELECT type = 'table' FROM sqlite_master WHERE name = ?"
                    guard try Bool.fetchOne(database, sql: isTable, arguments: [table]) == true else {
                        throw StorageFailure.damaged("The list of background transfers is damaged: \(table) is not a table.")
                    }
                }
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
            throw StorageFailure.damaged("The list of background transfers is damaged: \(error.message ?? "a table is missing").")
        }
    }

    private static func check(_ database: Database, _ pragma: String) throws {
        // Damage must be found twice: a failure of the disk may have passed, and SQLite reports some of them as damage.
        for _ in 1...2 {
            let found = try Row.fetchOne(database, sql: "PRAGMA \(pragma)(1)").map { row -> DatabaseValue in row[0] }
            guard case .string(let text)? = found?.storage else { continue }
            if text == "ok" { return }
            // The check does not fail if the disk does not return a page.
            guard let mark = text.firstRange(of: "unable to get the page. error code="),
                let code = CInt(text[mark.upperBound...].prefix { $0.isNumber }).map(ResultCode.init(rawValue:)),
                code.primaryResultCode == .SQLITE_IOERR, code != .SQLITE_IOERR_CORRUPTFS
            else { continue }
            throw DatabaseError(resultCode: code, message: text)
        }
        throw StorageFailure.damaged("The list of background transfers is damaged.")
    }

    /// Creates the file accessible only to this user, before SQLite creates it with the mode of the process's umask; SQLite's other
    /// files get the mode of this file.
    private static func prepare(_ name: String, in folder: borrowing StoreDirectory) throws(StoreFailure) {
        try own(name, in: folder, O_CREAT)
        for name in [name + "-wal", name + "-shm"] {
            do throws(StoreFailure) {
                try own(name, in: folder, 0)
            } catch {
                guard case .system(ENOENT, _) = error else { throw error }
            }
        }
        try folder.sync()
    }

    /// Requires that a file belongs only to this user.
    private static func own(_ name: String, in folder: borrowing StoreDirectory, _ creation: CInt) throws(StoreFailure) {
        let file = try Descriptor(name, in: folder.number, O_RDWR | creation, doing: "opening \(name)")
        try Ownership.require(of: file, name)
    }

    /// Renames the damaged database, replacing any database that was set aside earlier.
    static func setAside(in folder: borrowing StoreDirectory) throws {
        for end in ends { unlinkat(folder.number, damagedName + end, 0) }
        // The database is renamed first: it is never without its log, and from then on the new one is used.
        for end in ends {
            if renameat(folder.number, name + end, folder.number, damagedName + end) != 0, errno != ENOENT {
                throw StoreFailure.system(errno, while: "setting a damaged database aside")
            }
        }
        unlinkat(folder.number, suspectName, 0)
        try folder.sync()
    }
}
