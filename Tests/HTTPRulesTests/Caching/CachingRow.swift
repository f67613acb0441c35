// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// Creates the values in the tables of the caching tests.
///
/// Fields are lines of text; `{60}` stands for the HTTP date one minute after ``start``. Unless a row says otherwise, ``start``
/// is the time of the stored request and response.
enum CachingRow {
    /// 2026-05-09 06:13:20 UTC, in seconds since the reference date.
    static let start: Double = 800_000_000

    static func date(_ offset: Double) -> String { HTTPDate.format(start + offset + 978_307_200) }

    static func headers(_ text: String) -> HeaderBlock {
        var block = HeaderBlock()
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
            block.append(String(parts[0]), withDates(value))
        }
        return block
    }

    private static func withDates(_ text: String) -> String {
        guard let open = text.firstIndex(of: "{"), let close = text.firstIndex(of: "}"), open < close,
            let offset = Double(text[text.index(after: open)..<close])
        else { return text }
        return text[..<open] + date(offset) + withDates(String(text[text.index(after: close)...]))
    }

    static func stored(
        _ text: String,
        status: Int = 200,
        request: String = "",
        delay: Double = 0,
        length: Int64 = 100,
        url: String = "https://a.example/"
    ) -> StoredResponse {
        StoredResponse(
            url: url,
            requestHeaders: headers(request),
            status: status,
            reason: "OK",
            headers: headers(text),
            requestTime: start - delay,
            responseTime: start,
            bodyLength: length
        )
    }
}

extension CacheDecision {
    /// The decision as one word, followed by the fields that are added to the request.
    var word: String {
        func list(_ fields: [(String, String)]) -> String { fields.map { " \($0.0): \($0.1)" }.joined(separator: ",") }
        return switch self {
        case .use: "use"
        case .useAndRevalidate(let fields): "background" + list(fields)
        case .revalidate(let fields): "revalidate" + list(fields)
        case .fetch(let fields): "fetch" + list(fields)
        case .fail: "fail"
        }
    }
}
