//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Decodes the records of a ``RecordWriter``; nil if bytes are missing.
///
/// Invalid UTF-8, which ``RecordWriter`` never produces, is decoded as replacement characters.
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

    /// Any bit pattern, including infinity and NaN.
    mutating func double() -> Double? {
        number(UInt64.self).map { Double(bitPattern: $0) }
    }

    mutating func text() -> String? {
        guard let length = number(UInt32.self).map({ Int($0) }), length <= bytes.count - index else { return nil }
        defer { index += length }
        return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[index..<index + length]), as: UTF8.self)
    }

    /// nil if the bytes are malformed, `.some(nil)` if the text is absent.
    mutating func optionalText() -> String?? {
        switch number(UInt8.self) {
        case 0: .some(nil)
        case 1: text().map { .some($0) }
        default: nil
        }
    }
}
