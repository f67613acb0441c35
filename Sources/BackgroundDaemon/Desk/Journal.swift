//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
import FoundationEssentials
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The daemon's log: written to standard error, in journald's format if journald reads it.
///
/// The last lines are kept for the user's tool.
final class Journal: Sendable {
    /// The raw values are the levels of syslog(3).
    enum Level: Int, Sendable { case error = 3, warning = 4, notice = 5, info = 6 }

    private static let limit = 500
    /// The maximum size of a log file in bytes: the file may be in memory, as the runtime directory usually is.
    private static let fileLimit: Int64 = 1 << 20
    private let lines = Mutex<[String]>([])
    /// Whether journald reads the log; if so, journald takes the level from a prefix, and adds the time itself.
    private let isForJournald = ProcessInfo.processInfo.environment["JOURNAL_STREAM"] != nil

    func log(_ level: Level, _ text: String) {
        let plain = String(text.map { $0.isNewline ? " " : $0 })
        let stamped = "\(Date().formatted(.iso8601)) \(level) \(plain)"
        lines.withLock { lines in
            if lines.count >= Self.limit { lines.removeFirst(lines.count - Self.limit + 1) }
            lines.append(stamped)
        }
        let line = (isForJournald ? "<\(level.rawValue)>\(plain)" : stamped) + "\n"
        cutFile()
        _ = Array(line.utf8).withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    }

    /// Truncates the log if it is a file that has become too long.
    private func cutFile() {
        var facts = cls_file_facts()
        guard cls_file_facts(2, &facts) == 0, facts.kind == 1, facts.size > Self.fileLimit else { return }
        _ = cls_truncate(2, 0)
    }

    var recent: [String] { lines.withLock { $0 } }
}
