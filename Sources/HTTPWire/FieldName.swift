//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A field name that the rules ask for: known by a number, so that looking for it costs a test and no comparison of text.
package struct FieldName: Sendable, Hashable {
    /// The row in ``rows`` (`FieldNameTable.swift`).
    @usableFromInline
    var number: UInt8

    @inlinable
    init(_ number: UInt8) { self.number = number }

    /// All names that nothing is known of.
    @inlinable
    package static var other: FieldName { FieldName(63) }

    /// The bit of the name in a set of names; of those that are not known none.
    @inlinable
    var bit: UInt64 { (1 &<< UInt64(number)) & (1 << 63 - 1) }

    /// Whether the field is one of ``ofConnection``.
    package var isOfConnection: Bool { Self.bitsOfConnection & bit != 0 }

    /// What the bytes spell in any case.
    package init(_ bytes: UnsafeRawBufferPointer) { self.init(bytes, 0, bytes.count) }

    /// What the bytes at a position spell in any case.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ length: Int) {
        self = .other
        guard length >= 2, length < Self.row else { return }
        // Of what is no letter the comparison has to do with, as of what has another length.
        let slot = Self.slot(length, bytes[start] | 0x20, bytes[start &+ length &- 1] | 0x20)
        let number = Self.slots.utf8Start[slot] &- UInt8(ascii: "0")
        guard number < Self.count else { return }
        let row = UnsafeRawPointer(Self.rows.utf8Start) + Int(number) &* Self.row
        guard row.load(fromByteOffset: length, as: UInt8.self) == UInt8(ascii: "_") else { return }
        guard ByteScan.spells(bytes, start, row, length) else { return }
        self = FieldName(number)
    }

    /// The name that ends at the first colon of a line, where it is known: then `colon` moves there.
    ///
    /// No byte of it has to be judged: that it is a token is known.
    @inline(__always)
    init(leading bytes: UnsafeRawBufferPointer, from start: Int, to end: Int, _ colon: inout Int) {
        self = .other
        let limit = min(end, start &+ Self.row)
        let found = ByteScan.first(UInt8(ascii: ":"), bytes, from: start, to: limit)
        guard found < limit else { return }
        self = FieldName(bytes, start, found &- start)
        if self != .other { colon = found }
    }

    /// The names that are known, in lower case.
    package static var known: [(name: FieldName, text: String)] {
        (0..<count).map { number in
            let row = UnsafeBufferPointer(start: rows.utf8Start + Int(number) * Self.row, count: Self.row)
            return (FieldName(number), String(decoding: row.prefix { $0 != UInt8(ascii: "_") }, as: UTF8.self))
        }
    }
}
