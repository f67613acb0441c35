// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct WebSocketCloseTests {
    private static let family = "👨‍👩‍👧‍👦"

    private static let rows: [(name: String, code: UInt16?, reason: String, body: [UInt8])] =
        [
            ("no code", nil, "", []),
            ("no code and a reason, which cannot stand alone", nil, "why", []),
            ("a code", 1000, "", [0x03, 0xE8]),
            ("a code and a reason", 1001, "é", [0x03, 0xE9, 0xC3, 0xA9]),
            ("a code of an app", 4999, "", [0x13, 0x87]),
            ("a reason that just fits", 1000, ascii(123), [0x03, 0xE8] + Array(ascii(123).utf8)),
            ("a reason that is too long", 1000, ascii(124), [0x03, 0xE8] + Array(ascii(123).utf8)),
            (
                "a reason that is cut before a character of two bytes", 1000, ascii(122) + "é",
                [0x03, 0xE8] + Array(ascii(122).utf8)
            ),
            ("a reason that ends with one that fits", 1000, ascii(121) + "é!", [0x03, 0xE8] + Array((ascii(121) + "é").utf8)),
            (
                "a character of several code points is not cut", 1000, ascii(100) + family, [0x03, 0xE8] + Array(ascii(100).utf8)
            ),
        ]
        + ([0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] as [UInt16]).map {
            ("\($0), which may not be sent", $0, "why", [])
        }

    private static func ascii(_ count: Int) -> String { String(repeating: "a", count: count) }

    @Test(arguments: rows.indices) func `the body of a close frame has code and reason`(index: Int) {
        let row = Self.rows[index]
        #expect(WebSocketClose(code: row.code, reason: row.reason).body == row.body, "\(row.name)")
    }

    @Test func `a written body parses back`() throws {
        for code in 0...UInt16.max where WebSocketClose.isAllowed(code) {
            let body = WebSocketClose(code: code, reason: "ü \(code)").body
            let read = try body.withUnsafeBytes { try WebSocketClose(body: $0) }
            if read != WebSocketClose(code: code, reason: "ü \(code)") { Issue.record("\(code)") }
        }
        #expect(try WebSocketClose(body: .init(start: nil, count: 0)) == WebSocketClose())
    }
}
