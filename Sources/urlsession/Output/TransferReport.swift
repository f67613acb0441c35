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

/// The facts of a finished load.
struct TransferReport: Sendable {
    let url: String
    /// The index of the load.
    let number: Int
    let fileName: String?
    let outcome: TransferObserver.State
    let failure: ToolFailure?

    private var response: HTTPURLResponse? { outcome.response as? HTTPURLResponse }
    private var transactions: [URLSessionTaskTransactionMetrics] { outcome.metrics?.transactionMetrics ?? [] }
    /// The last request that was sent.
    private var last: URLSessionTaskTransactionMetrics? { transactions.last { $0.resourceFetchType == .networkLoad } }

    func field(_ name: String) -> String {
        let all = fields.filter { $0.name.lowercased() == name.lowercased() }
        return all.first?.value ?? ""
    }

    /// Curl's names of the variables that are numbers; `all` contains all names in curl's order.
    private static let numbers: Set = [
        "exitcode", "http_code", "http_connect", "local_port", "num_certs", "num_connects", "num_headers", "num_redirects",
        "proxy_ssl_verify_result", "remote_port", "response_code", "size_download", "size_header", "size_request", "size_upload",
        "speed_download", "speed_upload", "ssl_verify_result", "urlnum",
    ]

    private static let all = [
        "certs", "content_type", "errormsg", "exitcode", "filename_effective", "ftp_entry_path", "http_code", "http_connect",
        "http_version", "local_ip", "local_port", "method", "num_certs", "num_connects", "num_headers", "num_redirects",
        "proxy_ssl_verify_result", "redirect_url", "referer", "remote_ip", "remote_port", "response_code", "scheme",
        "size_download",
        "size_header", "size_request", "size_upload", "speed_download", "speed_upload", "ssl_verify_result", "time_appconnect",
        "time_connect", "time_namelookup", "time_pretransfer", "time_redirect", "time_starttransfer", "time_total", "url",
        "url_effective", "urlnum",
    ]

    /// Returns the value of a curl variable; nil if there is no variable with this name.
    func value(_ name: String) -> String? {
        switch name {
        case "json": json
        case "header_json": headerJSON
        case _ where name.hasPrefix("time_"): time(named: name)
        case _ where name.hasPrefix("size_") || name.hasPrefix("speed_"): amount(name)
        case _ where name.hasPrefix("num_"): number(name).map { "\($0)" }
        default: fact(name)
        }
    }

    private func amount(_ name: String) -> String? {
        switch name {
        case "size_download": "\(outcome.isSegmented ? outcome.received : last?.countOfResponseBodyBytesReceived ?? 0)"
        case "size_upload": "\(last?.countOfRequestBodyBytesSent ?? 0)"
        case "size_header": "\(sum(\.countOfResponseHeaderBytesReceived))"
        case "size_request": "\(sum(\.countOfRequestHeaderBytesSent))"
        case "speed_download": speed(last?.countOfResponseBodyBytesReceived)
        case "speed_upload": speed(last?.countOfRequestBodyBytesSent)
        default: nil
        }
    }

    private func time(named name: String) -> String? {
        switch name {
        case "time_total": seconds(total)
        case "time_namelookup": time(\.domainLookupEndDate)
        case "time_connect": time { $0.secureConnectionStartDate ?? $0.connectEndDate }
        case "time_appconnect": time(\.secureConnectionEndDate)
        case "time_pretransfer": time(\.requestStartDate)
        case "time_starttransfer": time(\.responseStartDate)
        case "time_redirect": seconds(redirectTime)
        default: nil
        }
    }

    private func number(_ name: String) -> Int? {
        switch name {
        case "num_redirects": outcome.metrics?.redirectCount ?? outcome.redirects
        case "num_connects": transactions.count { $0.connectEndDate != nil && !$0.isReusedConnection }
        case "num_headers": fields.count
        case "num_certs": outcome.certificates?.chain.count ?? 0
        default: nil
        }
    }

    private func fact(_ name: String) -> String? {
        switch name {
        case "http_code", "response_code": code(response?.statusCode ?? 0)
        case "http_connect": code(isTunnel ? 200 : 0)
        case "url": url
        case "urlnum": "\(number)"
        case "url_effective": (outcome.response?.url ?? transactions.last?.request.url)?.absoluteString ?? url
        case "redirect_url": redirect
        case "referer": last?.request.value(forHTTPHeaderField: "Referer") ?? ""
        case "content_type": field("Content-Type")
        case "http_version": response == nil ? "0" : version
        case "remote_ip": last?.remoteAddress ?? ""
        case "remote_port": "\(last?.remotePort ?? 0)"
        case "local_ip": last?.localAddress ?? ""
        case "local_port": "\(last?.localPort ?? 0)"
        // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, curl's value for a server without a trusted issuer.
        case "ssl_verify_result": failure?.code == 60 ? "20" : "0"
        case "proxy_ssl_verify_result": "0"
        case "certs": outcome.certificates?.all ?? ""
        case "ftp_entry_path": ""
        case "scheme": ((last?.request.url ?? outcome.response?.url)?.scheme ?? "").uppercased()
        case "method": last?.request.httpMethod ?? transactions.last?.request.httpMethod ?? ""
        case "filename_effective": fileName ?? ""
        case "exitcode": "\(failure?.code ?? 0)"
        case "errormsg": failure?.message ?? ""
        default: nil
        }
    }

    /// All variables as a JSON object in curl's format, with null for unknown values.
    private var json: String {
        let pairs = Self.all.map { name in
            let value = value(name) ?? ""
            let isNumber = Self.numbers.contains(name) || name.hasPrefix("time_")
            let number = name == "http_code" || name == "response_code" || name == "http_connect" ? "\(Int(value) ?? 0)" : value
            let text = value.isEmpty && name != "certs" ? "null" : JSONText.string(value)
            return "\(JSONText.string(name)):\(isNumber ? number : text)"
        }
        return "{" + pairs.joined(separator: ",")
            + ",\"curl_version\":\(JSONText.string("urlsession \(URLSession.libraryVersion)"))}"
    }

    private func code(_ code: Int) -> String {
        let code = "\(code)"
        return String(repeating: "0", count: max(0, 3 - code.count)) + code
    }

    /// Whether a proxy opened a tunnel in response to CONNECT.
    private var isTunnel: Bool {
        last?.isProxyConnection == true && last?.request.url?.scheme?.lowercased() == "https" && response != nil
    }

    /// The destination of a redirect that was not followed; empty if the response is not a redirect.
    private var redirect: String {
        guard let response, 300..<400 ~= response.statusCode, let location = response.value(forHTTPHeaderField: "Location") else {
            return ""
        }
        return (outcome.redirectNotFollowed ?? URL(string: location, relativeTo: response.url))?.absoluteString ?? ""
    }

    // MARK: The head

    private var fields: [(name: String, value: String)] {
        (response?.headLines ?? []).dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
        }
    }

    /// The HTTP version from the status line, without the text before the slash.
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

    /// The time from the beginning of the load to its last request; 0 without redirects.
    private var redirectTime: TimeInterval {
        guard (outcome.metrics?.redirectCount ?? 0) > 0, let start = last?.fetchStartDate,
            let begin = outcome.metrics?.taskInterval.start
        else { return 0 }
        return start.timeIntervalSince(begin)
    }

    /// Returns the time from the beginning of the load to an instant of its last request; 0 if the request has no such instant.
    private func time(_ instant: (URLSessionTaskTransactionMetrics) -> Date?) -> String {
        guard let last, let begin = outcome.metrics?.taskInterval.start, let end = instant(last) else { return seconds(0) }
        return seconds(end.timeIntervalSince(begin))
    }

    private func seconds(_ value: TimeInterval) -> String { ByteText.rounded(max(0, value), digits: 6) }

    private func speed(_ bytes: Int64?) -> String {
        total > 0 ? "\(Int64((Double(bytes ?? 0) / total).rounded(.down)))" : "0"
    }
}
