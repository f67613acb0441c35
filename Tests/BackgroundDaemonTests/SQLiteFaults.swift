// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDBSQLite
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Makes SQLite's system calls on certain files fail, in this process.
enum SQLiteFaults {
    enum Call: String, CaseIterable { case open, pread64, pwrite64 }

    private struct Fault {
        let call: Call
        /// The real path of the file; also of one that was removed.
        let path: String
        /// The first byte that cannot be read or written.
        let start: off_t
        let error: CInt
        /// How many more calls fail.
        var count: Int
    }

    private static let faults = Mutex<[Fault]>([])

    /// Makes a call on a file fail while the work runs.
    static func failing<Value>(
        _ call: Call, _ file: URL, from start: Int = 0, with error: CInt, times count: Int = .max,
        _ work: () async throws -> Value
    ) async throws -> Value {
        installed
        // The file itself may be missing.
        guard let folder = realpath(file.deletingLastPathComponent().path, nil) else { throw CocoaError(.fileNoSuchFile) }
        defer { free(folder) }
        let path = String(cString: folder) + "/" + file.lastPathComponent
        faults.withLock { $0.append(Fault(call: call, path: path, start: off_t(start), error: error, count: count)) }
        defer { faults.withLock { $0.removeAll { $0.path == path && $0.call == call } } }
        return try await work()
    }

    private static func error(_ call: Call, _ path: String, _ start: off_t = 0, _ count: Int = 1) -> CInt? {
        faults.withLock { faults in
            let index = faults.firstIndex {
                $0.call == call && (path == $0.path || path == $0.path + " (deleted)") && start + off_t(count) > $0.start
                    && $0.count > 0
            }
            guard let index else { return nil }
            faults[index].count -= 1
            return faults[index].error
        }
    }

    private static func error(_ call: Call, _ file: CInt, _ start: off_t, _ count: Int) -> CInt? {
        guard faults.withLock({ $0.contains { $0.call == call } }),
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(file)")
        else { return nil }
        return error(call, path, start, count)
    }

    private typealias Open = @convention(c) (UnsafePointer<CChar>, CInt, mode_t) -> CInt
    private typealias Read = @convention(c) (CInt, UnsafeMutableRawPointer, Int, off_t) -> Int
    private typealias Write = @convention(c) (CInt, UnsafeRawPointer, Int, off_t) -> Int

    /// Replaces the calls once; without faults, they do what the system's do.
    private static let installed: Void = {
        let opens: Open = { path, flags, mode in
            if let error = SQLiteFaults.error(.open, String(cString: path)) {
                errno = error
                return -1
            }
            return open(path, flags, mode)
        }
        let reads: Read = { file, bytes, count, start in
            if let error = SQLiteFaults.error(.pread64, file, start, count) {
                errno = error
                return -1
            }
            return pread(file, bytes, count, start)
        }
        let writes: Write = { file, bytes, count, start in
            if let error = SQLiteFaults.error(.pwrite64, file, start, count) {
                errno = error
                return -1
            }
            return pwrite(file, bytes, count, start)
        }
        guard let system = sqlite3_vfs_find(nil), let replace = system.pointee.xSetSystemCall else {
            preconditionFailure("SQLite has no calls to replace")
        }
        for (call, function) in [
            (Call.open, unsafeBitCast(opens, to: sqlite3_syscall_ptr.self)),
            (.pread64, unsafeBitCast(reads, to: sqlite3_syscall_ptr.self)),
            (.pwrite64, unsafeBitCast(writes, to: sqlite3_syscall_ptr.self)),
        ] {
            precondition(replace(system, call.rawValue, function) == SQLITE_OK)
        }
    }()
}
