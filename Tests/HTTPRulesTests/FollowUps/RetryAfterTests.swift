// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

/// The field `Retry-After` (RFC 9110, section 10.2.3).
struct RetryAfterTests {
    @Test(
        arguments: [
            ("0", 0), ("120", 120), (" 7\t", 7), ("99999999999999999999", 1e20), ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 08:49:38 GMT", 1), ("Sun Nov  6 08:49:37 1994", 0), ("Sun, 06 Nov 1994 08:49:36 GMT", 0),
        ] as [(String, Double)])
    func `a number of seconds or a date is a time to wait`(value: String, expected: Double) {
        #expect(RetryAfter.seconds(value, now: 784_111_777) == expected)
    }

    @Test(arguments: [
        "", " ", "1 2", "-1", "+1", "1.5", "1e3", "0x10", "inf", "nan", "1,2", "soon", "Sun, 06 Nov 1994 08:49:37 CET",
    ])
    func `any other value is ignored`(value: String) {
        #expect(RetryAfter.seconds(value, now: 784_111_777) == nil)
    }
}
