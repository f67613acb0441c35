// SPDX-License-Identifier: Apache-2.0

/// Makes gzip members (RFC 1952) without zlib, for tests of the decoder.
package enum GzipBytes {
    private static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]

    /// A member of stored blocks (RFC 1951, section 3.2.4).
    package static func stored(_ content: [UInt8]) -> [UInt8] {
        var bytes = header
        bytes += storedBlocks(content)
        return bytes + littleEndian(checksum(content)) + littleEndian(UInt32(truncatingIfNeeded: content.count))
    }

    /// A raw deflate stream of stored blocks.
    package static func storedBlocks(_ content: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = content[...]
        repeat {
            let block = rest.prefix(0xFFFF)
            rest = rest.dropFirst(0xFFFF)
            let length = UInt16(block.count)
            bytes.append(rest.isEmpty ? 1 : 0)
            bytes += [UInt8(length & 0xFF), UInt8(length >> 8), UInt8(~length & 0xFF), UInt8(~length >> 8)]
            bytes += block
        } while !rest.isEmpty
        return bytes
    }

    /// The content in zlib format (RFC 1950), which HTTP calls deflate.
    package static func zlib(_ content: [UInt8]) -> [UInt8] {
        var a: UInt32 = 1
        var b: UInt32 = 0
        for byte in content {
            a = (a + UInt32(byte)) % 65521
            b = (b + a) % 65521
        }
        let sum = b << 16 | a
        return [0x78, 0x01] + storedBlocks(content)
            + [UInt8(sum >> 24), UInt8(sum >> 16 & 0xFF), UInt8(sum >> 8 & 0xFF), UInt8(sum & 0xFF)]
    }

    /// The start of a member that continues with zero bytes, each of which becomes ``bombRatio`` zeros.
    ///
    /// The member is one dynamic block, in which the length of a match of 258 bytes takes one bit, and the distance of the match
    /// another.
    package static let bombStart: [UInt8] =
        header + [
            0xED, 0xC0, 0x81, 0, 0, 0, 0, 0x80, 0xA0, 0xFD, 0xA9, 0x17, 0xA9, 0,
        ]
    package static let bombRatio = 4 * 258

    /// The CRC-32 at the end of a member.
    package static func checksum(_ content: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in content { sum = table[Int((sum ^ UInt32(byte)) & 0xFF)] ^ (sum >> 8) }
        return ~sum
    }

    private static let table: [UInt32] = (0..<256).map { start in
        (0..<8).reduce(UInt32(start)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    private static func littleEndian(_ value: UInt32) -> [UInt8] {
        [UInt8(value & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value >> 16 & 0xFF), UInt8(value >> 24)]
    }
}
