// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@Suite struct AsyncLinesTests {
    private func bytes(_ bytes: [UInt8]) -> AsyncStream<UInt8> {
        AsyncStream { continuation in
            for byte in bytes { continuation.yield(byte) }
            continuation.finish()
        }
    }

    private func collect<Sequence: AsyncSequence>(_ sequence: Sequence) async throws -> [Sequence.Element] {
        var elements: [Sequence.Element] = []
        for try await element in sequence { elements.append(element) }
        return elements
    }

    @Test(
        arguments: [
            ("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]), ("a\r\nb\rc", ["a", "b", "c"]),
            ("\n\na\n\n\nb\n", ["a", "b"]), ("a\u{85}b\u{2028}c\u{2029}d", ["a", "b", "c", "d"]),
            ("a\u{0B}b\u{0C}c", ["a", "b", "c"]),
            ("\u{2028}\u{85}x", ["x"]), ("data: é\u{2027}\u{202A}\r\n", ["data: é\u{2027}\u{202A}"]),
        ] as [(String, [String])])
    func `lines end at every Unicode line break, and empty lines are omitted`(text: String, lines: [String]) async throws {
        #expect(try await collect(bytes(Array(text.utf8)).lines) == lines)
    }

    @Test func `invalid UTF-8 becomes replacement characters`() async throws {
        #expect(try await collect(bytes([0x61, 0xFF, 0x62, 0x0A, 0x80]).lines) == ["a\u{FFFD}b", "\u{FFFD}"])
    }

    @Test func `an A8 or 85 byte within another character is not a line break`() async throws {
        #expect(try await collect(bytes(Array("è¨…Ï\u{5A8}".utf8)).lines) == ["è¨…Ï\u{5A8}"])
    }

    /// `String(decoding:as:)` replaces invalid bytes by the same rule, so the test compares with its result.
    @Test func `scalars and characters equal those of String for any bytes`() async throws {
        var seed: UInt64 = 1
        let alphabet: [UInt8] = [
            0x61, 0x0D, 0x0A, 0xC3, 0xA9, 0xE2, 0x80, 0xA8, 0xF0, 0x9F, 0x91, 0x8D, 0xED, 0xA0, 0xF4, 0x90, 0xCC, 0x81, 0xFF,
            0xE0,
        ]
        for round in 0..<300 {
            var input: [UInt8] = []
            for _ in 0..<(round % 24) {
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                input.append(alphabet[Int(seed >> 33) % alphabet.count])
            }
            let expected = String(decoding: input, as: UTF8.self)
            #expect(try await collect(bytes(input).unicodeScalars) == Array(expected.unicodeScalars), "\(input)")
            #expect(try await collect(bytes(input).characters) == Array(expected), "\(input)")
        }
    }

    @Test func `family emoji and flags are single characters`() async throws {
        let text = "👨‍👩‍👧‍👦e\u{301}🇩🇪🇫🇷\r\n한"
        #expect(try await collect(bytes(Array(text.utf8)).characters) == Array(text))
    }
}
