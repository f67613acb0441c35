// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@Suite struct UTF8ValidatorTests {
    private enum Verdict { case whole, cut, broken }

    private static func verdict(_ bytes: [UInt8], piece: () -> Int = { Int.max }) -> Verdict {
        var validator = UTF8Validator()
        var start = 0
        repeat {
            let piece = Array(bytes[start...].prefix(piece()))
            start += piece.count
            let isGood = piece.withUnsafeBytes { validator.take($0) }
            if !isGood {
                #expect(!validator.isComplete)
                #expect(![0x61].withUnsafeBytes { validator.take($0) }, "the validator accepted bytes after a failure")
                return .broken
            }
        } while start < bytes.count
        return validator.isComplete ? .whole : .cut
    }

    /// Applies the rules of RFC 3629, section 4, byte by byte.
    private static func judged(_ bytes: [UInt8]) -> Verdict {
        var rest = bytes[...]
        let tail: ClosedRange<UInt8> = 0x80...0xBF
        while let first = rest.popFirst() {
            let tails: [ClosedRange<UInt8>]
            switch first {
            case 0x00...0x7F: tails = []
            case 0xC2...0xDF: tails = [tail]
            case 0xE0: tails = [0xA0...0xBF, tail]
            case 0xE1...0xEC, 0xEE...0xEF: tails = [tail, tail]
            case 0xED: tails = [0x80...0x9F, tail]
            case 0xF0: tails = [0x90...0xBF, tail, tail]
            case 0xF1...0xF3: tails = [tail, tail, tail]
            case 0xF4: tails = [0x80...0x8F, tail, tail]
            default: return .broken
            }
            for tail in tails {
                guard let next = rest.popFirst() else { return .cut }
                guard tail.contains(next) else { return .broken }
            }
        }
        return .whole
    }

    private static let rows: [(bytes: [UInt8], verdict: Verdict)] = [
        ([], .whole), ([0x00], .whole), ([0x7F], .whole), ([0x80], .broken), ([0xBF], .broken),
        ([0xC0], .broken), ([0xC1], .broken), ([0xC2], .cut), ([0xC2, 0x7F], .broken), ([0xC2, 0x80], .whole),
        ([0xC2, 0xC0], .broken), ([0xDF, 0xBF], .whole), ([0xE0], .cut), ([0xE0, 0x9F], .broken), ([0xE0, 0xA0], .cut),
        ([0xE0, 0xA0, 0x80], .whole), ([0xE1, 0x80, 0xC0], .broken), ([0xED, 0x9F, 0xBF], .whole), ([0xED, 0xA0], .broken),
        ([0xED, 0xBF], .broken), ([0xEE, 0x80, 0x80], .whole), ([0xEF, 0xBF, 0xBF], .whole), ([0xF0, 0x8F], .broken),
        ([0xF0, 0x90, 0x80], .cut), ([0xF0, 0x90, 0x80, 0x80], .whole), ([0xF4, 0x8F, 0xBF, 0xBF], .whole),
        ([0xF4, 0x90], .broken), ([0xF5], .broken), ([0xF8], .broken), ([0xFF], .broken),
        ([0xF1, 0x80, 0x80, 0x7F], .broken), ([0xF1, 0x80, 0x7F], .broken), ([0xF1, 0x7F], .broken),
    ]

    /// Each row is placed at many positions among other bytes, so that every code path is covered.
    @Test(arguments: rows.indices) func `characters are validated at any position`(index: Int) {
        let (bytes, verdict) = Self.rows[index]
        #expect(Self.judged(bytes) == verdict, "\(bytes)")
        for before in 0...40 {
            for after in [0, 1, 2, 3, 4, 9, 33] {
                let text = [UInt8](repeating: 0x61, count: before) + bytes + [UInt8](repeating: 0x62, count: after)
                let wanted = verdict == .cut && after > 0 ? .broken : verdict
                let found = Self.verdict(text)
                if found != wanted { Issue.record("\(bytes) after \(before) before \(after): \(found)") }
            }
        }
    }

    @Test func `every Unicode scalar is valid`() {
        var text: [UInt8] = []
        for value in 0...0x10FFFF as ClosedRange<UInt32> {
            if let scalar = Unicode.Scalar(value) { text += Array(String(scalar).utf8) }
        }
        #expect(Self.verdict(text) == .whole)
        var random = SeededNumbers(seed: 1)
        #expect(Self.verdict(text, piece: { 1 + random.next(below: 70) }) == .whole)
    }

    /// All four-byte sequences would be too many, so the first two bytes have all values, and the others have edge values.
    @Test func `every sequence is judged as in RFC 3629`() {
        let edges: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xF0, 0xFF]
        for first in 0...UInt8.max {
            for second in 0...UInt8.max {
                for third in first < 0xE0 ? [0x61, 0x80] : edges {
                    for fourth in first < 0xF0 ? [0x62] : edges.prefix(9) {
                        let bytes = [first, second, third, fourth]
                        if Self.verdict(bytes) != Self.judged(bytes) { Issue.record("\(bytes)") }
                    }
                }
            }
        }
    }

    @Test func `text fails at the first invalid byte`() {
        for (bytes, verdict) in Self.rows where verdict == .broken {
            #expect(Self.verdict(bytes.dropLast()) != .broken, "\(bytes)")
        }
        // RFC 6455, section 8.1: frames may split a character of a text, but a text must not end inside a character.
        #expect(Self.verdict(Array("κόσμε".utf8).dropLast()) == .cut)
        #expect(Self.verdict(Array("κόσμε".utf8), piece: { 1 }) == .whole)
    }

    @Test func `random bytes are validated the same in any pieces`() {
        let parts: [[UInt8]] = [
            Array("plain text ".utf8), Array("ж".utf8), Array("中文".utf8), Array("😀".utf8), Array("a".utf8), [0x80], [0xE2, 0x82],
            Array("a longer run of ASCII, of more than one block. ".utf8),
        ]
        var counts = [Verdict.whole: 0, .cut: 0, .broken: 0]
        for seed in 0..<5_000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let kinds = random.next(below: 3) == 0 ? parts.count : parts.count - 3
            var bytes = (0..<random.next(below: 30)).flatMap { _ in parts[random.next(below: kinds)] }
            if random.next(below: 4) == 0 { bytes = bytes.dropLast() }
            let wanted = Self.judged(bytes)
            counts[wanted, default: 0] += 1
            #expect(Self.verdict(bytes) == wanted, "seed \(seed)")
            #expect(Self.verdict(bytes, piece: { 1 + random.next(below: 20) }) == wanted, "seed \(seed), in pieces")
        }
        #expect(counts.values.allSatisfy { $0 > 100 }, "\(counts)")
    }
}
