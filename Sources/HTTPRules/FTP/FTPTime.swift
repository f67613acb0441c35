// SPDX-License-Identifier: Apache-2.0

/// The time format of FTP (RFC 3659, section 2.3): "YYYYMMDDhhmmss" in UTC with an optional fraction.
package enum FTPTime {
    /// Returns seconds since the reference date, or nil if the text is not a valid time.
    package static func seconds(_ text: String) -> Double? {
        let digits = Array(text.utf8.prefix(14))
        guard digits.count == 14, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        func number(_ range: Range<Int>) -> Int { digits[range].reduce(0) { $0 * 10 + Int($1 - 0x30) } }
        let day = CivilDate(year: number(0..<4), month: number(4..<6), day: number(6..<8))
        let (hour, minute, second) = (number(8..<10), number(10..<12), number(12..<14))
        guard 1...12 ~= day.month, day.exists, hour < 24, minute < 60, second <= 60 else { return nil }
        let rest = text.utf8.dropFirst(14)
        let isFraction = rest.first == UInt8(ascii: ".") && rest.dropFirst().allSatisfy { 0x30...0x39 ~= $0 }
        let fraction = isFraction ? Double("0" + String(decoding: rest, as: UTF8.self)) ?? 0 : 0
        let days = day.daysSince1970 - CivilDate.daysToReferenceDate
        return Double(days * 86_400 + hour * 3_600 + minute * 60 + second) + fraction
    }
}
