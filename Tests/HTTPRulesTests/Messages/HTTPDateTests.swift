// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import SeededNumbers
import Testing

@Suite struct HTTPDateTests {
    @Test func `the three formats of a second are equivalent`() {
        // The examples of RFC 9110, section 5.6.7.
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            #expect(HTTPDate.parse(text) == 784_111_777, "\(text)")
        }
    }

    @Test func `known dates are parsed and formatted`() {
        let rows: [(Double, String)] = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"), (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
            (-2_208_988_800, "Mon, 01 Jan 1900 00:00:00 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (-62_135_596_800, "Mon, 01 Jan 0001 00:00:00 GMT"),
        ]
        for (seconds, text) in rows {
            #expect(HTTPDate.format(seconds) == text)
            #expect(HTTPDate.parse(text) == seconds, "\(text)")
        }
    }

    @Test func `dates out of range are clamped`() {
        #expect(HTTPDate.format(.infinity) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.format(-.infinity) == "Mon, 01 Jan 0001 00:00:00 GMT")
        #expect(HTTPDate.format(.nan) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(HTTPDate.format(0.9) == "Thu, 01 Jan 1970 00:00:00 GMT")
    }

    @Test func `a two-digit year is at most 50 years in the future`() {
        // RFC 9110: "more than 50 years in the future" is "the most recent year in the past that had the same last two digits".
        let now = 1_767_225_600.0  // 2026
        let rows: [(String, Double?, String)] = [
            ("76", now, "2076"), ("77", now, "1977"), ("99", now, "1999"), ("26", now, "2026"), ("00", now, "2000"),
            ("69", nil, "2069"), ("70", nil, "1970"), ("10", .infinity, "2010"),
        ]
        for (digits, now, year) in rows {
            let date = HTTPDate.parse("Sunday, 01-Jan-\(digits) 00:00:00 GMT", now: now)
            #expect(date == HTTPDate.parse("Sun, 01 Jan \(year) 00:00:00 GMT"), "\(digits)")
        }
    }

    @Test func `an invalid date is refused`() {
        for text in [
            "", "0", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 06 Xov 1994 08:49:37 GMT", "Sun, 06 Nov 994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun Nov 6 08:49:37 94", "Sun Nov 00 08:49:37 1994", "Sun, 0x Nov 1994 08:49:37 GMT",
            "Sun, 06 November 1994 08:49:37 GMT",
        ] {
            #expect(HTTPDate.parse(text) == nil, "\(text)")
        }
        #expect(HTTPDate.parse("sun, 06 nov 1994 08:49:60 GMT") == 784_111_800)
    }

    @Test func `every formatted second is parsed back`() {
        var random = SeededNumbers(seed: 7)
        for _ in 0..<3000 {
            let seconds = Double(Int.random(in: -62_135_596_800...253_402_300_799, using: &random))
            #expect(HTTPDate.parse(HTTPDate.format(seconds)) == seconds, "\(seconds)")
        }
    }
}
