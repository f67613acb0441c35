// SPDX-License-Identifier: Apache-2.0

import LibC

/// Why a store's file could not be read or written.
package enum StoreFailure: Error, Hashable, Sendable {
    /// The file is not one that this version of the library would have written; it is not touched.
    case refused(String)
    /// A failed system call.
    case system(CInt, while: String)
    /// A test simulates the end of the process.
    case killed

    /// Whether a retry is pointless and the store continues in memory.
    package var isPermanent: Bool {
        switch self {
        case .refused: true
        case .system(let code, _):
            [EACCES, EPERM, EROFS, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, ENOTSUP, ENOSYS, EINVAL].contains(code)
        case .killed: true
        }
    }

    package var reason: String {
        switch self {
        case .refused(let reason): reason
        case .system(let code, let doing): "\(doing): \(strerror(code).map { String(cString: $0) } ?? "error \(code)")"
        case .killed: "killed"
        }
    }
}
