// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A date in the proleptic Gregorian calendar, as used in HTTP, cookie and certificate dates.
package struct CivilDate: Hashable {
    var year: Int
    /// The month, starting at 1.
    var month: Int
    var day: Int

    static let monthNames: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The number of days from 1970 to 2001, the reference date.
    static let daysToReferenceDate = 11_323

    package init(year: Int, month: Int, day: Int) {
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// Creates the date that is this many days after 1 January 1970.
    init(daysSince1970 days: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    }

    /// Whether the month has this day.
    var exists: Bool {
        guard day >= 1 else { return false }
        switch month {
        case 2: return day <= (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28)
        case 4, 6, 9, 11: return day <= 30
        default: return day <= 31
        }
    }

    /// Days since 1970.
    ///
    /// The computation uses years that begin on 1 March, so that the leap day is the last day of a year.
    package var daysSince1970: Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Returns the month whose name begins with these three letters, ignoring case.
    static func month(_ letters: some RandomAccessCollection<UInt8>) -> Int? {
        guard letters.count >= 3 else { return nil }
        let index = monthNames.firstIndex { name in
            zip(letters, UnsafeBufferPointer(start: name.utf8Start, count: 3)).allSatisfy {
                ASCII.lowercased($0) == ASCII.lowercased($1)
            }
        }
        return index.map { $0 + 1 }
    }
}
