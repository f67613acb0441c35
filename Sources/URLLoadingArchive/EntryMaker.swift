// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Creates the entry of one transaction.
struct EntryMaker {
    let transaction: URLSessionTaskTransactionMetrics
    let begin: Date
    /// The latest possible time at which the transaction ended.
    let end: Date
    /// The request head as it was sent, if it is known.
    let head: [String]?
    let particulars: HTTPArchive.Particulars
    /// Whether this is the task's last transaction, whose response was delivered.
    let isLast: Bool
    let detail: HTTPArchive.Detail

    private var answer: HTTPURLResponse? { transaction.response as? HTTPURLResponse }
    private var isFromCache: Bool { transaction.resourceFetchType == .localCache }
    /// Whether the library itself created the response, such as an HSTS redirect, so that the response does not come from a cache.
    private var isSynthesized: Bool { isFromCache && answer?.value(forHTTPHeaderField: "Non-Authoritative-Reason") != nil }

    func entry() -> HTTPArchive.Entry {
        var entry = HTTPArchive.Entry(startedDateTime: begin, request: request(), response: response(), timings: timings())
        entry.serverIPAddress = transaction.remoteAddress
        entry.connection = transaction.localPort.map(String.init)
        if isFromCache, !isSynthesized {
            entry.fromCache = "cache"
            entry.cache.beforeRequest = .init(lastAccess: begin, eTag: answer?.value(forHTTPHeaderField: "ETag") ?? "")
        }
        return entry
    }

    // MARK: The request

    private func request() -> HTTPArchive.Request {
        let source = transaction.request
        let headers =
            head.map { [HTTPArchive.Field](lines: $0.dropFirst()) }
            ?? (source.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
            .map { HTTPArchive.Field(name: $0.key, value: $0.value) }
        var request = HTTPArchive.Request(
            method: source.httpMethod ?? "GET", url: source.url?.absoluteString ?? "", httpVersion: version, headers: headers)
        let isSent = transaction.requestStartDate != nil
        let (headBytes, bodyBytes) = (transaction.countOfRequestHeaderBytesSent, transaction.countOfRequestBodyBytesSent)
        request.headersSize = headBytes > 0 ? headBytes : -1
        request.bodySize = isSent ? bodyBytes : isFromCache ? 0 : -1
        if bodyBytes > 0, detail.keepsBodies, let body = particulars.requestBody {
            let type = headers.value(of: "content-type") ?? "application/octet-stream"
            if let omissionReason = omissionReason(body) {
                request.postData = .init(mimeType: type, comment: omissionReason)
            } else {
                let (text, encoding) = ArchiveBody.text(body)
                request.postData = .init(mimeType: type, text: text, encoding: encoding)
            }
        }
        return request
    }

    private var version: String {
        switch transaction.networkProtocolName {
        case "h2"?, "h2c"?: "HTTP/2"
        case "h3"?: "HTTP/3"
        case let name?: name.uppercased()
        case nil: ""
        }
    }

    // MARK: The response

    private func response() -> HTTPArchive.Response {
        let error = isLast ? particulars.error.map { ($0 as NSError).localizedDescription } : nil
        guard let answer else { return responseWithoutStatus(error) }
        let lines = answer.headLines
        let start = (lines.first ?? "").split(separator: " ", maxSplits: 2).map(String.init)
        var response = HTTPArchive.Response(
            status: answer.statusCode, statusText: start.count > 2 ? start[2] : "", httpVersion: start.first ?? version,
            headers: [HTTPArchive.Field](lines: lines.dropFirst()),
            content: content(answer.value(forHTTPHeaderField: "Content-Type")))
        let (headBytes, bodyBytes) = (
            transaction.countOfResponseHeaderBytesReceived, transaction.countOfResponseBodyBytesReceived
        )
        response.headersSize = headBytes > 0 ? headBytes : -1
        response.bodySize = isFromCache ? 0 : bodyBytes
        let coding = answer.value(forHTTPHeaderField: "Content-Encoding")?.lowercased() ?? "identity"
        if coding != "identity", !isFromCache, bodyBytes > 0 { response.content.compression = response.content.size - bodyBytes }
        response.error = error
        return response
    }

    /// Returns the archived form of a missing response, or of a response without a status, such as a file's.
    private func responseWithoutStatus(_ error: String?) -> HTTPArchive.Response {
        var response = HTTPArchive.Response(
            status: 0, httpVersion: version, content: content(transaction.response?.mimeType))
        response.error = error
        return response
    }

    private func content(_ type: String?) -> HTTPArchive.Content {
        var content = HTTPArchive.Content(
            size: transaction.countOfResponseBodyBytesAfterDecoding, mimeType: type ?? "x-unknown")
        guard isLast, let body = particulars.responseBody else { return content }
        content.size = Int64(body.count)
        guard detail.keepsBodies else { return content }
        content.comment = omissionReason(body)
        if content.comment == nil { (content.text, content.encoding) = { ($0.text, $0.encoding) }(ArchiveBody.text(body)) }
        return content
    }

    private func omissionReason(_ body: Data) -> String? {
        body.count > detail.maximumBodySize ? "left out: more than \(detail.maximumBodySize) bytes" : nil
    }

    // MARK: Times

    private func timings() -> HTTPArchive.Timings {
        var timings = HTTPArchive.Timings()
        let first = [transaction.domainLookupStartDate, transaction.connectStartDate, transaction.requestStartDate]
            .compactMap { $0 }.min()
        if isFromCache {
            timings.receive = milliseconds(begin, transaction.responseEndDate ?? end) ?? 0
            return timings
        }
        timings.blocked = milliseconds(begin, first ?? transaction.responseStartDate ?? end) ?? -1
        timings.dns = milliseconds(transaction.domainLookupStartDate, transaction.domainLookupEndDate ?? end) ?? -1
        timings.connect = milliseconds(transaction.connectStartDate, transaction.connectEndDate ?? end) ?? -1
        timings.ssl = milliseconds(transaction.secureConnectionStartDate, transaction.secureConnectionEndDate ?? end) ?? -1
        timings.send = milliseconds(transaction.requestStartDate, transaction.requestEndDate ?? end) ?? 0
        timings.wait = milliseconds(transaction.requestEndDate, transaction.responseStartDate ?? end) ?? 0
        timings.receive = milliseconds(transaction.responseStartDate, transaction.responseEndDate ?? end) ?? 0
        return timings
    }

    /// Returns the duration of a phase in milliseconds, rounded to microseconds; nil if the phase did not begin.
    private func milliseconds(_ start: Date?, _ end: Date) -> Double? {
        start.map { (max(0, end.timeIntervalSince($0)) * 1_000_000).rounded() / 1000 }
    }
}
