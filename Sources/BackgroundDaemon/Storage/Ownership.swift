// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import LibC
import LoadingStores

/// Checks whether a file can be trusted.
enum Ownership {
    /// Requires a regular file that belongs to the user and that others cannot write to; also makes the file unreadable for others.
    static func require(of file: borrowing Descriptor, _ name: String) throws(StoreFailure) {
        var facts = cls_file_facts()
        let result = cls_file_facts(file.number, &facts)
        guard result == 0 else { throw .system(-result, while: "looking at \(name)") }
        guard facts.kind == 1 else { throw .refused("\(name) is not a regular file") }
        guard facts.owner == geteuid() else { throw .refused("\(name) belongs to another user") }
        guard facts.mode & 0o022 == 0 else { throw .refused("others may write to \(name)") }
        if facts.mode != 0o600, fchmod(file.number, 0o600) != 0 { throw .system(errno, while: "setting the mode of \(name)") }
    }
}
