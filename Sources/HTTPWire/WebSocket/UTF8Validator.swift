// SPDX-License-Identifier: Apache-2.0

/// Validates text in pieces as UTF-8 (RFC 3629) and fails at the first invalid byte.
///
/// Overlong forms, surrogates and code points above U+10FFFF are rejected.
package struct UTF8Validator: Sendable {
    /// The number of bytes missing from the last character.
    private var missing = 0
    /// The valid range of the next missing byte.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF
    private var isBroken = false

    package init() {}

    /// Whether the text may end here: all bytes were valid UTF-8, and the last character is complete.
    package var isComplete: Bool { missing == 0 && !isBroken }

    /// Validates the next piece.
    ///
    /// Returns whether all pieces so far are valid UTF-8.
    package mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isBroken else { return false }
        let count = bytes.count
        var position = 0
        while true {
            // A character split across pieces.
            while missing > 0, position < count {
                guard allowed.contains(bytes[position]) else { return fail() }
                allowed = 0x80...0xBF
                missing &-= 1
                position &+= 1
            }
            guard Self.skipWhole(bytes, &position) else { return fail() }
            guard position < count else { return true }
            guard begin(bytes[position]) else { return fail() }
            position &+= 1
        }
    }

    private mutating func fail() -> Bool {
        isBroken = true
        return false
    }

    /// Processes the first byte of a character (RFC 3629, section 4).
    ///
    /// Returns false if the byte is invalid.
    private mutating func begin(_ byte: UInt8) -> Bool {
        switch byte {
        case ..<0x80: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, allowed) = (2, 0xA0...0xBF)
        case 0xED: (missing, allowed) = (2, 0x80...0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, allowed) = (3, 0x90...0xBF)
        case 0xF4: (missing, allowed) = (3, 0x80...0x8F)
        case 0xF1...0xF3: missing = 3
        default: return false
        }
        return true
    }

    /// Skips the characters that start at least four bytes before the end.
    ///
    /// Returns false at an invalid character.
    @inline(__always)
    private static func skipWhole(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> Bool {
        let count = bytes.count
        while true {
            position = skipASCII(bytes, position)
            // Within one script, most characters have the same length.
            while position &+ 4 <= count {
                let word = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
                let high = word & 0x8080_8080
                if high & 0x80 == 0 {
                    if high == 0, position &+ 8 <= count { break }
                    position &+= high == 0 ? 4 : high.trailingZeroBitCount >> 3
                    continue
                }
                if word & 0xC0E0 == 0x80C0 {
                    guard word & 0x1E != 0 else { return false }
                    position &+= 2
                } else if word & 0xC0C0F0 == 0x8080E0 {
                    // E0 is followed by A0 to BF, ED by 80 to 9F.
                    let start = word & 0x200F
                    guard start != 0, start != 0x200D else { return false }
                    position &+= 3
                } else if word & 0xC0C0_C0F8 == 0x8080_80F0 {
                    // F0 is followed by 90 to BF, F4 by 80 to 8F. F5 to F7 are invalid.
                    let start = (word & 0x07) << 2 | (word >> 12) & 0x03
                    guard 1...16 ~= start else { return false }
                    position &+= 4
                } else {
                    return false
                }
            }
            if position &+ 4 > count { return true }
        }
    }

    /// Returns the first non-ASCII position at or after a position.
    ///
    /// The result may be an ASCII byte if fewer than eight bytes are left.
    @inline(__always)
    private static func skipASCII(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
        let tops: UInt64 = 0x8080_8080_8080_8080
        var position = start
        while position &+ 32 <= bytes.count {
            let block = bytes.loadUnaligned(fromByteOffset: position, as: SIMD4<UInt64>.self)
            if (block[0] | block[1] | block[2] | block[3]) & tops != 0 { break }
            position &+= 32
        }
        while position &+ 8 <= bytes.count {
            let found = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)) & tops
            if found != 0 { return position &+ found.trailingZeroBitCount >> 3 }
            position &+= 8
        }
        return position
    }
}
