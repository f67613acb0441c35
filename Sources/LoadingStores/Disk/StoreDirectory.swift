// SPDX-License-Identifier: Apache-2.0

import LibC

/// The folder of a store's files, which only its user may write to.
///
/// Cookies are as sensitive as passwords. Other users could read or plant cookies if the folder is a symbolic link, or if they can
/// write to it. Such a folder is refused, and the store works in memory.
package struct StoreDirectory: ~Copyable {
    private let descriptor: Descriptor
    package var number: CInt { descriptor.number }

    /// Opens the folder.
    ///
    /// With `creating`, missing folders in the path are created (mode 0700, as the XDG Base Directory Specification asks).
    package init(_ path: String, creating: Bool, fault: FileStep.Fault? = nil) throws(StoreFailure) {
        if let failure = fault?(.openDirectory) { throw failure }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
            throw .refused("the path of its folder is not absolute")
        }
        if creating { try Self.create(path) }
        let opened = try Descriptor(path, O_RDONLY | O_DIRECTORY, doing: "opening its folder")
        let status = try opened.status(doing: "checking its folder")
        guard status.st_uid == geteuid() else { throw .refused("its folder belongs to another user") }
        guard status.st_mode & 0o022 == 0 else { throw .refused("other users can write to its folder") }
        descriptor = opened
    }

    /// Makes added, renamed and removed entries of the folder durable.
    package func sync() throws(StoreFailure) {
        guard fsync(number) == 0 || errno == EINVAL else { throw .system(errno, while: "syncing its folder") }
    }

    /// The names in the folder with that prefix.
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
        // An existing file of any type is checked after it is opened.
        if lstat(path, &status) == 0 { return }
        let parts = path.split(separator: "/").map(String.init)
        var existing = ""
        for (index, part) in parts.enumerated() {
            let next = existing + "/" + part
            guard stat(next, &status) != 0 else {
                existing = next
                continue
            }
            guard errno == ENOENT else { throw .system(errno, while: "creating its folder") }
            // If root creates a folder in another user's home (as with sudo), the home's owner cannot use that folder.
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
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .system(errno, while: "creating its folder") }
            syncNames(in: parent)
        }
    }

    /// Makes a new folder's name durable; otherwise a crash could lose the folder with its content.
    ///
    /// The parent folder may be another user's and unreadable; the store works anyway.
    private static func syncNames(in path: String) {
        guard let folder = try? Descriptor(path, O_RDONLY | O_DIRECTORY, doing: "opening the parent folder") else { return }
        fsync(folder.number)
    }
}
