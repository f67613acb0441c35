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

/// The folder that holds a store's files: it belongs to this user alone, or it is not used.
///
/// Cookies are as good as passwords. A folder that is a symbolic link, or that others may write to, could have somebody else read
/// them or plant theirs; so it is refused, and the store works in memory.
package struct StoreDirectory: ~Copyable {
    private let descriptor: Descriptor
    package var number: CInt { descriptor.number }

    /// Opens the folder.
    ///
    /// If it is `creating`, the folder and those above it are made where they are missing (mode 0700, as the XDG Base Directory
    /// Specification asks).
    package init(_ path: String, creating: Bool, fault: FileStep.Fault? = nil) throws(StoreFailure) {
        if let failure = fault?(.openDirectory) { throw failure }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
            throw .refused("its folder has no absolute path")
        }
        if creating { try Self.create(path) }
        let opened = try Descriptor(path, O_RDONLY | O_DIRECTORY, doing: "opening its folder")
        let status = try opened.status(doing: "looking at its folder")
        guard status.st_uid == geteuid() else { throw .refused("its folder belongs to another user") }
        guard status.st_mode & 0o022 == 0 else { throw .refused("others may write to its folder") }
        descriptor = opened
    }

    /// Makes entries of the folder that were added, renamed or removed durable.
    package func sync() throws(StoreFailure) {
        guard fsync(number) == 0 || errno == EINVAL else { throw .system(errno, while: "syncing its folder") }
    }

    /// The names in the folder that begin so.
    package func names(prefix: String) -> [String] {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return [] }
        guard let stream = fdopendir(copy) else {
            close(copy)
            return []
        }
        defer { closedir(stream) }
        rewinddir(stream)
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix) { names.append(name) }
        }
        return names
    }

    private static func create(_ path: String) throws(StoreFailure) {
        var status = stat()
        // Anything at all: whether it will do is looked at when it is open.
        if lstat(path, &status) == 0 { return }
        let parts = path.split(separator: "/").map(String.init)
        var existing = ""
        for (index, part) in parts.enumerated() {
            let next = existing + "/" + part
            guard stat(next, &status) != 0 else {
                existing = next
                continue
            }
            guard errno == ENOENT else { throw .system(errno, while: "making its folder") }
            // With root's rights, but somebody else's home (sudo): what root makes there would be in the owner's way.
            if stat(existing.isEmpty ? "/" : existing, &status) == 0, status.st_uid != geteuid(), status.st_uid != 0 {
                throw .refused("its folder would belong to another user")
            }
            try make(parts[index...], below: existing)
            return
        }
    }

    private static func make(_ parts: ArraySlice<String>, below existing: String) throws(StoreFailure) {
        var path = existing
        for part in parts {
            let parent = path.isEmpty ? "/" : path
            path += "/" + part
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .system(errno, while: "making its folder") }
            syncNames(in: parent)
        }
    }

    /// What is durable in a new folder is found after a crash only if the folder is.
    ///
    /// The folder above may be somebody else's: where it cannot be read the store works all the same.
    private static func syncNames(in path: String) {
        guard let folder = try? Descriptor(path, O_RDONLY | O_DIRECTORY, doing: "opening the folder above") else { return }
        fsync(folder.number)
    }
}
