// SPDX-License-Identifier: Apache-2.0

import LibC
import SystemThreads

/// A small file that several processes read and change.
///
/// It is read without a lock, because it is only replaced as a whole. A process that changes the file holds a lock on `NAME.lock`
/// while it reads and replaces the file, so that no changes of other processes are lost.
package struct SharedFile: Sendable {
    /// The content of the file.
    package enum Content: Sendable {
        case missing
        case bytes([UInt8], FileStamp)
        /// Not a file written by this library: a symbolic link, another user's file, or far too large.
        case unusable(String)
    }

    /// The result of `lstat`, without opening the file.
    package enum Look: Hashable, Sendable {
        case missing
        case present(FileStamp)
        /// The system call failed.
        case unknown
    }

    /// Several times the size of 3,000 cookies of the maximum size.
    package static let sizeLimit = 64 << 20
    /// The timeout for the lock, in seconds, in case a process is stopped while it holds the lock.
    private static let lockTimeout = 2.0

    package let path: String
    let directory: String
    let name: String
    /// For tests.
    let fault: FileStep.Fault?

    package init(path: String, fault: FileStep.Fault? = nil) {
        self.path = path
        self.fault = fault
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        directory = slash == path.startIndex ? "/" : String(path[..<slash])
        name = String(path[slash...].drop { $0 == "/" })
    }

    package func look() -> Look {
        var status = stat()
        if lstat(path, &status) == 0 { return .present(FileStamp(status)) }
        return errno == ENOENT ? .missing : .unknown
    }

    package func read() throws(StoreFailure) -> Content {
        do throws(StoreFailure) {
            return try read(in: try StoreDirectory(directory, creating: false, fault: fault))
        } catch .system(ENOENT, _) {
            return .missing
        }
    }

    /// Waits until no other process changes the file, and locks it for the lifetime of the result.
    package func lock() throws(StoreFailure) -> LockedFile {
        guard !name.isEmpty, name.utf8.count < 200 else { throw .refused("its name is empty or too long") }
        let folder = try StoreDirectory(directory, creating: true, fault: fault)
        if let failure = fault?(.lock) { throw failure }
        let deadline = Monitor.clock + Self.lockTimeout
        var pause: UInt32 = 200
        while true {
            let lock = try Descriptor(name + ".lock", in: folder.number, O_RDWR | O_CREAT, doing: "opening its lock file")
            let status = try lock.status(doing: "checking its lock file")
            guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { throw .refused("its lock is not ours") }
            if flock(lock.number, LOCK_EX | LOCK_NB) == 0 {
                var current = stat()
                // If the lock file was deleted or replaced, locking it has no effect.
                if fstatat(folder.number, name + ".lock", &current, AT_SYMLINK_NOFOLLOW) == 0, current.st_ino == status.st_ino {
                    return LockedFile(file: self, directory: folder, lock: lock)
                }
            } else if errno != EWOULDBLOCK, errno != EINTR {
                throw .system(errno, while: "locking it")
            }
            guard Monitor.clock < deadline else {
                throw .system(ETIMEDOUT, while: "waiting for another process to release its lock")
            }
            usleep(pause)
            pause = min(pause * 2, 20_000)
        }
    }

    func read(in folder: borrowing StoreDirectory) throws(StoreFailure) -> Content {
        if let failure = fault?(.read) { throw failure }
        do throws(StoreFailure) {
            let file = try Descriptor(name, in: folder.number, O_RDONLY, doing: "opening it")
            let status = try file.status(doing: "checking it")
            guard status.st_mode & S_IFMT == S_IFREG else { return .unusable("it is not a regular file") }
            guard status.st_uid == geteuid() else { return .unusable("it belongs to another user") }
            guard status.st_mode & 0o022 == 0 else { return .unusable("other users can write to it") }
            if status.st_mode & 0o077 != 0 { fchmod(file.number, 0o600) }
            guard let bytes = try file.readAll(limit: Self.sizeLimit, doing: "reading it") else {
                return .unusable("it is too large")
            }
            return .bytes(bytes, FileStamp(try file.status(doing: "checking it")))
        } catch .system(ENOENT, _) {
            return .missing
        } catch .system(ELOOP, _) {
            return .unusable("it is a symbolic link")
        } catch .system(ENXIO, _) {
            return .unusable("it is not a regular file")
        }
    }
}
