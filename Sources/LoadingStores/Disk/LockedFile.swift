//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// A SharedFile that no other process changes while this value lives.
package struct LockedFile: ~Copyable {
    private let file: SharedFile
    private let directory: StoreDirectory
    private let lock: Descriptor

    init(file: SharedFile, directory: consuming StoreDirectory, lock: consuming Descriptor) {
        self.file = file
        self.directory = directory
        self.lock = lock
    }

    package func read() throws(StoreFailure) -> SharedFile.Content {
        try file.read(in: directory)
    }

    /// Durable when it returns.
    package func replace(with bytes: [UInt8]) throws(StoreFailure) -> FileStamp {
        try AtomicFile.replace(file.name, in: directory, with: bytes, fault: file.fault)
    }

    /// Gives what cannot be used the name `NAME.damaged`, in place of what had it.
    package func setAside() throws(StoreFailure) {
        if let failure = file.fault?(.setAside) { throw failure }
        guard renameat(directory.number, file.name, directory.number, file.name + ".damaged") == 0 || errno == ENOENT else {
            throw .system(errno, while: "setting it aside")
        }
    }

    /// Removes what processes that ended while they wrote have left.
    package func removeLeftovers() {
        for name in directory.names(prefix: file.name + AtomicFile.asideMark) {
            unlinkat(directory.number, name, 0)
        }
    }
}
