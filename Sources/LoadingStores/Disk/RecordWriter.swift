// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Encodes values: numbers are little-endian, strings and lists are prefixed with their length.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func write(_ number: Double) {
        write(number.bitPattern)
    }

    mutating func write(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            write(UInt32(clamping: utf8.count))
            bytes.append(contentsOf: utf8)
        }
    }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    mutating func write(_ part: [UInt8]) {
        write(UInt32(clamping: part.count))
        bytes += part
    }

    mutating func write(_ numbers: [Int64]) {
        write(UInt32(clamping: numbers.count))
        for number in numbers { write(number) }
    }

    mutating func write(_ block: HeaderBlock) {
        write(block.lines.map { Int64($0.nameLength) << 32 | Int64($0.valueLength) })
        for line in block.lines {
            bytes += block.bytes[line.name]
            bytes += block.bytes[line.value]
        }
    }

    mutating func write(_ text: String?) {
        write(UInt8(text == nil ? 0 : 1))
        if let text { write(text) }
    }
}
