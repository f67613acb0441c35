// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation

/// The last reports of the watched transfers, and the lines that show them.
struct TransferTable {
    /// The span over which the rate is averaged.
    private static let span = Duration.seconds(5)

    private struct Row {
        var report: BackgroundProtocol.TransferReport
        var samples: [(at: ContinuousClock.Instant, done: Int64)]

        /// Returns the rate in bytes per second.
        func rate(_ now: ContinuousClock.Instant) -> Double {
            guard let first = samples.first, let last = samples.last else { return 0 }
            let seconds = first.at.duration(to: now) / .seconds(1)
            return seconds > 0.2 ? Double(last.done - first.done) / seconds : 0
        }
    }

    private var rows: [Int64: Row] = [:]

    /// Stores reports, and returns those that line-based output shows: those of new transfers, and those with a changed state,
    /// reason, or number of completed tenths.
    mutating func take(
        _ reports: [BackgroundProtocol.TransferReport], at now: ContinuousClock.Instant
    ) -> [BackgroundProtocol.TransferReport] {
        reports.filter { report in
            let (done, total) = TransferText.amount(report)
            let old = rows[report.number]
            if report.state == .gone {
                rows[report.number] = nil
                return old != nil
            }
            var samples = old?.samples ?? []
            if report.state != .running || done < samples.last?.done ?? 0 { samples = [] }
            samples.append((now, done))
            rows[report.number] = Row(report: report, samples: samples)
            guard let old = old?.report else { return true }
            return old.state != report.state || old.reason != report.reason
                || TransferText.percent(TransferText.amount(old).done, total) / 10 != TransferText.percent(done, total) / 10
        }
    }

    /// Whether all transfers have ended, and only programs other than `own` still have to collect transfers.
    func isDone(except own: String?) -> Bool {
        rows.values.allSatisfy { $0.report.state == .ended && $0.report.program != own }
    }

    var isRunning: Bool { rows.values.contains { $0.report.state == .running } }

    /// Returns at most `height` lines of fewer than `columns` columns, with running transfers first.
    mutating func lines(columns: Int, height: Int, at now: ContinuousClock.Instant) -> [String] {
        for number in rows.keys {
            // The newest sample from before the span is kept as its start.
            while let samples = rows[number]?.samples, samples.count > 1, samples[1].at.duration(to: now) > Self.span {
                rows[number]?.samples.removeFirst()
            }
        }
        let room = max(0, columns - 1)
        let sorted = rows.values.sorted { (Self.rank($0), $0.report.number) < (Self.rank($1), $1.report.number) }
        guard !sorted.isEmpty else { return [String("no transfers".prefix(room))] }
        let count = sorted.count <= max(1, height) ? sorted.count : max(0, height - 1)
        let shown = sorted.prefix(count)
        let numberWidth = shown.map { String($0.report.number).count }.max() ?? 1
        let names = shown.map { Self.name($0.report) }
        let nameWidth = min(names.map(\.count).max() ?? 0, max(8, columns / 4))
        var lines = zip(shown, names).map { row, name in
            let number = String(row.report.number)
            let padding = String(repeating: " ", count: numberWidth - number.count)
            return String("\(padding)\(number)  \(Self.fit(name, nameWidth))\(Self.progress(row, columns, now))".prefix(room))
        }
        if count < sorted.count { lines.append(String("… and \(sorted.count - count) more".prefix(room))) }
        return lines
    }

    private static func rank(_ row: Row) -> Int {
        switch row.report.state {
        case .running: 0
        case .waiting: 1
        case .paused: 2
        case .ended, .gone: 3
        }
    }

    private static func name(_ report: BackgroundProtocol.TransferReport) -> String {
        let path = report.url.split(separator: "?").first.map(String.init) ?? report.url
        let last = path.split(separator: "/").last.map(String.init) ?? path
        return TextTable.sanitized(last.removingPercentEncoding ?? last)
    }

    private static func fit(_ text: String, _ width: Int) -> String {
        text.count > width
            ? text.prefix(max(0, width - 1)) + "…" : text + String(repeating: " ", count: width - text.count)
    }

    /// Returns the bar if there is space for it, the percentage, and more: for a running transfer the bytes, the rate, the time left
    /// and the reason, if there is one, for others the state and its reason.
    private static func progress(_ row: Row, _ columns: Int, _ now: ContinuousClock.Instant) -> String {
        let (done, total) = TransferText.amount(row.report)
        let width = columns >= 60 ? min(40, columns / 4) : 0
        var parts: [String] = []
        if width > 0 {
            let filled = total > 0 ? Int(Double(width) * min(1, max(0, Double(done) / Double(total)))) : 0
            parts.append("[" + String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled) + "]")
        }
        let percent = total > 0 ? "\(TransferText.percent(done, total))" : "?"
        parts.append(String(repeating: " ", count: max(0, 3 - percent.count)) + percent + " %")
        guard row.report.state == .running else {
            parts.append(
                row.report.state.rawValue + (row.report.reason.isEmpty ? "" : ": " + TextTable.sanitized(row.report.reason)))
            return parts.map { "  " + $0 }.joined()
        }
        parts.append(total > 0 ? "\(ByteText.size(done)) of \(ByteText.size(total))" : ByteText.size(done))
        let rate = row.rate(now)
        if rate > 0 { parts.append(ByteText.rate(rate)) }
        if rate > 0, total > done { parts.append(ByteText.duration(Double(total - done) / rate) + " left") }
        if !row.report.reason.isEmpty { parts.append(TextTable.sanitized(row.report.reason)) }
        return parts.map { "  " + $0 }.joined()
    }
}
