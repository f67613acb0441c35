// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingStores

/// Small files that the daemon and programs of one user exchange; most need not survive a power failure.
package enum SmallFile {
    /// The content of a regular file of this user; nil if the file is missing, too long, a link, or writable by others.
    package static func contents(of path: String, limit: Int) -> [UInt8]? {
        guard let file = try? Descriptor(path, O_RDONLY, doing: "opening it"),
            let facts = try? file.status(doing: "looking at it"), facts.st_mode & S_IFMT == S_IFREG,
            facts.st_uid == geteuid(), facts.st_mode & 0o022 == 0
        else { return nil }
        return (try? file.readAll(limit: limit, doing: "reading it")) ?? nil
    }

    /// Replaces a file by renaming a temporary one, so that no reader sees a partial file; ``isLeftover(_:of:)`` recognizes the
    /// temporary file of a killed process.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - bytes: The content.
    ///   - isLasting: Whether content and name are synced to the disk before this returns.
    /// - Returns: 0, or the system's error number.
    @discardableResult
    package static func replace(_ path: String, with bytes: [UInt8], isLasting: Bool = false) -> CInt {
        let aside = "\(path).\(getpid())"
        unlink(aside)
        do throws(StoreFailure) {
            let file = try Descriptor(aside, O_WRONLY | O_CREAT | O_EXCL, doing: "creating it")
            try file.writeAll(bytes, pieceSize: AtomicFile.pieceSize, doing: "writing it", fault: nil)
            if isLasting, fsync(file.number) != 0 { throw .system(errno, while: "syncing it") }
            guard rename(aside, path) == 0 else { throw .system(errno, while: "naming it") }
            guard isLasting, let slash = path.lastIndex(of: "/") else { return 0 }
            let folder = try Descriptor(String(path[...slash]), O_RDONLY | O_DIRECTORY, doing: "opening its folder")
            guard fsync(folder.number) == 0 || errno == EINVAL else { throw .system(errno, while: "syncing its folder") }
            return 0
        } catch {
            unlink(aside)
            if case .system(let number, _) = error { return number }
            return EIO
        }
    }

    /// Whether a name belongs to a temporary file of a process that has ended.
    ///
    /// - Parameters:
    ///   - name: The name, without its folder.
    ///   - kinds: The prefixes of such files' names.
    /// - Returns: Whether it is a leftover.
    package static func isLeftover(_ name: String, of kinds: [String]) -> Bool {
        guard kinds.contains(where: name.hasPrefix), let dot = name.lastIndex(of: "."),
            let process = Int32(name[name.index(after: dot)...]), process > 0, process != getpid()
        else { return false }
        return kill(process, 0) != 0 && errno == ESRCH
    }
}
