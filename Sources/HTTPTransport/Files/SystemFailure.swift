// SPDX-License-Identifier: Apache-2.0

import LibC
package import LoadingModel

/// A system call's error number, with its text.
package struct SystemFailure: Error, Sendable, Hashable, CustomStringConvertible {
    package let code: CInt

    /// - Parameter status: The number, or its negative, as CLoadingSystem returns it.
    package init(_ status: CInt) { code = abs(status) }

    package static let noSuchFile = ENOENT
    package static let notADirectory = ENOTDIR
    package static let accessDenied = EACCES
    package static let notPermitted = EPERM
    package static let exists = EEXIST
    package static let noSpace = ENOSPC
    package static let overQuota = EDQUOT
    package static let inputOutput = EIO
    package static let tooLarge = EFBIG
    package static let wouldBlock = EAGAIN
    package static let invalid = EINVAL
    package static let noDescriptor = EMFILE
    package static let noDescriptorInSystem = ENFILE

    package var description: String {
        var text = [CChar](repeating: 0, count: 128)
        return text.withUnsafeMutableBufferPointer { room in
            guard let start = room.baseAddress, strerror_r(code, start, room.count) == 0 else { return "error \(code)" }
            return String(cString: start).lowercased()
        }
    }
}

extension LoadError {
    /// Whether writing a file failed because the disk or quota is full, which may change later.
    package var isOutOfSpace: Bool {
        guard let failure = cause as? SystemFailure else { return false }
        return failure.code == SystemFailure.noSpace || failure.code == SystemFailure.overQuota
    }
}
