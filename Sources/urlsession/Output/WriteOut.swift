//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// `--write-out`: a line about a load, with curl's names for what is known of it.
struct WriteOut: Sendable {
    private let format: String

    /// `@file` reads the format from a file, `@-` from standard input.
    init(_ argument: String) throws(ToolFailure) {
        format =
            argument.hasPrefix("@")
            ? String(decoding: try InputFile.read(String(argument.dropFirst())), as: UTF8.self) : argument
    }

    /// What goes to standard output and what to standard error, in the order of the format.
    func write(_ report: TransferReport) throws(ToolFailure) {
        var text = ""
        var toErrors = false
        var rest = format[...]
        func flush() throws(ToolFailure) {
            if toErrors { StandardError.write(text) } else { try StandardOutput.write(text) }
            text = ""
        }
        // Servers choose many of the values. What the format itself says goes out as it is.
        func shown(_ value: String) -> String {
            (toErrors ? StandardError.isTerminal : StandardOutput.isTerminal)
                ? TextTable.harmless(value, keeping: ["\n"]) : value
        }
        while let next = rest.popFirst() {
            switch next {
            case "\\":
                switch rest.first {
                case "n": text += "\n"
                case "r": text += "\r"
                case "t": text += "\t"
                case nil: text += "\\"
                case let other?: text += "\\" + String(other)
                }
                rest = rest.dropFirst()
            case "%":
                if rest.first == "%" {
                    rest = rest.dropFirst()
                    text += "%"
                } else if let name = Self.name(after: "{", in: &rest) {
                    switch name {
                    case "stderr", "stdout":
                        try flush()
                        toErrors = name == "stderr"
                    default:
                        if let value = report.value(name) {
                            text += shown(value)
                        } else {
                            StandardError.print("urlsession: unknown --write-out variable: '\(name)'")
                        }
                    }
                } else if let name = Self.name(after: "header{", in: &rest) {
                    text += shown(report.field(name))
                } else {
                    text += "%"
                }
            default: text.append(next)
            }
        }
        try flush()
    }

    /// What stands between a beginning and the next brace; nil where there is none.
    private static func name(after opening: String, in rest: inout Substring) -> String? {
        guard rest.hasPrefix(opening), let end = rest.firstIndex(of: "}") else { return nil }
        let name = rest[rest.index(rest.startIndex, offsetBy: opening.count)..<end]
        rest = rest[rest.index(after: end)...]
        return String(name)
    }
}

/// What is known of a load that is over.
struct TransferReport: Sendable {
    let url: String
    let fileName: String?
    let outcome: TransferObserver.State
    let failure: ToolFailure?

    private var response: HTTPURLResponse? { outcome.response as? HTTPURLResponse }
    private var transactions: [URLSessionTaskTransactionMetrics] { outcome.metrics?.transactionMetrics ?? [] }
    /// The last request that went out.
    private var last: URLSessionTaskTransactionMetrics? { transactions.last { $0.resourceFetchType == .networkLoad } }

    func field(_ name: String) -> String {
        let all = fields.filter { $0.name.lowercased() == name.lowercased() }
        return all.first?.value ?? ""
    }

    /// The value of one of curl's variables; nil where there is none of this name.
    func value(_ name: String) -> String? {
        switch name {
        case "http_code", "response_code":
            let code = "\(response?.statusCode ?? 0)"
            return String(repeating: "0", count: max(0, 3 - code.count)) + code
        case "size_download": return "\(last?.countOfResponseBodyBytesReceived ?? 0)"
        case "size_upload": return "\(last?.countOfRequestBodyBytesSent ?? 0)"
        case "size_header": return "\(sum(\.countOfResponseHeaderBytesReceived))"
        case "size_request": return "\(sum(\.countOfRequestHeaderBytesSent))"
        case "speed_download": return speed(last?.countOfResponseBodyBytesReceived)
        case "speed_upload": return speed(last?.countOfRequestBodyBytesSent)
        case "time_total": return seconds(total)
        case "time_namelookup": return time(\.domainLookupEndDate)
        case "time_connect": return time { $0.secureConnectionStartDate ?? $0.connectEndDate }
        case "time_appconnect": return time(\.secureConnectionEndDate)
        case "time_pretransfer": return time(\.requestStartDate)
        case "time_starttransfer": return time(\.responseStartDate)
        case "time_redirect": return seconds(redirectTime)
        case "num_redirects": return "\(outcome.metrics?.redirectCount ?? outcome.redirects)"
        case "num_connects": return "\(transactions.count { $0.connectEndDate != nil && !$0.isReusedConnection })"
        case "url": return url
        case "url_effective": return (outcome.response?.url ?? transactions.last?.request.url)?.absoluteString ?? url
        case "content_type": return field("Content-Type")
        case "http_version": return response == nil ? "0" : version
        case "remote_ip": return last?.remoteAddress ?? ""
        case "remote_port": return "\(last?.remotePort ?? 0)"
        case "local_ip": return last?.localAddress ?? ""
        case "local_port": return "\(last?.localPort ?? 0)"
        // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, which is what curl has of a server that nobody vouches for.
        case "ssl_verify_result": return failure?.code == 60 ? "20" : "0"
        case "scheme": return ((last?.request.url ?? outcome.response?.url)?.scheme ?? "").uppercased()
        case "method": return last?.request.httpMethod ?? transactions.last?.request.httpMethod ?? ""
        case "filename_effective": return fileName ?? ""
        case "exitcode": return "\(failure?.code ?? 0)"
        case "errormsg": return failure?.message ?? ""
        case "header_json": return headerJSON
        default: return nil
        }
    }

    // MARK: The head

    private var fields: [(name: String, value: String)] {
        (response?.headLines ?? []).dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
        }
    }

    /// As in `HTTP/1.1`, without what is before the slash.
    private var version: String {
        let line = response?.headLines.first ?? ""
        return String(line.prefix { $0 != " " }.split(separator: "/").last ?? "0")
    }

    private var headerJSON: String {
        var names: [String] = []
        var values: [String: [String]] = [:]
        for (name, value) in fields {
            let name = name.lowercased()
            if values[name] == nil { names.append(name) }
            values[name, default: []].append(value)
        }
        let lines = names.map { "\(JSONText.string($0)):[\((values[$0] ?? []).map(JSONText.string).joined(separator: ","))]" }
        return "{" + lines.joined(separator: ",\n") + "\n}"
    }

    // MARK: Counts and times

    private func sum(_ count: (URLSessionTaskTransactionMetrics) -> Int64) -> Int64 { transactions.reduce(0) { $0 + count($1) } }

    private var total: TimeInterval { outcome.metrics?.taskInterval.duration ?? 0 }

    /// From the beginning to the last request.
    private var redirectTime: TimeInterval {
        guard (outcome.metrics?.redirectCount ?? 0) > 0, let start = last?.fetchStartDate,
            let begin = outcome.metrics?.taskInterval.start
        else { return 0 }
        return start.timeIntervalSince(begin)
    }

    /// From the beginning to an instant of the last request; 0 where it did not come to that, or needed nothing of the kind.
    private func time(_ instant: (URLSessionTaskTransactionMetrics) -> Date?) -> String {
        guard let last, let begin = outcome.metrics?.taskInterval.start, let end = instant(last) else { return seconds(0) }
        return seconds(end.timeIntervalSince(begin))
    }

    private func seconds(_ value: TimeInterval) -> String { ByteText.rounded(max(0, value), digits: 6) }

    private func speed(_ bytes: Int64?) -> String {
        total > 0 ? "\(Int64((Double(bytes ?? 0) / total).rounded(.down)))" : "0"
    }
}
