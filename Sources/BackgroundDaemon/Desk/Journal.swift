//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// What the daemon says to people: on standard error, as journald reads it, and the last of it to whoever asks.
final class Journal: Sendable {
    /// Raw values are those of syslog(3).
    enum Level: Int, Sendable { case error = 3, warning = 4, notice = 5, info = 6 }

    private static let limit = 500
    private let lines = Mutex<[String]>([])
    /// journald reads the level from a number in front, and has a clock of its own.
    private let isForJournald = ProcessInfo.processInfo.environment["JOURNAL_STREAM"] != nil

    func say(_ level: Level, _ text: String) {
        let plain = String(text.map { $0.isNewline ? " " : $0 })
        let stamped = "\(Date().formatted(.iso8601)) \(level) \(plain)"
        lines.withLock { lines in
            if lines.count >= Self.limit { lines.removeFirst(lines.count - Self.limit + 1) }
            lines.append(stamped)
        }
        let line = (isForJournald ? "<\(level.rawValue)>\(plain)" : stamped) + "\n"
        _ = Array(line.utf8).withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    }

    var recent: [String] { lines.withLock { $0 } }
}
