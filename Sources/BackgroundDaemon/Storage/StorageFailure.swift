// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingStores

#if Daemon
import GRDB
#endif

/// Why the daemon's store could not read or store something.
package enum StorageFailure: Error, Hashable, Sendable {
    /// Too many changes are waiting for the disk.
    case busy
    /// The disk is full, or refused the write: nothing of the call was stored.
    case diskFull(String)
    /// The stored data are damaged.
    case damaged(String)
    /// A newer version has written the data, which are left alone.
    case newer(String)
    /// There is no row with that ID.
    case missing(String)
    /// The folder or a file in it does not belong only to this user, and is left alone.
    case refused(String)
    case closed
    case failed(String)

    /// The reason in a sentence.
    package var reason: String {
        switch self {
        case .busy: "Too many changes are waiting for the disk."
        case .closed: "The store is closed."
        case .diskFull(let reason), .damaged(let reason), .newer(let reason), .missing(let reason), .refused(let reason),
            .failed(let reason):
            reason
        }
    }

    init(_ failure: StoreFailure) {
        switch failure {
        case .refused(let reason): self = .refused("The store of background transfers cannot be used: \(reason).")
        case .system(ENOSPC, _), .system(EDQUOT, _):
            self = .diskFull("The disk has no space for background transfers: \(failure.reason).")
        case .system, .killed: self = .failed("The store of background transfers cannot be used: \(failure.reason).")
        }
    }

    /// A failure described by a sentence and the system's message.
    init(_ error: CInt, _ sentence: String) {
        let reason = "\(sentence): \(String(cString: strerror(error)))."
        self = error == ENOSPC || error == EDQUOT ? .diskFull(reason) : .failed(reason)
    }

    init(_ error: any Error) {
        switch error {
        case let failure as StorageFailure: self = failure
        case let failure as StoreFailure: self.init(failure)
        case let error as DatabaseError: self.init(error)
        default: self = .failed("The store of background transfers failed: \(error).")
        }
    }

    private init(_ error: DatabaseError) {
        let said = error.message ?? "error \(error.extendedResultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_FULL: self = .diskFull("The disk has no space for background transfers: \(said).")
        case .SQLITE_IOERR:
            self = .diskFull("The disk rejected a change: \(said), code \(error.extendedResultCode.rawValue).")
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: self = .damaged("The list of background transfers is damaged: \(said).")
        case .SQLITE_CONSTRAINT where error.extendedResultCode == .SQLITE_CONSTRAINT_FOREIGNKEY:
            self = .missing("The session or transfer that this belongs to does not exist.")
        case .SQLITE_MISUSE: self = .closed
        default: self = .failed("SQLite: \(said), code \(error.extendedResultCode.rawValue).")
        }
    }
}

/// What damaged data do to those who read them.
enum Damage {
    /// Whether an error shows that what was read is damaged; any other error may pass, and must not cost data.
    static func isShown(by error: any Error) -> Bool {
        switch error {
        case StorageFailure.damaged: true
        case let error as DatabaseError:
            [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_TOOBIG].contains(error.resultCode)
        default: false
        }
    }

    /// Returns nil if the data are damaged.
    ///
    /// Damage must be found twice: SQLite also calls a database malformed of which the disk did not return a page (EIO).
    static func nilIfFound<Value>(_ read: () throws -> Value?) throws -> Value? {
        for _ in 1...2 {
            do {
                return try read()
            } catch {
                guard isShown(by: error) else { throw error }
            }
        }
        return nil
    }
}
