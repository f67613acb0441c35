//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// What the person who runs the program should know about a store's files; no request fails because of it.
package enum StoreWarnings {
    /// Who is told.
    ///
    /// At first: one line on standard error.
    package static let hook = Mutex<@Sendable (String) -> Void>({ message in
        let line = Array("URLLoading: \(message)\n".utf8)
        // Who does not read its pipe holds nobody up, and nothing can be done about it if this fails.
        var standardError = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        if poll(&standardError, 1, 0) == 1 { _ = write(STDERR_FILENO, line, line.count) }
    })

    package static func warn(_ message: String) {
        let tell = hook.withLock { $0 }
        tell(message)
    }
}
