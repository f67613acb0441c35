// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Brotli-compressed bodies (RFC 7932), for tests of the decoder.
package enum BrotliBytes {
    /// Compresses a body with the command-line tool.
    package static func compress(_ content: some Sequence<UInt8>, _ options: [String] = []) throws -> [UInt8] {
        try CompressionTool.run(ServerProcess.program("brotli", package: "brotli"), ["-c"] + options, on: content)
    }

    /// 128 MiB of zeros in 102 bytes, with a window of 16 MiB: `brotli -q 9 -w 24`.
    package static let bomb = [UInt8](
        Data(
            base64Encoded: """
                z///fwAkAOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0ACIA4LQPf+n////wBIAMRhAeje//P//x8A\
                CYA4LADd+3/+//8DIAEQhwWge/8/
                """
        ) ?? Data()
    )
    package static let bombLength: Int64 = 128 << 20

    /// A stream of `count` zeros, each preceded by 462 bytes of headers that take 250 µs to decode.
    ///
    /// The headers have 256 block types, 256 literal prefix codes, and the largest context map, with 16,384 entries and a
    /// move-to-front transform (sections 7.3 and 9.2).
    package static func headers(_ count: Int) -> [UInt8] {
        var bits = Bits()
        bits.write(0, 1)
        for _ in 0..<count { writeBlock(to: &bits) }
        bits.write(3, 2)
        return bits.bytes
    }

    /// Writes a meta-block of one byte.
    private static func writeBlock(to bits: inout Bits) {
        // ISLAST is 0, and the content is one compressed byte.
        bits.write(0, 20)
        // 256 literal block types, with single-symbol prefix codes for types and counts; the first block has one literal.
        bits.write(127 << 4 | 0xF, 11)
        bits.writeCode(0, 9)
        bits.writeCode(0, 5)
        bits.write(0, 2)
        // One block type for commands and one for distances, no direct distance codes, and context mode 0 for all literal block
        // types.
        bits.write(0, 2 + 6)
        for _ in 0..<256 { bits.write(0, 2) }
        // 256 literal prefix codes; all contexts use the last one, with a move-to-front map.
        bits.write(127 << 4 | 0xF, 11)
        bits.write(0, 1)
        bits.writeCode(255, 8)
        bits.write(1, 1)
        // One distance prefix code.
        bits.write(0, 1)
        for _ in 0..<256 { bits.writeCode(0, 8) }
        // Insert one literal.
        bits.writeCode(8, 10)
        bits.writeCode(0, 6)
    }

    private struct Bits {
        var bytes: [UInt8] = []
        private var left = 0

        /// Appends the `count` lowest bits of a value, the lowest bit first.
        mutating func write(_ value: Int, _ count: Int) {
            for bit in 0..<count {
                if left == 0 {
                    bytes.append(0)
                    left = 8
                }
                bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << (8 - left)
                left -= 1
            }
        }

        /// Appends a prefix code with a single symbol; this symbol is then encoded in zero bits.
        mutating func writeCode(_ symbol: Int, _ count: Int) {
            write(1, 4)
            write(symbol, count)
        }
    }
}

/// Runs a program that compresses its standard input.
enum CompressionTool {
    static func run(_ program: String, _ options: [String], on content: some Sequence<UInt8>) throws -> [UInt8] {
        let directory = try TemporaryDirectory()
        let input = try directory.write(content, to: "input")
        let output = directory.file("output")
        let errors = directory.file("errors")
        try ServerProcess.run(
            ServerProcess.Command([program] + options, input: input, output: .file(output), errors: .file(errors)))
        return [UInt8](try Data(contentsOf: output))
    }
}
