// SPDX-License-Identifier: Apache-2.0

/// A field name that the HTTP rules look up.
///
/// The name is represented by a number, so a lookup is a bit test instead of a text comparison.
package struct FieldName: Sendable, Hashable {
    /// The row in ``rows`` (`FieldNameTable.swift`).
    @usableFromInline
    var number: UInt8

    @inlinable
    init(_ number: UInt8) { self.number = number }

    /// Represents every name that is not in the table.
    @inlinable
    package static var other: FieldName { FieldName(63) }

    /// The name's bit in a set of names; 0 for ``other``.
    @inlinable
    var bit: UInt64 { (1 &<< UInt64(number)) & (1 << 63 - 1) }

    /// Whether the field is one of ``ofConnection``.
    package var isConnectionSpecific: Bool { Self.bitsOfConnection & bit != 0 }

    /// Looks up a name, ignoring case.
    package init(_ bytes: UnsafeRawBufferPointer) { self.init(bytes, 0, bytes.count) }

    /// Looks up the name at a position, ignoring case.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ length: Int) {
        self = .other
        guard length >= 2, length < Self.row else { return }
        // The hash treats the first and the last byte as letters. The comparison below rejects every name that is not in the table.
        let slot = Self.slot(length, bytes[start] | 0x20, bytes[start &+ length &- 1] | 0x20)
        let number = Self.slots.utf8Start[slot] &- UInt8(ascii: "0")
        guard number < Self.count else { return }
        let row = UnsafeRawPointer(Self.rows.utf8Start) + Int(number) &* Self.row
        guard row.load(fromByteOffset: length, as: UInt8.self) == UInt8(ascii: "_") else { return }
        guard ByteScan.spells(bytes, start, row, length) else { return }
        self = FieldName(number)
    }

    /// Looks up the name before the first colon of a line.
    ///
    /// If the name is known, `colon` is set to the position of that colon. The name's bytes then need no validation, because every
    /// known name is a token.
    @inline(__always)
    init(leading bytes: UnsafeRawBufferPointer, from start: Int, to end: Int, _ colon: inout Int) {
        self = .other
        let limit = min(end, start &+ Self.row)
        let found = ByteScan.first(UInt8(ascii: ":"), bytes, from: start, to: limit)
        guard found < limit else { return }
        self = FieldName(bytes, start, found &- start)
        if self != .other { colon = found }
    }

    /// All known names, in lowercase.
    package static var known: [(name: FieldName, text: String)] {
        (0..<count).map { number in
            let row = UnsafeBufferPointer(start: rows.utf8Start + Int(number) * Self.row, count: Self.row)
            return (FieldName(number), String(decoding: row.prefix { $0 != UInt8(ascii: "_") }, as: UTF8.self))
        }
    }
}
