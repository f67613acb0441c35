//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Finds bytes eight at a time.
///
/// The word tricks are exact for the lowest byte they report: a borrow only ever runs towards the higher ones.
enum ByteScan {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    /// The first byte below SP in `bytes[start..<end]`, or `end`.
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

    /// The first LF in `bytes[start..<end]`, or `end`.
    @inline(__always)
    static func firstLineFeed(_ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int {
        var position = start
        while position &+ 8 <= end {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)) ^ ones &* 0x0A
            let found = (word &- ones) & ~word & tops
            if found != 0 { return position &+ found.trailingZeroBitCount >> 3 }
            position &+= 8
        }
        while position < end, bytes[position] != 0x0A { position &+= 1 }
        return position
    }
}
