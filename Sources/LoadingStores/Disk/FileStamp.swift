// SPDX-License-Identifier: Apache-2.0

import LibC

/// Identifies a version of a file.
package struct FileStamp: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    package let size: Int64
    private let modified: [Int]

    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        // Includes the change time, which a rename updates: a new file may have the same inode, size and modification time.
        modified = [
            Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec), Int(status.st_ctim.tv_sec), Int(status.st_ctim.tv_nsec),
        ]
    }
}
