//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Dates as HTTP has them (RFC 9110, section 5.6.7), and as people write them on a command line.
enum HTTPDate {
    static func date(_ text: String) -> Date? { date(text, "EEE, dd MMM yyyy HH:mm:ss zzz") }

    static func text(_ date: Date) -> String { formatter("EEE, dd MMM yyyy HH:mm:ss 'GMT'").string(from: date) }

    /// A date of a user's, of GMT where it does not say more: `2024-05-01 12:00:00`, `1 May 2024`, `Wed, 01 May 2024 12:00:00 GMT`.
    static func ofUser(_ text: String) -> Date? {
        guard text.contains(where: \.isNumber) else { return nil }
        let days = ["yyyy-MM-dd", "d MMM yyyy", "EEE, d MMM yyyy", "EEE d MMM yyyy", "MMM d yyyy", "EEE MMM d yyyy", "yyyyMMdd"]
        let times = ["", " HH:mm:ss", " HH:mm", " HH:mm:ss zzz", "'T'HH:mm:ssXXXXX", " HH:mm:ss XX"]
        for day in days {
            for time in times {
                if let date = date(text, day + time) { return date }
            }
        }
        return date(text, "EEE MMM d HH:mm:ss yyyy")
    }

    private static func date(_ text: String, _ format: String) -> Date? { formatter(format).date(from: text) }

    private static func formatter(_ format: String) -> DateFormatter {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.isLenient = false
        formatter.dateFormat = format
        return formatter
    }
}
