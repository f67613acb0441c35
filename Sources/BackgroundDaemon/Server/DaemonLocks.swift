// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import LibC
import Synchronization

/// The locks that a daemon holds for its lifetime.
final class DaemonLocks: Sendable {
    private struct Lock {
        var path: String
        var descriptor: CInt

        /// Whether other daemons find this file.
        var isInPlace: Bool {
            var (named, held) = (cls_file_facts(), cls_file_facts())
            return cls_path_facts(path, &named) == 0 && cls_file_facts(descriptor, &held) == 0 && named.inode == held.inode
        }
    }

    private let locks = Mutex<[Lock]>([])

    func add(_ path: String, _ descriptor: CInt) { locks.withLock { $0.append(Lock(path: path, descriptor: descriptor)) } }

    /// Writes the reason why this daemon does not respond, or nothing, for other daemons.
    func sign(_ reason: String) {
        locks.withLock { for lock in $0 { cls_lock_sign(lock.descriptor, reason, CInt(MessageCoding.version)) } }
    }

    var areInPlace: Bool { locks.withLock { $0.allSatisfy(\.isInPlace) } }

    /// Makes the locks again whose files were removed.
    ///
    /// - Returns: Whether this daemon holds all locks; false if another one does.
    /// - Throws: An error if a lock cannot be made now.
    func renew() throws(StorageFailure) -> Bool {
        try locks.withLock { locks throws(StorageFailure) in
            for index in locks.indices where !locks[index].isInPlace {
                let descriptor = cls_lock_file(locks[index].path, 0)
                guard descriptor != -EWOULDBLOCK else { return false }
                guard descriptor >= 0 else {
                    throw StorageFailure(-descriptor, "The file \(locks[index].path) cannot be created")
                }
                cls_lock_sign(descriptor, "", CInt(MessageCoding.version))
                _ = cls_close(locks[index].descriptor)
                locks[index].descriptor = descriptor
            }
            return true
        }
    }

    /// Releases the locks.
    func leave() {
        locks.withLock { locks in
            for lock in locks { _ = cls_close(lock.descriptor) }
            locks = []
        }
    }

    /// Creates the folder of a lock, and those that contain it.
    static func makeFolder(_ path: String) throws(StorageFailure) {
        var made = ""
        var error: CInt = 0
        for part in path.split(separator: "/") {
            made += "/" + part
            if mkdir(made, 0o700) == 0 || errno == EEXIST {
                error = 0
            } else if error == 0 {
                // Later folders fail because this one is missing.
                error = errno
            }
        }
        if error != 0 { throw StorageFailure(error, "The folder \(path) cannot be created") }
    }
}
