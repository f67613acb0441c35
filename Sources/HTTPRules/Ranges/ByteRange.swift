//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Names a run of bytes of a representation, and reads and writes it as HTTP does (RFC 9110, section 14).
package struct ByteRange: Hashable, Sendable {
    package let first: Int64
    /// The last byte itself, not the one after it.
    package let last: Int64

    /// Nil where the last byte lies before the first.
    package init?(first: Int64, last: Int64) {
        guard first >= 0, last >= first else { return nil }
        self.first = first
        self.last = last
    }

    package var count: Int64 { last - first + 1 }

    /// The value of `Range` that asks for everything from a byte on (section 14.2).
    package static func field(from first: Int64) -> String { "bytes=\(first)-" }

    /// The value of `Range` that asks for this range.
    package var field: String { "bytes=\(first)-\(last)" }

    /// What a `Content-Range` says (section 14.4).
    package enum Content: Hashable, Sendable {
        /// These bytes are here, of so many; nil where the server does not know.
        case range(ByteRange, total: Int64?)
        /// Of a 416: nothing is here, of so many.
        case unsatisfied(total: Int64)
    }

    /// Reads a `Content-Range`.
    ///
    /// Nil for another unit and for an invalid one, which "the recipient MUST NOT attempt to recombine" (section 14.4).
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
        guard !digits.isEmpty else { return nil }
        var number: Int64 = 0
        for digit in digits {
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            guard !overflow, !carry else { return nil }
            number = sum
        }
        return number
    }
}
