// SPDX-License-Identifier: Apache-2.0

/// Detects accidental damage: 64-bit FNV-1a, eight bytes at a time.
///
/// Every step is invertible, so a change that affects a single group of eight bytes is always detected.
enum Checksum {
    private static let prime: UInt64 = 0x0000_0100_0000_01B3

    static func of(_ bytes: [UInt8], from start: Int = 0) -> UInt64 {
        bytes.withUnsafeBytes { bytes in
            var sum: UInt64 = 0xCBF2_9CE4_8422_2325
            var index = min(start, bytes.count)
            while bytes.count - index >= 8 {
                sum = mix(sum, UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
                index += 8
            }
            while index < bytes.count {
                sum = mix(sum, UInt64(bytes[index]))
                index += 1
            }
            return mix(sum, UInt64(bytes.count - min(start, bytes.count)))
        }
    }

    private static func mix(_ sum: UInt64, _ word: UInt64) -> UInt64 {
        let product = (sum ^ word) &* prime
        return product ^ product >> 32
    }
}
