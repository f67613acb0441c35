// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct ByteRangeTests {
    @Test func `a Content-Range is parsed into range and length`() {
        // RFC 9110, section 14.4.
        let rows: [(String, Int64, Int64, Int64?)] = [
            ("bytes 42-1233/1234", 42, 1233, 1234), ("bytes 42-1233/*", 42, 1233, nil), ("BYTES  0-0/1 ", 0, 0, 1),
            ("bytes 9223372036854775805-9223372036854775806/9223372036854775807", .max - 2, .max - 1, .max),
        ]
        for (field, first, last, total) in rows {
            guard case .range(let range, let size)? = ByteRange.content(field) else {
                Issue.record("\(field)")
                continue
            }
            #expect(range.first == first && range.last == last && size == total && range.count == last - first + 1, "\(field)")
        }
        #expect(ByteRange.content("bytes */1234") == .unsatisfied(total: 1234))
    }

    @Test func `an invalid Content-Range is ignored`() {
        let rows = [
            "", "bytes", "bytes ", "bytes=0-1/2", "items 0-1/2", "bytes 0-1", "bytes -1/2", "bytes 1-/2", "bytes 0-1/",
            "bytes */*",
            // "invalid if it contains a last-pos less than its first-pos, or a complete-length less than or equal to its
            // last-pos".
            "bytes 2-1/3", "bytes 0-1/1", "bytes 0-3/3", "bytes 0-1/99999999999999999999", "bytes 99999999999999999999-1/2",
            "bytes a-b/c",
            "bytes 0-9223372036854775807/*", "bytes +0-1/2", "bytes 0-1/2/3", "bytes 0 -1/2", "bytes 0-9223372036854775808/*",
        ]
        for field in rows { #expect(ByteRange.content(field) == nil, "\(field)") }
    }

    @Test func `a Range field is formatted`() throws {
        #expect(ByteRange.field(from: 500) == "bytes=500-")
        #expect(try #require(ByteRange(first: 0, last: 499)).field == "bytes=0-499")
        #expect(ByteRange(first: -1, last: 0) == nil)
        #expect(ByteRange(first: 1, last: 0) == nil)
    }
}
