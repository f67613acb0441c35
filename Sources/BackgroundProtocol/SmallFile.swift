//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingStores

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Small files that daemon and programs of one user leave for each other; none of them has to outlast a loss of power.
package enum SmallFile {
    /// What an ordinary file of this user's holds; nil where there is none, or one that is longer, is a link, or is writable by others.
    package static func contents(of path: String, limit: Int) -> [UInt8]? {
        guard let file = try? Descriptor(path, O_RDONLY, doing: "opening it"),
            let facts = try? file.status(doing: "looking at it"), facts.st_mode & S_IFMT == S_IFREG,
            facts.st_uid == geteuid(), facts.st_mode & 0o022 == 0
        else { return nil }
        return (try? file.readAll(limit: limit, doing: "reading it")) ?? nil
    }

    /// Writes it aside, so that no reader sees half of it; a process that is killed leaves what ``isLeftover(_:of:)`` tells.
    ///
    /// - Returns: 0, or the system's error.
    @discardableResult
    package static func replace(_ path: String, with bytes: [UInt8]) -> CInt {
        let aside = "\(path).\(getpid())"
        unlink(aside)
        do throws(StoreFailure) {
            let file = try Descriptor(aside, O_WRONLY | O_CREAT | O_EXCL, doing: "creating it")
            try file.writeAll(bytes, pieceSize: AtomicFile.pieceSize, doing: "writing it", fault: nil)
            guard rename(aside, path) == 0 else { throw .system(errno, while: "naming it") }
            return 0
        } catch {
            unlink(aside)
            if case .system(let number, _) = error { return number }
            return EIO
        }
    }

    /// Whether a name is that of a file which a process that is gone was writing.
    ///
    /// - Parameters:
    ///   - name: The name, without its folder.
    ///   - kinds: What names of such files begin with.
    /// - Returns: Whether it is.
    package static func isLeftover(_ name: String, of kinds: [String]) -> Bool {
        guard kinds.contains(where: name.hasPrefix), let dot = name.lastIndex(of: "."),
            let process = Int32(name[name.index(after: dot)...]), process > 0, process != getpid()
        else { return false }
        return kill(process, 0) != 0 && errno == ESRCH
    }
}
