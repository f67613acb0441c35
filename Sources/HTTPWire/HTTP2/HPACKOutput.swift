// SPDX-License-Identifier: Apache-2.0

/// Writes the primitives of RFC 7541, section 5.
///
/// The caller has checked the size of the buffer.
struct HPACKOutput {
    private let buffer: UnsafeMutableRawBufferPointer
    private let code = HPACKHuffman.code
    private(set) var position = 0

    init(buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    @inline(__always)
    mutating func put(_ byte: UInt8) {
        buffer[position] = byte
        position &+= 1
    }

    /// Writes an integer with a prefix of `prefix` bits, in a first byte that contains the bits of `pattern` (section 5.1).
    @inline(__always)
    mutating func put(_ number: Int, prefix: UInt8, pattern: UInt8) {
        let mask: UInt8 = 0xFF >> (8 &- prefix)
        guard number >= Int(mask) else { return put(pattern | UInt8(truncatingIfNeeded: number)) }
        put(pattern | mask)
        var rest = number &- Int(mask)
        while rest >= 0x80 {
            put(0x80 | UInt8(truncatingIfNeeded: rest & 0x7F))
            rest >>= 7
        }
        put(UInt8(truncatingIfNeeded: rest))
    }

    /// Writes a string (section 5.2), Huffman-encoded if the encoded form is shorter.
    mutating func putString(_ text: UnsafeRawBufferPointer) {
        let length = code.encodedLength(text)
        if length < text.count {
            put(length, prefix: 7, pattern: 0x80)
            code.encode(text, into: buffer, position)
            position &+= length
        } else {
            put(text.count, prefix: 7, pattern: 0)
            UnsafeMutableRawBufferPointer(rebasing: buffer[position...]).copyMemory(from: text)
            position &+= text.count
        }
    }

    /// Returns the value without leading and trailing whitespace, which HTTP/2 does not allow (RFC 9113, section 8.2.1).
    @inline(__always)
    static func trimmed(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UnsafeRawBufferPointer {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, ASCII.isWhitespace(bytes[start]) { start &+= 1 }
        while end > start, ASCII.isWhitespace(bytes[end &- 1]) { end &-= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }
}
