// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@Suite struct WebSocketFrameWriterTests {
    private static func head(
        _ opcode: WebSocketOpcode, isFinal: Bool = true, isCompressed: Bool = false, length: Int, key: UInt32 = 0x0102_0304
    ) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: WebSocketFrameWriter.maximumHeadLength)
        let count = bytes.withUnsafeMutableBytes {
            WebSocketFrameWriter.writeHead(
                opcode, isFinal: isFinal, isCompressed: isCompressed, length: length, key: key, into: $0)
        }
        #expect(bytes[count...].allSatisfy { $0 == 0xEE })
        return Array(bytes[..<count])
    }

    /// The example of RFC 6455, section 5.7.
    @Test func `a masked text message is written as in the RFC`() {
        let key: UInt32 = 0x37FA_213D
        var payload = Array("Hello".utf8)
        payload.withUnsafeMutableBytes { WebSocketFrameWriter.mask($0, key: key) }
        #expect(
            Self.head(.text, length: 5, key: key) + payload
                == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        #expect(
            WebSocketFrameWriter.controlFrame(.pong, Array("Hello".utf8), key: key)
                == [0x8A, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    }

    private static let key: [UInt8] = [1, 2, 3, 4]
    private static let heads: [(name: String, found: [UInt8], bytes: [UInt8])] = [
        ("the shortest", head(.binary, length: 0), [0x82, 0x80] + key),
        ("125", head(.binary, length: 125), [0x82, 0xFD] + key),
        ("126", head(.binary, length: 126), [0x82, 0xFE, 0x00, 0x7E] + key),
        ("65,535", head(.text, length: 65_535), [0x81, 0xFE, 0xFF, 0xFF] + key),
        ("65,536", head(.text, length: 65_536), [0x81, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0] + key),
        ("the longest", head(.text, length: .max), [0x81, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 7) + key),
        ("a first fragment that is compressed", head(.text, isFinal: false, isCompressed: true, length: 1), [0x41, 0x81] + key),
        ("a fragment", head(.continuation, isFinal: false, length: 1), [0x00, 0x81] + key),
        ("the last fragment", head(.continuation, length: 1), [0x80, 0x81] + key),
        ("a ping", head(.ping, length: 8), [0x89, 0x88] + key),
        ("a close", head(.close, length: 0), [0x88, 0x80] + key),
    ]

    @Test(arguments: heads.indices) func `headers are as short as possible`(index: Int) {
        #expect(Self.heads[index].found == Self.heads[index].bytes, "\(Self.heads[index].name)")
    }

    @Test func `a control frame carries at most 125 bytes`() {
        let frame = WebSocketFrameWriter.controlFrame(.ping, [UInt8](repeating: 7, count: 200), key: 0)
        #expect(frame == [0x89, 0xFD, 0, 0, 0, 0] + [UInt8](repeating: 7, count: 125))
        #expect(WebSocketFrameWriter.controlFrame(.pong, [], key: 0x0506_0708) == [0x8A, 0x80, 5, 6, 7, 8])
    }

    /// Masks octet by octet, as in RFC 6455, section 5.3.
    private static func masked(_ bytes: some Sequence<UInt8>, _ key: UInt32, _ offset: Int) -> [UInt8] {
        let key = (0..<4).map { UInt8(truncatingIfNeeded: key >> UInt32(24 - 8 * $0)) }
        return bytes.enumerated().map { $1 ^ key[($0 + offset) % 4] }
    }

    @Test func `bytes are masked correctly at every alignment, length and offset`() {
        let key: UInt32 = 0xA1B2_C3D4
        var wrong: [String] = []
        for length in Array(0...100) + [127, 128, 129, 1_000] {
            for start in 0..<33 {
                for offset in [0, 1, 2, 3, 4, 5, 1_000_003] {
                    let before = (0..<length + start + 8).map { UInt8(truncatingIfNeeded: $0 &* 37) }
                    var bytes = before
                    bytes.withUnsafeMutableBytes {
                        WebSocketFrameWriter.mask(.init(rebasing: $0[start..<start + length]), key: key, at: offset)
                    }
                    let wanted =
                        before[..<start] + Self.masked(before[start..<start + length], key, offset) + before[(start + length)...]
                    if bytes != Array(wanted) { wrong.append("\(length) bytes at \(start), offset \(offset)") }
                }
            }
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(10))")
    }

    @Test func `bytes are masked while they are copied, also in pieces`() {
        for seed in 0..<500 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let key = UInt32(truncatingIfNeeded: random.next())
            let source = (0..<random.next(below: 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            var target = [UInt8](repeating: 0xEE, count: source.count + 9)
            var done = 0
            while done < source.count {
                let count = min(source.count - done, 1 + random.next(below: 90))
                source.withUnsafeBytes { source in
                    target.withUnsafeMutableBytes { target in
                        WebSocketFrameWriter.copy(
                            .init(rebasing: source[done..<done + count]), to: .init(rebasing: target[done...]), key: key, at: done
                        )
                    }
                }
                done += count
            }
            #expect(target == Self.masked(source, key, 0) + [UInt8](repeating: 0xEE, count: 9), "seed \(seed)")
            target.withUnsafeMutableBytes { WebSocketFrameWriter.mask(.init(rebasing: $0[..<source.count]), key: key) }
            #expect(Array(target[..<source.count]) == source, "seed \(seed)")
        }
    }

    @Test func `masking zero bytes does nothing`() {
        WebSocketFrameWriter.mask(.init(start: nil, count: 0), key: 1, at: 3)
    }
}
