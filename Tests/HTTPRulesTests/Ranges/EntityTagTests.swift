// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct EntityTagTests {
    private func tag(_ text: String) throws -> EntityTag { try #require(EntityTag(text)) }

    @Test func `strong comparison follows the table of RFC 9110, section 8.8.3.2`() throws {
        let rows: [(String, String, Bool)] = [
            ("W/\"1\"", "W/\"1\"", false), ("W/\"1\"", "W/\"2\"", false), ("W/\"1\"", "\"1\"", false), ("\"1\"", "\"1\"", true),
            ("\"1\"", "\"2\"", false), ("\"\"", "\"\"", true), (" \"a\" ", "\"a\"", true),
        ]
        for (left, right, matches) in rows {
            #expect(try tag(left).matchesStrongly(tag(right)) == matches, "\(left) \(right)")
        }
    }

    @Test func `an unquoted tag is invalid`() {
        for text in ["", "abc", "\"", "\"a", "a\"", "\"a\"b\"", "w/\"a\"", "\"a b\"", "W/", "\"a\u{7F}\"", "*"] {
            #expect(EntityTag(text) == nil, "\(text)")
        }
    }
}
