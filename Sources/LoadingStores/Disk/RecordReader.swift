//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Reads what a ``RecordWriter`` wrote; nil where there is not enough of it.
///
/// Bytes that are no text, which only somebody else can have written and sealed, are read as replacement characters.
struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    private var index: Int

    init(_ bytes: UnsafeRawBufferPointer, from start: Int) {
        self.bytes = bytes
        index = min(max(start, 0), bytes.count)
    }

    var isAtEnd: Bool { index == bytes.count }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type) -> Number? {
        let size = Number.bitWidth / 8
        guard bytes.count - index >= size else { return nil }
        defer { index += size }
        return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: Number.self))
    }

    /// Any number, infinite ones and those that are none too.
    mutating func double() -> Double? {
        number(UInt64.self).map { Double(bitPattern: $0) }
    }

    mutating func text() -> String? {
        guard let length = number(UInt32.self).map({ Int($0) }), length <= bytes.count - index else { return nil }
        defer { index += length }
        return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[index..<index + length]), as: UTF8.self)
    }

    /// nil if there is no telling, `.some(nil)` if there was none.
    mutating func optionalText() -> String?? {
        switch number(UInt8.self) {
        case 0: .some(nil)
        case 1: text().map { .some($0) }
        default: nil
        }
    }
}
