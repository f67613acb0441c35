// SPDX-License-Identifier: Apache-2.0

/// Zstandard bodies (RFC 8878), for tests of the decoder: from the command-line tool, and hand-written.
package enum ZstandardBytes {
    /// Compresses a body with the command-line tool, into a frame with a checksum.
    package static func compress(_ content: some Sequence<UInt8>, _ options: [String] = []) throws -> [UInt8] {
        try CompressionTool.run(ServerProcess.program("zstd", package: "zstd"), ["-q", "-c"] + options, on: content)
    }

    package static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]

    /// A frame without length and checksum (section 3.1.1.1), with a window of 1 KiB × 2^exponent, plus `eighths` eighths of
    /// that.
    package static func frame(windowExponent: UInt8, eighths: UInt8 = 0, _ blocks: [[UInt8]]) -> [UInt8] {
        magic + [0, windowExponent << 3 | eighths] + blocks.joined()
    }

    /// A single-segment frame, whose window is its content length (section 3.1.1.1.2).
    package static func segment(length: UInt64, _ blocks: [[UInt8]]) -> [UInt8] {
        magic + [0xE0] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + blocks.joined()
    }

    /// A raw block (section 3.1.1.2.2).
    package static func raw(_ content: [UInt8], isLast: Bool = false) -> [UInt8] {
        header(0, content.count, isLast) + content
    }

    /// An RLE block, which repeats one byte.
    package static func repeated(_ byte: UInt8, count: Int = 131_072, isLast: Bool = false) -> [UInt8] {
        header(1, count, isLast) + [byte]
    }

    /// A skippable frame (section 3.1.2).
    package static func skippable(_ content: [UInt8], number: UInt8 = 0) -> [UInt8] {
        magic(ofSkippable: number) + (0..<4).map { UInt8(truncatingIfNeeded: content.count >> (8 * $0)) } + content
    }

    package static func magic(ofSkippable number: UInt8) -> [UInt8] { [0x50 | number, 0x2A, 0x4D, 0x18] }

    private static func header(_ type: Int, _ count: Int, _ isLast: Bool) -> [UInt8] {
        let bits = count << 3 | type << 1 | (isLast ? 1 : 0)
        return (0..<3).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) }
    }
}
