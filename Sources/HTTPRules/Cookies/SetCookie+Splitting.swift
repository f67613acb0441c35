// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension SetCookie {
    /// Splits a value that may contain several cookies joined by commas, as in APIs with a dictionary of header fields.
    ///
    /// RFC 9110, section 5.3, warns that `Set-Cookie` lines cannot be joined: dates contain commas, and values may contain commas as
    /// well. A comma outside of a quoted value is a separator if a name and `=` follow it; a comma in a date is not followed by them.
    package static func split(_ joined: String) -> [String] {
        let bytes = Array(joined.utf8)
        var cookies: [String] = []
        var start = 0
        var position = 0
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: ",") where beginsCookie(bytes, after: position):
                append(bytes[start..<position], to: &cookies)
                start = position + 1
            case UInt8(ascii: "="):
                position = endOfQuotation(bytes, after: position)
            default: break
            }
            position += 1
        }
        append(bytes[start...], to: &cookies)
        return cookies
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to cookies: inout [String]) {
        let bytes = ASCII.trimmed(bytes)
        if !bytes.isEmpty { cookies.append(String(decoding: bytes, as: UTF8.self)) }
    }

    /// Whether the comma is followed by a name and `=`.
    private static func beginsCookie(_ bytes: [UInt8], after comma: Int) -> Bool {
        let start = skippingSpace(bytes, comma + 1)
        var end = start
        while end < bytes.count, isNameByte(bytes[end]) { end += 1 }
        guard end > start else { return false }
        let next = skippingSpace(bytes, end)
        return next < bytes.count && bytes[next] == UInt8(ascii: "=")
    }

    /// Names are tokens (RFC 6265bis, section 4.1.1).
    ///
    /// Brackets are allowed as well, because `a[b]` is common.
    ///
    /// Other characters of URLs and email addresses are not part of a name: in `Comment=by, me@here=1` the comma is not a
    /// separator.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isTokenCharacter(byte) || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]") || byte >= 0x80
    }

    private static func skippingSpace(_ bytes: [UInt8], _ start: Int) -> Int {
        var position = start
        while position < bytes.count, ASCII.isWhitespace(bytes[position]) { position += 1 }
        return position
    }

    /// Returns the position of the closing quotation mark if the whole value is quoted, otherwise the position of the `=`.
    private static func endOfQuotation(_ bytes: [UInt8], after equals: Int) -> Int {
        let open = skippingSpace(bytes, equals + 1)
        guard open < bytes.count, bytes[open] == UInt8(ascii: "\"") else { return equals }
        guard let close = bytes[(open + 1)...].firstIndex(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: ";") }),
            bytes[close] == UInt8(ascii: "\"")
        else { return equals }
        let next = skippingSpace(bytes, close + 1)
        guard next == bytes.count || bytes[next] == UInt8(ascii: ";") || bytes[next] == UInt8(ascii: ",") else { return equals }
        return close
    }
}
