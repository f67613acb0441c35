// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import FoundationEssentials
import LibC
import Synchronization
import SystemThreads

/// The daemon's log: written to standard error, in journald's format if journald reads it.
///
/// The last lines are kept for the user's tool.
final class Journal: Sendable {
    /// The raw values are the levels of syslog(3).
    enum Level: Int, Sendable { case error = 3, warning = 4, notice = 5, info = 6 }

    private static let limit = 500
    /// The maximum size of a log file in bytes: the file may be in memory, as the runtime directory usually is.
    private static let fileLimit: Int64 = 1 << 20
    private struct State {
        var lines: [String] = []
        var repeats = RepeatFilter()
    }

    private let state = Mutex(State())
    /// Whether journald reads the log; if so, journald takes the level from a prefix, and adds the time itself.
    private let isForJournald = ProcessInfo.processInfo.environment["JOURNAL_STREAM"] != nil

    func log(_ level: Level, _ text: String) {
        let plain = String(text.map { $0.isNewline ? " " : $0 })
        for line in state.withLock({ $0.repeats.admit(RepeatFilter.Line(level: level, text: plain), now: Monitor.clock) }) {
            put(line.level, line.text)
        }
    }

    private func put(_ level: Level, _ plain: String) {
        let stamped = "\(Date().formatted(.iso8601)) \(level) \(plain)"
        state.withLock { state in
            if state.lines.count >= Self.limit { state.lines.removeFirst(state.lines.count - Self.limit + 1) }
            state.lines.append(stamped)
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

    var recent: [String] { state.withLock { $0.lines } }
}

/// Leaves out lines that are repeated, and counts them.
struct RepeatFilter {
    struct Line: Hashable {
        var level: Journal.Level
        var text: String
    }

    private struct Entry {
        var until: Double
        var count = 0
    }

    /// The seconds after a line during which it is not repeated.
    static let period = 10.0
    /// The maximum number of lines that are remembered.
    static let limit = 64

    private var known: [Line: Entry] = [:]

    /// Returns the lines to write for a line: the line itself unless it is a repetition, after the counts of earlier lines.
    ///
    /// - Parameters:
    ///   - line: The line.
    ///   - now: Seconds of a clock that is never set.
    /// - Returns: The lines in their order.
    mutating func admit(_ line: Line, now: Double) -> [Line] {
        let entries = known.sorted { $0.value.until < $1.value.until }
        var lines: [Line] = []
        for (index, (known, entry)) in entries.enumerated() {
            let isForgotten = self.known[line] == nil && entries.count - index >= Self.limit
            guard entry.until <= now || isForgotten else { break }
            self.known[known] = nil
            guard entry.count > 0 else { continue }
            lines.append(Line(level: known.level, text: "\(known.text) (\(entry.count) more times)"))
        }
        guard known[line] == nil else {
            known[line]?.count += 1
            return lines
        }
        known[line] = Entry(until: now + Self.period)
        return lines + [line]
    }
}
