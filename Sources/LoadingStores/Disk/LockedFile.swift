// SPDX-License-Identifier: Apache-2.0

import LibC

/// A locked ``SharedFile``: other processes do not change it during the lifetime of this value.
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

    /// Replaces the content; the new content is durable when this method returns.
    package func replace(with bytes: [UInt8]) throws(StoreFailure) -> FileStamp {
        try AtomicFile.replace(file.name, in: directory, with: bytes, fault: file.fault)
    }

    /// Renames an unusable file to `NAME.damaged`, replacing an earlier file of that name.
    package func setAside() throws(StoreFailure) {
        if let failure = file.fault?(.setAside) { throw failure }
        guard renameat(directory.number, file.name, directory.number, file.name + ".damaged") == 0 || errno == ENOENT else {
            throw .system(errno, while: "setting it aside")
        }
    }

    /// Removes temporary files of processes that ended while writing.
    package func removeLeftovers() {
        for name in directory.names(prefix: file.name + AtomicFile.temporaryMark) {
            unlinkat(directory.number, name, 0)
        }
    }
}
