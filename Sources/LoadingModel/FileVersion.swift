// SPDX-License-Identifier: Apache-2.0

/// Identifies the content of a file at one moment, to detect that the file was replaced or changed.
///
/// The access time and the file's names are not part of the version.
package struct FileVersion: Codable, Hashable, Sendable {
    package var size: Int64
    /// The time of the last change, in nanoseconds since 1970.
    package var changed: Int64
    package var inode: UInt64

    package init(size: Int64, changed: Int64, inode: UInt64) {
        self.size = size
        self.changed = changed
        self.inode = inode
    }
}
