// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import Testing

/// The cookie dates of RFC 6265bis, section 5.1.1.
@Suite struct CookieDateTests {
    /// Valid dates, with their instants in seconds since 1970.
    private static let readable: [(text: String, seconds: Double, why: String)] = [
        ("Wed, 09 Jun 2021 10:18:14 GMT", 1_623_233_894, "section 3.1's example"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777, "RFC 9110, section 5.6.7: IMF-fixdate"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777, "RFC 9110, section 5.6.7: rfc850-date"),
        ("Sun Nov  6 08:49:37 1994", 784_111_777, "RFC 9110, section 5.6.7: asctime-date"),
        ("1994 nov 06 08:49:37", 784_111_777, "a token is taken by its shape; the four-digit year is no day"),
        ("08:49:37 06 NOVEMBER 1994", 784_111_777, "month = three letters, then *OCTET, in any case"),
        ("6th Nov 1994x 08:49:37.123", 784_111_777, "non-digit *OCTET may follow day, year and time"),
        ("8:49:7 6 Nov 1994", 784_111_747, "time-field = 1*2DIGIT"),
        ("06 Nov 69 00:00:00", 3_150_921_600, "step 4: 0 to 69 is 2000 and on"),
        ("06 Nov 70 00:00:00", 26_697_600, "step 3: 70 to 99 is 1900 and on"),
        ("06 Nov 099 00:00:00", 941_846_400, "2*4DIGIT: the value 99 is 1999"),
        ("06/Nov;1994@08:49:37", 784_111_777, "delimiters are %x09 / %x20-2F / %x3B-40 / %x5B-60 / %x7B-7E"),
        ("29 Feb 2000 00:00:00", 951_782_400, "step 6: 2000 was a leap year"),
        ("01 Jan 1601 00:00:00", -11_644_473_600, "step 5: not less than 1601"),
        ("31 Dec 9999 23:59:59", 253_402_300_799, "year = 2*4DIGIT"),
        ("06 Nov 1994 08:49:37 09:50:00 7 Dec 2001", 784_111_777, "step 2: later tokens of a shape found are skipped"),
        ("Nov 06 1994 08:49:37 GMT+0200", 784_111_777, "zones are not read"),
        (", 6-Nov-94 08:49:37", 784_111_777, "delimiters may begin the date"),
        ("Holiday  , 06 - novem-94   08:49:37 BST (so they say)", 784_111_777, "words that are no month are skipped"),
        ("\"Sun, 06-Nov-94\\\"08:49:37\\\"GMT\"", 784_111_777, "quotation marks and backslashes are delimiters"),
        ("06 94 Nov 08:49:37", 784_111_777, "the first number is the day, the second the year"),
        ("Nov 06 94 ::37 08:49:37 x:y:z", 784_111_777, "an invalid time is skipped"),
    ]

    @Test func `dates are read whatever the order of their parts`() {
        for row in Self.readable {
            #expect(CookieDate.parse(row.text).map { $0 + 978_307_200 } == row.seconds, "\(row.text): \(row.why)")
        }
    }

    @Test func `dates that section 5-1-1 forbids in steps 5 and 6 are invalid`() {
        let rows = [
            ("", "no token"), ("06 Nov 1994", "found-time is not set"), ("Nov 1994 08:49:37", "found-day-of-month is not set"),
            ("06 1994 08:49:37", "found-month is not set"), ("06 Nov 08:49:37", "found-year is not set"),
            ("00 Nov 1994 08:49:37", "day less than 1"), ("32 Nov 1994 08:49:37", "day greater than 31"),
            ("06 Nov 1600 08:49:37", "year less than 1601"), ("06 Nov 1994 24:00:00", "hour greater than 23"),
            ("06 Nov 1994 00:60:00", "minute greater than 59"), ("06 Nov 1994 00:00:60", "no leap seconds"),
            ("31 Feb 1994 00:00:00", "no such date exists"), ("29 Feb 1900 00:00:00", "no such date exists"),
            ("06 Nov 19940 08:49:37", "a year has four digits at most"), ("06 Nov 1994 08:49", "a time has three fields"),
            ("06 Nov 1994 91:22:33 08:49:37", "the first time counts"), ("94 Nov 06 08:49:37", "the first number is the day"),
            ("06 Nov 1994 08:49:999", "a time-field has two digits at most"), ("999-Nov-1994 08:49:37", "no day: three digits"),
            ("06 Nov 1994 08: 49:37", "a time is one token"), ("tomorrow", "no token that counts"),
            ("06 Nov 1994 008:49:37", "a time-field has two digits at most"), ("0", "expires=0 is no date"), ("-1", "no date"),
        ]
        for (text, why) in rows { #expect(CookieDate.parse(text) == nil, "\(text): \(why)") }
    }

    @Test func `each day of three centuries is read as it was written`() {
        for day in stride(from: -40_000, to: 70_000, by: 13) {
            let date = Double(day) * 86400 + 12345
            let written = HTTPDate.format(date + 978_307_200)
            #expect(CookieDate.parse(written) == date, "\(written)")
        }
    }
}
