// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// `--time-cond`: requests a body only if it was modified after a given time, or with a leading `-` only if before that time.
struct TimeCondition: Sendable {
    private let date: Date
    private let isForOlder: Bool

    /// Nil if the text is neither a date nor the name of a file.
    init?(_ text: String) {
        isForOlder = text.hasPrefix("-")
        let rest = isForOlder ? String(text.dropFirst()) : text
        guard let date = UserDate(rest)?.date ?? Self.changeDate(of: rest) else { return nil }
        self.date = date
    }

    /// Creates the condition that the server's file was modified after the given file.
    init?(changedAfter path: String) {
        guard let date = Self.changeDate(of: path) else { return nil }
        self.date = date
        isForOlder = false
    }

    private static func changeDate(of path: String) -> Date? {
        let changed = (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
        return changed.map { Date(timeIntervalSince1970: $0.timeIntervalSince1970.rounded(.down)) }
    }

    /// The header field that makes the request conditional.
    var field: (name: String, value: String) {
        (isForOlder ? "If-Unmodified-Since" : "If-Modified-Since", HTTPTime.text(date))
    }

    /// Whether the response's body is wanted; the response is checked because a server may have ignored the header field.
    func isMet(by response: HTTPURLResponse) -> Bool {
        if response.statusCode == (isForOlder ? 412 : 304) { return false }
        guard response.statusCode == 200,
            let changed = response.value(forHTTPHeaderField: "Last-Modified").flatMap(HTTPTime.date)
        else { return true }
        return isForOlder ? changed < date : changed > date
    }
}
