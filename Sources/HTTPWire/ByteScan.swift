// SPDX-License-Identifier: Apache-2.0

/// Finds bytes eight at a time.
///
/// The bit tricks are exact for the lowest matching byte, because a borrow only propagates to higher bytes.
enum ByteScan {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    /// Returns the position of the first byte below SP in `bytes[start..<end]`, or `end`.
    @inline(__always)
    static func firstControl(_ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int {
        var position = start
        while position &+ 8 <= end {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            let found = (word &- ones &* 0x20) & ~word & tops
            if found != 0 { return position &+ found.trailingZeroBitCount >> 3 }
            position &+= 8
        }
        while position < end, bytes[position] >= 0x20 { position &+= 1 }
        return position
    }

    /// Returns the position of the first LF in `bytes[start..<end]`, or `end`.
    @inline(__always)
    static func firstLineFeed(_ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int {
        first(0x0A, bytes, from: start, to: end)
    }

    /// Returns the position of the first occurrence of a byte in `bytes[start..<end]`, or `end`.
    @inline(__always)
    static func first(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int {
        var position = start
        while position &+ 8 <= end {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)) ^ ones &* UInt64(byte)
            let found = (word &- ones) & ~word & tops
            if found != 0 { return position &+ found.trailingZeroBitCount >> 3 }
            position &+= 8
        }
        while position < end, bytes[position] != byte { position &+= 1 }
        return position
    }

    /// Whether the bytes at a position equal a lowercase word of letters, digits and hyphens, ignoring case.
    ///
    /// An underscore in the word matches no byte.
    @inline(__always)
    static func spells(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ word: UnsafeRawPointer, _ count: Int) -> Bool {
        guard count >= 8 else {
            for index in 0..<count {
                let wanted = word.load(fromByteOffset: index, as: UInt8.self)
                guard bytes[start &+ index] | wanted >> 1 & 0x20 == wanted else { return false }
            }
            return true
        }
        // The last eight bytes may overlap bytes that have already been compared.
        var index = 0
        while true {
            let wanted = word.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            // In the word, only letters have bit 0x40. Setting bit 0x20 at these positions lowercases the input's letters.
            let letters = wanted >> 1 & (ones &* 0x20)
            guard bytes.loadUnaligned(fromByteOffset: start &+ index, as: UInt64.self) | letters == wanted else { return false }
            guard index < count &- 8 else { return true }
            index = min(index &+ 8, count &- 8)
        }
    }
}
