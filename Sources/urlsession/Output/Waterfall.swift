// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// A task's metrics as text: a block for each request, and a bar for each phase, on a common timeline.
struct Waterfall {
    private let metrics: URLSessionTaskMetrics
    private let width = 40

    init(_ metrics: URLSessionTaskMetrics) {
        self.metrics = metrics
    }

    func text() -> String {
        let start = metrics.taskInterval.start
        let total = metrics.taskInterval.duration
        var lines: [String] = []
        for transaction in metrics.transactionMetrics {
            lines.append(summary(transaction))
            for phase in phases(transaction) {
                lines.append(row(phase, start: start, total: total))
            }
            lines.append(counts(transaction))
        }
        lines.append("total \(milliseconds(total)), \(metrics.redirectCount) redirects")
        return lines.map { $0 + "\n" }.joined()
    }

    private typealias Phase = (name: String, start: Date, end: Date?)

    private func phases(_ transaction: URLSessionTaskTransactionMetrics) -> [Phase] {
        let instants: [(String, Date?, Date?)] = [
            ("name lookup", transaction.domainLookupStartDate, transaction.domainLookupEndDate),
            ("connect", transaction.connectStartDate, transaction.secureConnectionStartDate ?? transaction.connectEndDate),
            ("TLS", transaction.secureConnectionStartDate, transaction.secureConnectionEndDate),
            ("send", transaction.requestStartDate, transaction.requestEndDate),
            ("wait", transaction.requestEndDate, transaction.responseStartDate),
            ("receive", transaction.responseStartDate, transaction.responseEndDate),
        ]
        return instants.compactMap { name, start, end in start.map { (name, $0, end) } }
    }

    private func row(_ phase: Phase, start: Date, total: TimeInterval) -> String {
        let name = padded("  " + phase.name, to: 14)
        guard let end = phase.end else { return name + "      (not finished)" }
        let seconds = end.timeIntervalSince(phase.start)
        let scale = total > 0 ? Double(width) / total : 0
        let first = min(width - 1, max(0, Int(phase.start.timeIntervalSince(start) * scale)))
        let length = min(width - first, max(1, Int((seconds * scale).rounded())))
        let bar = String(repeating: " ", count: first) + String(repeating: "#", count: length)
        let time = milliseconds(seconds)
        return name + String(repeating: " ", count: max(0, 12 - time.count)) + time + "  |" + padded(bar, to: width) + "|"
    }

    private func summary(_ transaction: URLSessionTaskTransactionMetrics) -> String {
        let port = transaction.remotePort.map { ":\($0)" } ?? ""
        let way: String? =
            switch transaction.resourceFetchType {
            case .localCache: "from the cache"
            case .networkLoad: transaction.isReusedConnection ? "reused connection" : "new connection"
            default: nil
            }
        let parts: [String?] = [
            "\(transaction.request.httpMethod ?? "GET") \(transaction.request.url?.absoluteString ?? "")",
            (transaction.response as? HTTPURLResponse).map { "\($0.statusCode)" }, transaction.networkProtocolName,
            port.isEmpty ? nil : transaction.remoteAddress.map { ($0.contains(":") ? "[\($0)]" : $0) + port },
            transaction.negotiatedTLSProtocolVersion.map { SecurityText.version($0.rawValue) }, way,
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    private func counts(_ transaction: URLSessionTaskTransactionMetrics) -> String {
        let sent = transaction.countOfRequestHeaderBytesSent + transaction.countOfRequestBodyBytesSent
        let head = transaction.countOfResponseHeaderBytesReceived
        let body = transaction.countOfResponseBodyBytesReceived
        let decoded = transaction.countOfResponseBodyBytesAfterDecoding
        let more = decoded == body ? "" : ", decoded to \(decoded)"
        return "  sent \(sent) bytes; received \(head) bytes of head and \(body) of body\(more)"
    }

    private func milliseconds(_ seconds: TimeInterval) -> String {
        ByteText.rounded(seconds * 1000, digits: 2) + " ms"
    }

    private func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
