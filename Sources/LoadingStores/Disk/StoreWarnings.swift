// SPDX-License-Identifier: Apache-2.0

import LibC
package import Synchronization

/// Warnings about a store's files for the person who runs the program; no request fails because of these problems.
package enum StoreWarnings {
    /// The receiver of warnings.
    ///
    /// By default, it writes one line to standard error.
    package static let hook = Mutex<@Sendable (String) -> Void>({ message in
        let line = Array("URLLoading: \(message)\n".utf8)
        // A full pipe must not block the caller; a failure to write is ignored.
        var standardError = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        if poll(&standardError, 1, 0) == 1 { _ = write(STDERR_FILENO, line, line.count) }
    })

    package static func warn(_ message: String) {
        let tell = hook.withLock { $0 }
        tell(message)
    }
}
