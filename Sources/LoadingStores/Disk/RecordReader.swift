// SPDX-License-Identifier: Apache-2.0

import HTTPWire

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

    mutating func text() -> String? { part().map { String(decoding: $0, as: UTF8.self) } }

    /// Returns nil for invalid UTF-8, too.
    mutating func validText() -> String? { part().flatMap { String(validating: $0, as: UTF8.self) } }

    mutating func part() -> UnsafeRawBufferPointer? { number(UInt32.self).flatMap { take(Int($0)) } }

    private mutating func take(_ length: Int) -> UnsafeRawBufferPointer? {
        guard length <= bytes.count - index else { return nil }
        defer { index += length }
        return UnsafeRawBufferPointer(rebasing: bytes[index..<index + length])
    }

    /// Every length is compared with the remaining bytes before anything is allocated for it.
    mutating func numbers() -> [Int64]? {
        guard let count = number(UInt32.self), count <= (bytes.count - index) / 8 else { return nil }
        return (0..<count).compactMap { _ in number(Int64.self) }
    }

    mutating func block() -> HeaderBlock? {
        guard let lengths = numbers() else { return nil }
        var end = 0
        var lines: [HeaderBlock.Line] = []
        lines.reserveCapacity(lengths.count)
        for length in lengths {
            let (name, value) = (Int(truncatingIfNeeded: length >> 32), Int(truncatingIfNeeded: length & 0xFFFF_FFFF))
            guard name >= 0, name + value <= bytes.count - index - end else { return nil }
            lines.append(HeaderBlock.Line(nameStart: end, nameLength: name, valueStart: end + name, valueLength: value))
            end += name + value
        }
        return take(end).map { HeaderBlock(bytes: [UInt8]($0), lines: lines) }
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
