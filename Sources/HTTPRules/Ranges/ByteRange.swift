// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A range of bytes of a representation, with its HTTP syntax (RFC 9110, section 14).
package struct ByteRange: Hashable, Sendable {
    package let first: Int64
    /// The position of the last byte, inclusive.
    package let last: Int64

    /// Returns nil if the last byte is before the first.
    package init?(first: Int64, last: Int64) {
        guard first >= 0, last >= first else { return nil }
        self.first = first
        self.last = last
    }

    package var count: Int64 { last - first + 1 }

    /// Returns the value of `Range` for all bytes from a position on (section 14.2).
    package static func field(from first: Int64) -> String { "bytes=\(first)-" }

    /// The value of `Range` for this range.
    package var field: String { "bytes=\(first)-\(last)" }

    /// The content of a `Content-Range` field (section 14.4).
    package enum Content: Hashable, Sendable {
        /// The range of the response and the complete length; the length is nil if the server does not know it.
        case range(ByteRange, total: Int64?)
        /// The complete length in a 416 response, which has no range.
        case unsatisfied(total: Int64)
    }

    /// Parses a `Content-Range` field.
    ///
    /// Returns nil for another unit and for an invalid field. In both cases, the recipient must not combine the content with a stored
    /// representation (section 14.4).
    package static func content(_ field: String) -> Content? {
        let bytes = ASCII.trimmed(Array(field.utf8)[...])
        guard let space = bytes.firstIndex(where: ASCII.isWhitespace),
            bytes[..<space].map(ASCII.lowercased).elementsEqual("bytes".utf8)
        else { return nil }
        let value = ASCII.trimmed(bytes[space...])
        guard let slash = value.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        let range = value[..<slash]
        let unknown = [UInt8(ascii: "*")][...]
        let total = number(value[(slash + 1)...])
        guard total != nil || value[(slash + 1)...] == unknown else { return nil }
        if range == unknown { return total.map { .unsatisfied(total: $0) } }
        guard let dash = range.firstIndex(of: UInt8(ascii: "-")), let first = number(range[..<dash]),
            let last = number(range[(dash + 1)...]), last < Int64.max, let found = ByteRange(first: first, last: last),
            total.map({ $0 > last }) ?? true
        else { return nil }
        return .range(found, total: total)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.allSatisfy(ASCII.isDigit) ? Int64(String(decoding: digits, as: UTF8.self)) : nil
    }
}
