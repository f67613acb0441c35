// SPDX-License-Identifier: Apache-2.0

/// The location of a file for scheduling: slow work in one place does not block work in others.
package struct FilePlace: Hashable, Sendable {
    enum Group: Hashable {
        /// A file system.
        case device(UInt64)
        /// The first two components of a path whose file system is not known yet, such as `/mnt/backup`: everything below them is
        /// usually on one file system.
        case folder([Substring])
    }

    let group: Group
    let path: String

    /// Creates the place of a file that is about to be opened.
    package init(opening path: String) {
        group = .folder(Array(path.split(separator: "/", maxSplits: 2).prefix(2)))
        self.path = path
    }

    /// Creates the place of an open file.
    init(device: UInt64, path: String) {
        group = .device(device)
        self.path = path
    }
}
