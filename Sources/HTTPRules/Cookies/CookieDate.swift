// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses the `Expires` attribute of `Set-Cookie` (RFC 6265bis, section 5.1.1), whose parts may be in any order.
package enum CookieDate {
    /// Returns seconds since the reference date, or nil if the algorithm fails.
    package static func parse(_ text: some StringProtocol) -> Double? {
        var parts = Parts()
        for token in text.utf8.split(whereSeparator: isDelimiter) { parts.read(Array(token)) }
        return parts.seconds
    }

    /// Whether a byte is a delimiter: `%x09 / %x20-2F / %x3B-40 / %x5B-60 / %x7B-7E`.
    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// The parts found so far.
    ///
    /// Each part is taken from the first token that has the form of the part (step 2).
    private struct Parts {
        var time: (hour: Int, minute: Int, second: Int)?
        var day: Int?
        var month: Int?
        var year: Int?

        mutating func read(_ token: [UInt8]) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = Self.number(token[...], 1...2)?.value {
                day = found
            } else if month == nil, let found = CivilDate.month(token) {
                month = found
            } else if year == nil, let found = Self.number(token[...], 2...4)?.value {
                year = found
            }
        }

        /// Steps 3 to 6.
        var seconds: Double? {
            guard let time, let day, let month, var year else { return nil }
            switch year {
            case 70...99: year += 1900
            case 0...69: year += 2000
            default: break
            }
            // "If no such date exists, abort these steps and fail", as for 31 February.
            let date = CivilDate(year: year, month: month, day: day)
            guard year >= 1601, date.exists, time.hour <= 23, time.minute <= 59, time.second <= 59 else { return nil }
            let days = date.daysSince1970 - CivilDate.daysToReferenceDate
            return Double(days * 86400 + time.hour * 3600 + time.minute * 60 + time.second)
        }

        /// Parses the leading digits, whose number must be in the range `width`, and returns their value and end.
        private static func number(_ token: ArraySlice<UInt8>, _ width: ClosedRange<Int>) -> (value: Int, end: Int)? {
            let digits = token.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
            guard width.contains(digits.count) else { return nil }
            return (digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }, digits.endIndex)
        }

        /// Parses `time-field ":" time-field ":" time-field`, followed by anything but a digit.
        private static func time(_ token: [UInt8]) -> (hour: Int, minute: Int, second: Int)? {
            guard let hour = number(token[...], 1...2), hour.end < token.count, token[hour.end] == UInt8(ascii: ":"),
                let minute = number(token[(hour.end + 1)...], 1...2), minute.end < token.count,
                token[minute.end] == UInt8(ascii: ":"), let second = number(token[(minute.end + 1)...], 1...2)
            else { return nil }
            return (hour.value, minute.value, second.value)
        }
    }
}
