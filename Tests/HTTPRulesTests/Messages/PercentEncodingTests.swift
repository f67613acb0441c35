// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct PercentEncodingTests {
    @Test func `a percent sign that does not start an escape is kept`() throws {
        // RFC 3986, section 2.1, tested with data URLs, whose content is octets.
        let rows = [
            ("%41", "A"), ("%4a%4A", "JJ"), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%4g", "%4g"), ("a%%41", "a%A"),
            ("%2", "%2"),
        ]
        for (text, expected) in rows {
            #expect(try #require(DataURL("data:,\(text)")).bytes == Array(expected.utf8), "\(text)")
        }
    }
}
