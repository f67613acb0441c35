// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct FreshnessTests {
    @Test func `the lifetime is that of max-age, or of Expires`() {
        let rows: [(String, Double)] = [
            // RFC 9111, section 4.2.1: "If the max-age response directive is present, use its value".
            ("Cache-Control: max-age=60", 60), ("Cache-Control: max-age=60\nExpires: {3600}\nDate: {0}", 60),
            // RFC 9111, section 5.3: "If a response includes a Cache-Control header field with the max-age directive, a recipient
            // MUST ignore the Expires header field."
            ("Cache-Control: max-age=60\nExpires: 0", 60), ("Cache-Control: max-age=0\nExpires: {3600}\nDate: {0}", 0),
            // RFC 9111, section 4.2.1: "if the cache is shared and the s-maxage response directive is present"; this cache is not
            // shared.
            ("Cache-Control: s-maxage=600, max-age=60", 60), ("Cache-Control: max-age=60, s-maxage=0", 60),
            ("Cache-Control: s-maxage=600\nExpires: {5}\nDate: {0}", 5),
            // "If the Expires response header field is present, use its value minus the value of the Date response header
            // field".
            ("Expires: {100}\nDate: {0}", 100), ("Expires: {100}\nDate: {40}", 60), ("Expires: {100}\nDate: {-40}", 140),
            ("Expires: {0}\nDate: {0}", 0), ("Expires: {-1}\nDate: {0}", 0),
            ("Cache-Control: public\nExpires: {9}\nDate: {0}", 9),
            // RFC 9110, section 6.6.1: without a Date, the time of receipt counts.
            ("Expires: {100}", 100), ("Expires: {100}\nDate: 0", 100), ("Expires: {100}\nDate: today", 100),
            // RFC 9111, section 5.3: "MUST interpret invalid date formats, especially the value "0", as representing a time in
            // the past".
            ("Expires: 0\nDate: {0}", 0), ("Expires: -1", 0), ("Expires: ", 0), ("Expires: never", 0), ("Expires: {100} x", 0),
            ("Expires: 0\nLast-Modified: {-1000}", 0),
            // RFC 9111, section 4.2.1: "more than one value present …, the response should be considered stale".
            ("Expires: {100}\nExpires: {200}\nDate: {0}", 0), ("Expires: {100}\nExpires: {100}\nDate: {0}", 100),
            ("Cache-Control: max-age=10\nCache-Control: max-age=20", 0),
            ("Cache-Control: max-age=x\nExpires: {100}\nDate: {0}", 0),
            // Lifetimes are limited to 2^31 seconds.
            ("Expires: Fri, 31 Dec 9999 23:59:59 GMT", 2_147_483_648), ("Cache-Control: max-age=99999999999", 2_147_483_648),
        ]
        for (text, lifetime) in rows { #expect(Freshness.lifetime(CachingRow.stored(text)) == lifetime, "\(text)") }
    }

    @Test func `Expires is parsed as an HTTP date`() {
        // The start is Sat, 09 May 2026 06:13:20 GMT; the dates are ten seconds later.
        let rows: [(String, Double)] = [
            ("Sat, 09 May 2026 06:13:30 GMT", 10), ("Saturday, 09-May-26 06:13:30 GMT", 10), ("Sat May  9 06:13:30 2026", 10),
            ("Sat May 09 06:13:30 2026", 10),
            // RFC 9111, section 4.2: "a cache recipient SHOULD match the field value case-insensitively".
            ("sat, 09 may 2026 06:13:30 gmt", 10), ("SAT, 09 MAY 2026 06:13:30 GMT", 10),
            ("saturday, 09-may-26 06:13:30 gmt", 10),
            // "SHOULD consider a date with a zone abbreviation other than "GMT" to be invalid".
            ("Sat, 09 May 2026 06:13:30 UTC", 0), ("Sat, 09 May 2026 06:13:30 utc", 0), ("Sat, 09 May 2026 08:13:30 CET", 0),
            ("Saturday, 09-May-26 06:13:30 UTC", 0),
            ("Sat, 09 May 2026 06:13:30 AEST", 0), ("Sat, 09 May 2026 06:13:30 +0000", 0), ("Sat, 09 May 2026 06:13:30", 0),
            ("Sat, 09 May 2026 06:13:30 Z", 0), ("Sat, 09 May 2026 06:13:30 EST", 0),
            // The day of the week is not checked.
            ("Mon, 09 May 2026 06:13:30 GMT", 10),
            // Invalid by the grammar of RFC 9110, section 5.6.7.
            ("Sat, 9 May 2026 06:13:30 GMT", 0), ("Sat, 09 May 2026 6:13:30 GMT", 0), ("Sat, 09 May 26 06:13:30 GMT", 0),
            ("Sat 09 May 2026 06:13:30 GMT", 0), ("Sat,  09 May 2026 06:13:30 GMT", 0), ("Sat, 09 May  2026 06:13:30 GMT", 0),
            ("Sat, 09-May-2026 06:13:30 GMT", 0), ("Sat, 09 May 2026 06.13.30 GMT", 0), ("Sat, 09 Mai 2026 06:13:30 GMT", 0),
            ("Sat, 32 May 2026 06:13:30 GMT", 0), ("Sat, 09 May 2026 24:13:30 GMT", 0), ("Sat, 09 May 2026 06:13 GMT", 0),
            ("09 May 2026 06:13:30 GMT", 0), ("2026-05-09T06:13:30Z", 0), ("\"Sat, 09 May 2026 06:13:30 GMT\"", 0),
            ("1778307210", 0), ("Sat, 09 May 2026 06:13:30 GMT, Sat, 09 May 2026 06:13:30 GMT", 0),
            ("Sat, 30 Feb 2027 06:13:30 GMT", 0),
            // RFC 9110, section 5.6.7: "appears to be more than 50 years in the future as representing the most recent year in
            // the past".
            ("Saturday, 09-May-77 06:13:30 GMT", 0), ("Saturday, 09-May-76 06:13:30 GMT", 1_577_923_210),
        ]
        for (text, lifetime) in rows {
            let stored = CachingRow.stored("Expires: \(text)\nDate: {0}")
            #expect(Freshness.lifetime(stored) == lifetime, "\(text)")
        }
    }

    @Test func `without an explicit lifetime, a tenth of the time since the last change is used`() {
        let rows: [(String, Int, Double)] = [
            // RFC 9111, section 4.2.2: "A typical setting of this fraction might be 10%."
            ("Last-Modified: {-1000}\nDate: {0}", 200, 100), ("Last-Modified: {-1000}", 200, 100),
            ("Last-Modified: {-1000}\nDate: {-500}", 200, 50),
            ("Last-Modified: Sat, 09 May 2015 06:13:20 GMT\nDate: {0}", 200, 604_800),
            ("Last-Modified: {1000}\nDate: {0}", 200, 0), ("Last-Modified: {0}\nDate: {0}", 200, 0), ("Last-Modified: x", 200, 0),
            ("Date: {0}\nETag: \"a\"", 200, 0), ("", 200, 0), ("Date: {0}", 200, 0),
            // "A cache MUST NOT use heuristics to determine freshness when an explicit expiration time is present".
            ("Last-Modified: {-1000}\nDate: {0}\nExpires: {5}", 200, 5),
            ("Last-Modified: {-1000}\nCache-Control: max-age=5", 200, 5),
            // Directives without a time allow a heuristic; s-maxage is for shared caches.
            ("Last-Modified: {-1000}\nCache-Control: private", 200, 100),
            ("Last-Modified: {-1000}\nCache-Control: s-maxage=9", 200, 100),
            ("Last-Modified: {-1000}\nPragma: no-cache", 200, 100),
            // "status codes that are defined as cacheable by default" (RFC 9110, section 15.1), "or … explicitly marked as
            // cacheable".
            ("Last-Modified: {-1000}", 203, 100), ("Last-Modified: {-1000}", 204, 100), ("Last-Modified: {-1000}", 206, 100),
            ("Last-Modified: {-1000}", 404, 100), ("Last-Modified: {-1000}", 501, 100), ("Last-Modified: {-1000}", 300, 100),
            ("Last-Modified: {-1000}", 201, 0), ("Last-Modified: {-1000}", 202, 0), ("Last-Modified: {-1000}", 299, 0),
            // These statuses are permanent (RFC 9110, sections 15.4.2, 15.4.9 and 15.5.11).
            ("", 301, 604_800), ("Date: {-5}", 308, 604_800), ("Last-Modified: {-1000}", 410, 604_800),
            ("Cache-Control: max-age=5", 301, 5), ("Expires: 0", 308, 0),
            ("Last-Modified: {-1000}", 302, 0), ("Last-Modified: {-1000}", 500, 0),
            ("Last-Modified: {-1000}\nCache-Control: public", 201, 100),
            ("Last-Modified: {-1000}\nCache-Control: public", 299, 100),
        ]
        for (text, status, lifetime) in rows {
            let found = Freshness.lifetime(CachingRow.stored(text, status: status))
            #expect(abs(found - lifetime) < 1e-6, "\(status) \(text): \(found)")
        }
    }

    @Test func `the age is counted from the origin`() {
        let rows: [(String, delay: Double, resident: Double, Double)] = [
            ("Date: {0}", 0, 0, 0), ("Date: {0}", 0, 30, 30),
            // RFC 9111, section 4.2.3: "apparent_age = max(0, response_time - date_value)".
            ("Date: {-20}", 0, 30, 50), ("Date: {20}", 0, 30, 30), ("Date: x", 0, 30, 30), ("", 0, 30, 30),
            // "corrected_age_value = age_value + response_delay".
            ("Date: {0}\nAge: 100", 0, 0, 100), ("Date: {0}\nAge: 100", 4, 0, 104), ("Date: {0}", 4, 5, 9),
            // "corrected_initial_age = max(apparent_age, corrected_age_value)".
            ("Date: {-20}\nAge: 100", 4, 5, 109), ("Date: {-200}\nAge: 100", 4, 5, 205),
            // RFC 9111, section 5.1: "SHOULD use the first member of the field value, discarding subsequent ones".
            ("Age: 100, 7", 0, 0, 100), ("Age: 0, 7200", 0, 0, 0), ("Age: 100\nAge: 7", 0, 0, 100), ("Age: 100,", 0, 0, 100),
            // "If the field value … is invalid (e.g., contains something other than a non-negative integer), a cache SHOULD
            // ignore the field."
            ("Age: -100", 0, 0, 0), ("Age: 1.5", 0, 0, 0), ("Age: x, 100", 0, 0, 0), ("Age: 100x", 0, 0, 0),
            ("Age: \"100\"", 0, 0, 0),
            ("Age: ", 0, 0, 0), ("Age: 100;a", 0, 0, 0), ("Age: abc", 0, 0, 0), ("Age: , 5", 0, 0, 0), ("Age: 1 2", 0, 0, 0),
            ("Age: 007", 0, 0, 7),
            // RFC 9111, section 1.2.2.
            ("Age: 99999999999999999999", 0, 0, 2_147_483_648), ("Age: 2147483649", 0, 0, 2_147_483_648),
            // If the clock was set back, the difference counts as age.
            ("Date: {0}", 0, -30, 30), ("Date: {0}", -5, 0, 0),
        ]
        for (text, delay, resident, age) in rows {
            let stored = CachingRow.stored(text, delay: delay)
            #expect(Freshness.currentAge(stored, now: CachingRow.start + resident) == age, "\(text), \(delay), \(resident)")
        }
    }

    @Test func `a response is fresh if it is younger than its lifetime`() {
        // RFC 9111, section 4.2: "response_is_fresh = (freshness_lifetime > current_age)".
        let stored = CachingRow.stored("Date: {0}\nCache-Control: max-age=60")
        for (age, fresh) in [(0, true), (59, true), (60, false), (61, false)] {
            #expect(Freshness.isFresh(stored, now: CachingRow.start + Double(age)) == fresh, "\(age)")
        }
        #expect(Freshness.staleness(stored, now: CachingRow.start + 75) == 15)
        #expect(Freshness.staleness(stored, now: CachingRow.start + 5) == 0)
        // An Age of 2^31 exceeds every lifetime.
        let old = CachingRow.stored("Date: {0}\nCache-Control: max-age=2147483648\nAge: 2147483648")
        #expect(!Freshness.isFresh(old, now: CachingRow.start))
    }

    @Test func `invalid times never make a response fresh forever`() {
        var stored = CachingRow.stored("Date: {0}\nCache-Control: max-age=60")
        for time in [Double.nan, .infinity, -.infinity, .greatestFiniteMagnitude] {
            let age = Freshness.currentAge(stored, now: time)
            #expect(age.isFinite && age > 60, "\(time)")
        }
        for time in [Double.nan, .infinity, -.infinity] {
            stored.responseTime = time
            stored.requestTime = time
            stored.headers = CachingRow.headers("Expires: {60}\nLast-Modified: {-5}")
            let age = Freshness.currentAge(stored, now: CachingRow.start)
            let lifetime = Freshness.lifetime(stored)
            #expect(
                age.isFinite && age >= 0 && lifetime.isFinite && lifetime >= 0 && age > lifetime, "\(time): \(age), \(lifetime)")
        }
    }

    @Test func `a response served without validation has an Age, and lacks the fields that no-cache lists`() {
        // RFC 9111, section 4: "MUST generate an Age header field, replacing any present in the response".
        let stored = CachingRow.stored(
            "Date: {0}\nAge: 5\nCache-Control: max-age=60, no-cache=\"Set-Cookie, X\"\nSet-Cookie: a=b\nX: 1\nY: 2")
        let served = stored.headersForReuse(now: CachingRow.start + 10.9, wasValidated: false)
        #expect(
            served.all("Age") == ["15"] && !served.contains("Set-Cookie") && !served.contains("X") && served.first("Y") == "2")
        #expect(stored.headersForReuse(now: CachingRow.start + 10, wasValidated: true) == stored.headers)
    }

    @Test func `a response without Date is served with the date of receipt`() {
        // RFC 9110, section 6.6.1: "MUST record the time it was received and append a corresponding Date header field … if it
        // is cached".
        for (text, date) in [("X: 1", CachingRow.date(0)), ("Date: {-5}", CachingRow.date(-5)), ("Date: x", "x")] {
            let served = CachingRow.stored(text).headersForReuse(now: CachingRow.start + 10, wasValidated: false)
            #expect(served.all("Date") == [date], "\(text)")
        }
        // That date does not make Last-Modified a strong validator (section 8.8.2.2: "generated by the same clock").
        #expect(CachingRow.stored("Last-Modified: {-1000}").strongValidator == nil)
    }

    @Test func `the fast and the complete date parser agree`() {
        var random = SeededNumbers(seed: 1)
        for _ in 0..<3000 {
            let time = Double.random(in: 0..<8e9, using: &random).rounded()
            let parts = HTTPDate.format(time).split(separator: " ")
            // The same second in asctime format, which only the complete parser reads.
            let other = "\(parts[0].prefix(3)) \(parts[2]) \(parts[1]) \(parts[4]) \(parts[3])"
            let later = CachingRow.stored("Date: \(other)\nExpires: \(HTTPDate.format(time + 1000))")
            #expect(Freshness.lifetime(later) == 1000, "\(other)")
            let same = CachingRow.stored("Date: \(HTTPDate.format(time))\nExpires: \(other)")
            #expect(Freshness.lifetime(same) == 0, "\(other)")
        }
    }
}
