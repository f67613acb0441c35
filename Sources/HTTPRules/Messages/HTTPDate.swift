// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses and formats HTTP dates, as seconds since 1970 (RFC 9110, section 5.6.7).
package enum HTTPDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

    /// Parses the three forms: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
    ///
    /// Returns nil if the parts have a different order. The separators and the day of the week are not checked, because some
    /// servers get them wrong but mean the same time.
    ///
    /// - Parameters:
    ///   - text: The value of the field.
    ///   - now: The current time, which determines the century of a two-digit year: a year more than 50 years ahead is in the past.
    ///     If nil, the years from 70 to 99 mean 1970 to 1999, and all others 2000 to 2069, as in RFC 6265, section 5.1.1.
    /// - Returns: Seconds since 1970.
    package static func parse(_ text: String, now: Double? = nil) -> Double? {
        let parts = text.utf8.split(whereSeparator: { $0 == 0x20 || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "-") })
        let fields = parts.map { Array($0) }
        if fields.count == 6, fields[5].elementsEqual("GMT".utf8) {
            guard let day = number(fields[1], 1...2), let month = month(fields[2]), let time = time(fields[4]) else { return nil }
            if let year = number(fields[3], 4...4) { return seconds(year, month, day, time) }
            guard let short = number(fields[3], 2...2) else { return nil }
            return seconds(year(short, now), month, day, time)
        }
        guard fields.count == 5, let month = month(fields[1]), let day = number(fields[2], 1...2), let time = time(fields[3]),
            let year = number(fields[4], 4...4)
        else { return nil }
        return seconds(year, month, day, time)
    }

    /// Formats a date as `IMF-fixdate`, the only form that may be sent.
    ///
    /// Fractions of a second are dropped. Years are clamped to the range from 1 to 9999.
    package static func format(_ date: Double) -> String {
        let bounded = min(max(date.isNaN ? 0 : date, -62_135_596_800), 253_402_300_799)
        let total = Int(bounded.rounded(.down))
        let days = total >= 0 ? total / 86400 : (total - 86399) / 86400
        let rest = total - days * 86400
        let date = CivilDate(daysSince1970: days)
        let weekday = Self.days[(days % 7 + 7) % 7]
        return "\(weekday), \(padded(date.day, 2)) \(CivilDate.monthNames[date.month - 1]) \(padded(date.year, 4)) "
            + "\(padded(rest / 3600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2)) GMT"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    private static func number(_ digits: some Collection<UInt8>, _ width: ClosedRange<Int>) -> Int? {
        width.contains(digits.count) ? ASCII.number(digits).map { Int($0) } : nil
    }

    private static func month(_ name: [UInt8]) -> Int? { name.count == 3 ? CivilDate.month(name) : nil }

    private static func time(_ text: [UInt8]) -> Int? {
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3, let hour = number(parts[0], 2...2), let minute = number(parts[1], 2...2),
            let second = number(parts[2], 2...2), hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private static func year(_ short: Int, _ now: Double?) -> Int {
        guard let now, now.isFinite, abs(now) < 1e11 else { return short < 70 ? 2000 + short : 1900 + short }
        let current = CivilDate(daysSince1970: Int((now / 86400).rounded(.down))).year
        let year = current - current % 100 + short
        return year > current + 50 ? year - 100 : year
    }

    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Double? {
        let date = CivilDate(year: year, month: month, day: day)
        return date.exists ? Double(date.daysSince1970 * 86400 + time) : nil
    }
}
