// SPDX-License-Identifier: Apache-2.0

import Crypto
import LibC
import LoadingStores

/// The key of a ``StorageSeal``, 32 random bytes in a separate file.
///
/// The key is created once. An existing file is never replaced, whatever it contains, because its key might still be needed.
enum StorageKey {
    static let name = "transfers.key"

    /// Reads the key; if there is no key, creates one durably.
    ///
    /// - Parameter folder: The folder of the key.
    /// - Returns: The key.
    /// - Throws: An error if the key cannot be read or created.
    static func find(in folder: borrowing StoreDirectory) throws(StorageFailure) -> [UInt8] {
        do throws(StoreFailure) {
            if let key = try read(in: folder) { return key }
            try make(in: folder)
            // The key may have been created by another process.
            if let key = try read(in: folder) { return key }
            throw .refused("its key was removed as soon as it was created")
        } catch {
            throw StorageFailure(error)
        }
    }

    /// Returns nil if there is no key.
    private static func read(in folder: borrowing StoreDirectory) throws(StoreFailure) -> [UInt8]? {
        do throws(StoreFailure) {
            let file = try Descriptor(name, in: folder.number, O_RDONLY, doing: "opening its key")
            try Ownership.require(of: file, "its key")
            let key = try file.readAll(limit: StorageSeal.keySize, doing: "reading its key")
            guard let key, key.count == StorageSeal.keySize else { throw .refused("its key is not \(StorageSeal.keySize) bytes") }
            return key
        } catch .system(ENOENT, _) {
            return nil
        } catch .system(ELOOP, _) {
            throw .refused("its key is a symbolic link")
        }
    }

    /// Writes a key to a temporary file, and links that file to the key's name, which fails if there is already a key.
    private static func make(in folder: borrowing StoreDirectory) throws(StoreFailure) {
        let mark = name + AtomicFile.temporaryMark
        for left in folder.names(prefix: mark) { unlinkat(folder.number, left, 0) }
        let aside = mark + String(UInt64.random(in: .min ... .max), radix: 16)
        let file = try Descriptor(aside, in: folder.number, O_WRONLY | O_CREAT | O_EXCL, doing: "creating its key")
        defer { unlinkat(folder.number, aside, 0) }
        guard fchmod(file.number, 0o600) == 0 else { throw .system(errno, while: "setting the mode of its key") }
        let key = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
        try file.writeAll(key, pieceSize: AtomicFile.pieceSize, doing: "writing its key", fault: nil)
        guard fsync(file.number) == 0 else { throw .system(errno, while: "syncing its key") }
        guard linkat(folder.number, aside, folder.number, name, 0) == 0 || errno == EEXIST else {
            throw .system(errno, while: "naming its key")
        }
        try folder.sync()
    }
}
