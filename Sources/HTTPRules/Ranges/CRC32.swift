// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The checksum of Ethernet, gzip and PNG, which detects accidental damage.
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }

    /// Returns eight hexadecimal digits.
    static func checksum(_ bytes: some Sequence<UInt8>) -> String {
        var crc = UInt32.max
        for byte in bytes { crc = crc >> 8 ^ table[Int((crc ^ UInt32(byte)) & 0xFF)] }
        return ASCII.hexadecimal(~crc)
    }
}
