// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading
import URLLoadingArchive

/// The facts of a finished load.
struct TransferReport: Sendable {
    let url: String
    /// The index of the load.
    let number: Int
    let fileName: String?
    let outcome: TransferObserver.State
    let failure: ToolFailure?

    private var response: HTTPURLResponse? { outcome.httpResponse }
    private var transactions: [URLSessionTaskTransactionMetrics] { outcome.metrics?.transactionMetrics ?? [] }
    /// The last request that was sent.
    private var last: URLSessionTaskTransactionMetrics? { transactions.last { $0.resourceFetchType == .networkLoad } }

    func field(_ name: String) -> String { fields.value(of: name) ?? "" }

    /// Curl's variables that its JSON shows as numbers.
    private var numbers: [String: String] {
        [
            "exitcode": "\(failure?.code ?? 0)",
            "http_code": code(response?.statusCode ?? 0),
            "http_connect": code(isTunnel ? 200 : 0),
            "local_port": "\(last?.localPort ?? 0)",
            "num_certs": "\(outcome.certificates?.chain.count ?? 0)",
            "num_connects": "\(transactions.count { $0.connectEndDate != nil && !$0.isReusedConnection })",
            "num_headers": "\(fields.count)",
            "num_redirects": "\(outcome.metrics?.redirectCount ?? outcome.redirects.count)",
            "proxy_ssl_verify_result": "0",
            "remote_port": "\(last?.remotePort ?? 0)",
            "response_code": code(response?.statusCode ?? 0),
            "size_download": "\(outcome.isSegmented ? outcome.received : last?.countOfResponseBodyBytesReceived ?? 0)",
            "size_header": "\(sum(\.countOfResponseHeaderBytesReceived))",
            "size_request": "\(sum(\.countOfRequestHeaderBytesSent))",
            "size_upload": "\(last?.countOfRequestBodyBytesSent ?? 0)",
            "speed_download": speed(last?.countOfResponseBodyBytesReceived),
            "speed_upload": speed(last?.countOfRequestBodyBytesSent),
            // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, curl's value for a server without a trusted issuer.
            "ssl_verify_result": failure?.code == 60 ? "20" : "0",
            "time_appconnect": time(\.secureConnectionEndDate),
            "time_connect": time { $0.secureConnectionStartDate ?? $0.connectEndDate },
            "time_namelookup": time(\.domainLookupEndDate),
            "time_pretransfer": time(\.requestStartDate),
            "time_redirect": seconds(redirectTime),
            "time_starttransfer": time(\.responseStartDate),
            "time_total": seconds(total),
            "urlnum": "\(number)",
        ]
    }

    /// Curl's other variables.
    private var texts: [String: String] {
        [
            "certs": outcome.certificates?.all ?? "",
            "content_type": field("Content-Type"),
            "errormsg": failure?.message ?? "",
            "filename_effective": fileName ?? "",
            "ftp_entry_path": "",
            "http_version": response == nil ? "0" : version,
            "local_ip": last?.localAddress ?? "",
            "method": last?.request.httpMethod ?? transactions.last?.request.httpMethod ?? "",
            "redirect_url": redirect,
            "referer": last?.request.value(forHTTPHeaderField: "Referer") ?? "",
            "remote_ip": last?.remoteAddress ?? "",
            "scheme": ((last?.request.url ?? outcome.response?.url)?.scheme ?? "").uppercased(),
            "url": url,
            "url_effective": (outcome.response?.url ?? transactions.last?.request.url)?.absoluteString ?? url,
        ]
    }

    /// Returns the value of a curl variable; nil if there is no variable with this name.
    func value(_ name: String) -> String? {
        switch name {
        case "json": json
        case "header_json": headerJSON
        default: numbers[name] ?? texts[name]
        }
    }

    /// All variables as a JSON object in curl's format, with null for unknown values.
    private var json: String {
        let shownNumbers = numbers.map { name, value in
            // A status code is padded with zeros elsewhere.
            (name, name.hasPrefix("time_") ? value : "\(Int64(value) ?? 0)")
        }
        let shownTexts = texts.map { name, value in
            (name, value.isEmpty && name != "certs" ? "null" : JSONText.string(value))
        }
        let pairs = (shownNumbers + shownTexts).sorted { $0.0 < $1.0 }.map { "\(JSONText.string($0)):\($1)" }
        return "{" + pairs.joined(separator: ",")
            + ",\"curl_version\":\(JSONText.string("urlsession \(URLSession.libraryVersion)"))}"
    }

    private func code(_ code: Int) -> String { String(format: "%03ld", code) }

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

    private var fields: [HTTPArchive.Field] { .init(lines: (response?.headLines ?? []).dropFirst()) }

    /// The HTTP version from the status line, without the text before the slash.
    private var version: String {
        let line = response?.headLines.first ?? ""
        return String(line.prefix { $0 != " " }.split(separator: "/").last ?? "0")
    }

    private var headerJSON: String {
        var names: [String] = []
        var values: [String: [String]] = [:]
        for field in fields {
            let name = field.name.lowercased()
            if values[name] == nil { names.append(name) }
            values[name, default: []].append(field.value)
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
