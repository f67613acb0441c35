// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation

/// Describes background transfers.
enum TransferText {
    static func program(_ report: BackgroundProtocol.TransferReport) -> String { name(ofProgram: report.program) }

    /// Returns the last component of the program's path.
    static func name(ofProgram path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.flatMap { String($0) } ?? path
    }

    /// Returns the transferred bytes in the transfer's main direction, and the expected total, which is -1 if it is unknown.
    static func amount(_ report: BackgroundProtocol.TransferReport) -> (done: Int64, total: Int64) {
        report.isUpload
            ? (report.counts.sent, report.counts.expectedToSend) : (report.counts.received, report.counts.expectedToReceive)
    }

    static func progress(_ report: BackgroundProtocol.TransferReport) -> String {
        let (done, total) = amount(report)
        guard total > 0 else { return ByteText.size(done) }
        return "\(ByteText.size(done)) / \(ByteText.size(total)) (\(percent(done, total)) %)"
    }

    static func percent(_ done: Int64, _ total: Int64) -> Int64 {
        total > 0 ? Int64(min(100, max(0, Double(done) * 100 / Double(total)))) : 0
    }

    /// Returns a line that reports a change.
    static func line(_ report: BackgroundProtocol.TransferReport) -> String {
        let reason = report.reason.isEmpty || report.state == .gone ? "" : "  (\(report.reason))"
        return TextTable.sanitized("\(report.number)  \(report.state.rawValue)  \(progress(report))  \(report.url)\(reason)")
    }
}
