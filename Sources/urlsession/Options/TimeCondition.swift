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

/// `--time-cond`: a body is wanted only where it was changed after an instant, or with a `-` only where it was not.
struct TimeCondition: Sendable {
    private let date: Date
    private let isForOlder: Bool

    /// Nil for what is neither a date nor a file.
    init?(_ text: String) {
        isForOlder = text.hasPrefix("-")
        let rest = isForOlder ? String(text.dropFirst()) : text
        if let date = HTTPDate.ofUser(rest) {
            self.date = date
        } else if let changed = (try? FileManager.default.attributesOfItem(atPath: rest))?[.modificationDate] as? Date {
            date = Date(timeIntervalSince1970: changed.timeIntervalSince1970.rounded(.down))
        } else {
            return nil
        }
    }

    /// What was changed after the file was.
    init?(changedAfter path: String) {
        guard let changed = (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date else {
            return nil
        }
        date = Date(timeIntervalSince1970: changed.timeIntervalSince1970.rounded(.down))
        isForOlder = false
    }

    /// The field that asks the server.
    var field: (name: String, value: String) {
        (isForOlder ? "If-Unmodified-Since" : "If-Modified-Since", HTTPDate.text(date))
    }

    /// Whether the body is wanted; a server may have paid no heed to the field.
    func isMet(by response: HTTPURLResponse) -> Bool {
        if response.statusCode == (isForOlder ? 412 : 304) { return false }
        guard response.statusCode == 200,
            let changed = response.value(forHTTPHeaderField: "Last-Modified").flatMap(HTTPDate.date)
        else { return true }
        return isForOlder ? changed < date : changed > date
    }
}
