// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules

/// HTTP dates as Foundation's.
enum HTTPTime {
    /// Parses the three forms of RFC 9110, section 5.6.7.
    static func date(_ text: String) -> Date? {
        // Some servers write UTC in place of GMT.
        HTTPDate.parse(text, now: Date().timeIntervalSince1970).map { Date(timeIntervalSince1970: $0) } ?? UserDate(text)?.date
    }

    static func text(_ date: Date) -> String { HTTPDate.format(date.timeIntervalSince1970) }
}
