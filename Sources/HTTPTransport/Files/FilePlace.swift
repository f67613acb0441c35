//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
/// Where a file is, as far as waiting for it goes: what is slow in one place holds up no other.
package struct FilePlace: Hashable, Sendable {
    enum Group: Hashable {
        /// A file system.
        case device(UInt64)
        /// Where the file system is not known yet: the first two names of the path, as in `/mnt/backup`, below which is one as a rule.
        case folder([Substring])
    }

    let group: Group
    let path: String

    /// The place of a file that is to be opened.
    package init(opening path: String) {
        group = .folder(Array(path.split(separator: "/", maxSplits: 2).prefix(2)))
        self.path = path
    }

    /// The place of an open file.
    init(device: UInt64, path: String) {
        group = .device(device)
        self.path = path
    }
}
