// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A user's date, in GMT unless it has a zone: `2024-05-01 12:00:00`, `1 May 2024`, `Wed, 01 May 2024 12:00:00 GMT`.
///
/// As in curl, the words of the date may be in any order.
struct UserDate {
    private var year: Int?
    private var month: Int?
    private var day: Int?
    private var time: (hour: Int, minute: Int, second: Int)?
    private var offset: Int?

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    private static let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    /// Offsets of the time zones in hours.
    private static let zones = [
        "gmt": 0, "utc": 0, "z": 0, "wet": 0, "cet": 1, "cest": 2, "eet": 2, "est": -5, "edt": -4, "cst": -6, "cdt": -5,
        "mst": -7,
        "mdt": -6, "pst": -8, "pdt": -7,
    ]

    /// Nil if a word is unknown, or the date is incomplete.
    init?(_ text: String) {
        var rest = Substring(text.lowercased())
        while let first = rest.first {
            switch first {
            case " ", ",": rest.removeFirst()
            case "a"..."z":
                let word = rest.prefix { "a"..."z" ~= $0 }
                rest = rest[word.endIndex...]
                guard take(String(word)) else { return nil }
            case "+", "-":
                rest.removeFirst()
                let digits = rest.prefix { "0123456789:".contains($0) }
                rest = rest[digits.endIndex...]
                guard time != nil, let value = Self.offset(digits.filter { $0 != ":" }) else { return nil }
                offset = first == "-" ? -value : value
            case "0"..."9":
                let digits = rest.prefix { "0123456789:".contains($0) || $0 == "-" && time == nil && rest.first != "-" }
                rest = rest[digits.endIndex...]
                guard take(number: digits) else { return nil }
            default: return nil
            }
        }
        guard year != nil, month != nil, day != nil else { return nil }
    }

    private mutating func take(_ word: String) -> Bool {
        if word == "t", day != nil { return true }
        let short = String(word.prefix(3))
        if word.count >= 3, let index = Self.months.firstIndex(of: short) {
            month = index + 1
        } else if let hours = Self.zones[word] {
            offset = hours * 3600
        } else {
            return word.count >= 3 && Self.days.contains(short)
        }
        return true
    }

    /// Parses a time, a complete date, a year or a day.
    private mutating func take(number: Substring) -> Bool {
        let parts = number.split(separator: number.contains(":") ? ":" : "-", omittingEmptySubsequences: false).map {
            Int($0) ?? -1
        }
        guard parts.allSatisfy({ $0 >= 0 }) else { return false }
        switch (number.contains(":"), parts.count) {
        case (true, 2...3): time = (parts[0], parts[1], parts.count > 2 ? parts[2] : 0)
        case (false, 3): (year, month, day) = (parts[0], parts[1], parts[2])
        case (false, 1) where number.utf8.count == 8:
            (year, month, day) = (parts[0] / 10_000, parts[0] / 100 % 100, parts[0] % 100)
        case (false, 1) where number.utf8.count == 4: year = parts[0]
        case (false, 1) where number.utf8.count <= 2: day = parts[0]
        default: return false
        }
        return true
    }

    private static func offset(_ digits: String) -> Int? {
        guard digits.utf8.count == 4, let value = Int(digits), value % 100 < 60 else { return nil }
        return value / 100 * 3600 + value % 100 * 60
    }

    var date: Date? {
        var calendar = Calendar(identifier: .gregorian)
        guard let zone = TimeZone(secondsFromGMT: 0) else { return nil }
        calendar.timeZone = zone
        let parts = DateComponents(
            calendar: calendar, timeZone: zone, year: year, month: month, day: day, hour: time?.hour ?? 0,
            minute: time?.minute ?? 0,
            second: time?.second ?? 0)
        guard parts.isValidDate(in: calendar), let date = calendar.date(from: parts) else { return nil }
        return date.addingTimeInterval(-Double(offset ?? 0))
    }
}
