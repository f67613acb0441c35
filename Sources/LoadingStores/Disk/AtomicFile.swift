// SPDX-License-Identifier: Apache-2.0

import LibC

/// Replaces a file atomically: a reader finds the whole old or the whole new content, even after a crash.
///
/// The bytes are written to a new file with another name (`O_EXCL`), synced, and renamed to the final name; then the directory is
/// synced. If the process ends before the rename, only the temporary file is left behind.
package enum AtomicFile {
    package static let pieceSize = 65_536
    /// The separator in temporary names, between the final name and a random suffix.
    package static let temporaryMark = ".tmp-"

    static func replace(
        _ name: String,
        in directory: borrowing StoreDirectory,
        with bytes: [UInt8],
        fault: FileStep.Fault?
    ) throws(StoreFailure) -> FileStamp {
        if let failure = fault?(.create) { throw failure }
        let aside = name + temporaryMark + String(UInt64.random(in: .min ... .max), radix: 16)
        let file = try Descriptor(aside, in: directory.number, O_WRONLY | O_CREAT | O_EXCL, doing: "creating a temporary file")
        do throws(StoreFailure) {
            guard fchmod(file.number, 0o600) == 0 else { throw .system(errno, while: "setting its mode") }
            try file.writeAll(bytes, pieceSize: pieceSize, doing: "writing it", fault: fault)
            if let failure = fault?(.sync) { throw failure }
            guard fsync(file.number) == 0 else { throw .system(errno, while: "syncing it") }
            if let failure = fault?(.rename) { throw failure }
            guard renameat(directory.number, aside, directory.number, name) == 0 else {
                throw .system(errno, while: "renaming it")
            }
        } catch {
            if error != .killed { unlinkat(directory.number, aside, 0) }
            throw error
        }
        if let failure = fault?(.syncDirectory) { throw failure }
        try directory.sync()
        return FileStamp(try file.status(doing: "checking it"))
    }
}
