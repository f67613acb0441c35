// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTransport
import LoadingEngine
import LoadingTestKit
import NIOCore
import SeededNumbers
import Testing

/// brotli and zstd with the system's libraries.
@Suite struct LibraryCodingTests {
    typealias Zstandard = ZstandardBytes

    static let text = ContentDecoderTests.text
    /// The text, encoded by `brotli -q 11`.
    static let brotli = bytes(
        """
        sfg3AGekVN0eubHNKyCozVErgLzhoQJPApDFwTNqBYtv+hgMuMn2AiVAMzijT/xZ79/I9y76/aa4PZzX1a7jWTOZfVb02tIqc+VgxpXWHXNn
        zD2cHK/R6utQcJMD3tK7mVjVsMNjvZ4XYpENnjreQ2uvxYE7Guv2v9J8JDfOU9ukX98+Pd29sxRkwV39+vbp6e5dNasIBA==
        """)
    /// The text, encoded by `zstd -19` with a checksum.
    static let zstandard = bytes(
        """
        KLUv/WQABi0FAHKKGxWATRvAiOM4jsME1eHKzZXdh+Dm0HV2d4Wc1/x9i7lfaniGbbmnisdc49be19eS7xqT9c895GquNT1Ey9a9LrJ1F9sv
        8Z6l/G/ydVWb7Z0iYqZp6/ery8htDURLkRRoaYSEDMfDJMJwUlCJUI4kPKgRIKS+/xtwubQGESQE/yMEw/0VDiP99Zn7PzX5jUTA04XWp6YS
        uanxDU0+r4IMIh7YVQQOkLo=
        """)
    private static let short = Array("a short text".utf8)
    private static let raw = Zstandard.frame(windowExponent: 0, [Zstandard.raw(short, isLast: true)])

    private static func bytes(_ text: String) -> [UInt8] {
        [UInt8](Data(base64Encoded: text, options: .ignoreUnknownCharacters) ?? Data())
    }

    struct Sample: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var encodings: [String]
        var coded: [UInt8]
        var decoded = LibraryCodingTests.text
    }

    static let accepted: [Sample] = [
        Sample(testDescription: "brotli", encodings: ["br"], coded: brotli),
        Sample(testDescription: "brotli in capitals", encodings: ["BR"], coded: brotli),
        Sample(testDescription: "zstd with a checksum", encodings: ["zstd"], coded: zstandard),
        Sample(testDescription: "zstd without checksum and length", encodings: ["zstd"], coded: raw, decoded: short),
        Sample(testDescription: "an empty brotli body", encodings: ["br"], coded: [], decoded: []),
        Sample(testDescription: "an empty zstd body", encodings: ["zstd"], coded: [], decoded: []),
        Sample(testDescription: "brotli that is empty when decoded", encodings: ["br"], coded: [0x06], decoded: []),
        Sample(
            testDescription: "zstd that is empty when decoded", encodings: ["zstd"],
            coded: Zstandard.frame(windowExponent: 0, [Zstandard.raw([], isLast: true)]), decoded: []),
        Sample(testDescription: "two frames", encodings: ["zstd"], coded: zstandard + raw, decoded: text + short),
        Sample(
            testDescription: "frames to be skipped before, between and after", encodings: ["zstd"],
            coded: Zstandard.skippable([1, 2, 3]) + raw + Zstandard.skippable([], number: 15) + zstandard
                + Zstandard.skippable(zstandard), decoded: short + text),
        Sample(
            testDescription: "nothing but a frame to be skipped", encodings: ["zstd"], coded: Zstandard.skippable([9]),
            decoded: []),
        Sample(
            testDescription: "an empty block in the middle", encodings: ["zstd"],
            coded: Zstandard.frame(
                windowExponent: 0, [Zstandard.raw([1]), Zstandard.raw([]), Zstandard.repeated(2, count: 3, isLast: true)]),
            decoded: [1, 2, 2, 2]),
        Sample(testDescription: "garbage behind brotli", encodings: ["br"], coded: brotli + Array("garbage".utf8)),
        Sample(testDescription: "a second stream of brotli, which is garbage", encodings: ["br"], coded: brotli + brotli),
        Sample(testDescription: "garbage behind a frame", encodings: ["zstd"], coded: zstandard + Array("garbage".utf8)),
        Sample(
            testDescription: "half a magic number behind a frame", encodings: ["zstd"], coded: zstandard + [0x28, 0xB5, 0x2F]),
        Sample(
            testDescription: "zeros behind a frame", encodings: ["zstd"], coded: zstandard + [UInt8](repeating: 0, count: 512)),
        Sample(testDescription: "brotli in gzip", encodings: ["br, gzip"], coded: GzipBytes.stored(brotli)),
        Sample(testDescription: "zstd in deflate", encodings: ["zstd", "deflate"], coded: GzipBytes.zlib(zstandard)),
        Sample(
            testDescription: "brotli in zstd in gzip", encodings: ["br, zstd", "gzip"],
            coded: GzipBytes.stored(Zstandard.frame(windowExponent: 0, [Zstandard.raw(brotli, isLast: true)]))),
    ]

    @Test func `both libraries are available, in the order of Accept-Encoding`() {
        #expect(SystemCodings.all.map(\.name) == ["br", "zstd"])
        #expect(SystemCodings.acceptEncoding.value == "gzip, deflate, br, zstd")
    }

    @Test(arguments: accepted)
    func `an encoded body is decoded in pieces of any size`(_ sample: Sample) throws {
        for step in [1, 2, 3, 7, 100, 1 << 20] {
            #expect(try decode(sample.coded, sample.encodings, step: step) == sample.decoded, "in pieces of \(step)")
        }
    }

    @Test(arguments: [["br"], ["zstd"], ["gzip, br"], ["br", "gzip"]])
    func `a coding without its library is unknown, and leaves the body as it is`(_ encodings: [String]) throws {
        #expect(try ContentDecoder(encodings: encodings) == nil)
        #expect(try ContentDecoder(encodings: ["brotli"], libraries: SystemCodings.all) == nil)
    }

    @Test(arguments: [["-q", "0"], ["-q", "5", "-w", "10"], ["-q", "9", "-w", "24"]])
    func `output of the brotli tool is decoded`(_ options: [String]) throws {
        for content in [Self.lines, ScriptedFile.pattern(500_000)] {
            let coded = try BrotliBytes.compress(content, options)
            for step in [1_000, 65_536, 1 << 24] { #expect(try decode(coded, ["br"], step: step) == content) }
        }
    }

    @Test(arguments: [("16", false), ("22", false), ("23", true), ("24", true)])
    func `brotli with a window above 4 MiB counts as slow`(_ window: String, isSlow: Bool) throws {
        let coded = try BrotliBytes.compress(Self.lines, ["-q", "1", "-w", window])
        let decoder = try #require(try ContentDecoder(encodings: ["br"], libraries: SystemCodings.all))
        #expect(!decoder.isSlow)
        decoder.push(ByteBuffer(bytes: coded))
        let first = try #require(try decoder.next())
        #expect(decoder.isSlow == isSlow && (first.readableBytes == 0) == isSlow)
    }

    @Test func `brotli headers are parsed a few at a time`() throws {
        let coded = BrotliBytes.headers(1_000)
        #expect(try decode(coded, ["br"], step: coded.count) == [UInt8](repeating: 0, count: 1_000))
        let decoder = try #require(try ContentDecoder(encodings: ["br"], libraries: SystemCodings.all))
        decoder.push(ByteBuffer(bytes: coded))
        var calls = 0
        while try decoder.next() != nil { calls += 1 }
        #expect(calls > 20)
    }

    @Test func `bodies in memory share a budget for expansion beyond their ratio`() throws {
        let budget = ExpansionBudget(limit: 200_000)
        let zeros = Zstandard.frame(windowExponent: 7, [Zstandard.repeated(0, isLast: true)])
        func body() throws -> ContentDecoder {
            let decoder = try ContentDecoder(
                encodings: ["zstd"], libraries: SystemCodings.all, limit: .init(ratio: 1, floor: 1 << 20), budget: budget)
            return try #require(decoder)
        }
        func read(_ decoder: ContentDecoder) throws -> Int {
            decoder.push(ByteBuffer(bytes: zeros))
            var count = 0
            while let piece = try decoder.next() { count += piece.readableBytes }
            return count
        }
        do {
            let first = try body()
            #expect(try read(first) == 131_072)
            #expect(budget.usage == 131_072 - Int64(zeros.count))
            let second = try body()
            #expect {
                try read(second)
            } throws: { error in
                if case .bombs? = error as? DecodingFailure { true } else { false }
            }
            withExtendedLifetime((first, second)) {}
        }
        #expect(budget.usage == 0)
        #expect(try read(body()) == 131_072)
    }

    @Test(arguments: [["-1"], ["--fast=5", "--no-check"], ["-19", "--long=23"], ["-3", "-B100000", "--rsyncable"]])
    func `output of the zstd tool is decoded`(_ options: [String]) throws {
        for content in [Self.lines, ScriptedFile.pattern(500_000)] {
            let coded = try ZstandardBytes.compress(content, options)
            for step in [1_000, 65_536, 1 << 24] { #expect(try decode(coded, ["zstd"], step: step) == content) }
        }
    }

    /// 3 MB of text that compresses like ordinary text.
    private static let lines: [UInt8] = {
        var random = SeededNumbers(seed: 3)
        let words = ["stream", "of", "lines", "with", "a", "number", "each", "and", "some", "words"]
        var text = ""
        while text.utf8.count < 3_000_000 {
            text += "\(random.next(below: 1_000_000)) \(words[random.next(below: 10)]) \(words[random.next(below: 10)])\n"
        }
        return Array(text.utf8)
    }()

    @Test(arguments: [("br", brotli), ("zstd", zstandard), ("zstd", raw)])
    func `a truncated body fails at any length`(_ encoding: String, _ coded: [UInt8]) {
        for length in 1..<coded.count {
            for step in [1, 64] {
                #expect(throws: DecodingFailure.truncated, "\(length) of \(coded.count) bytes") {
                    try decode(Array(coded.prefix(length)), [encoding], step: step)
                }
            }
        }
    }

    @Test func `a truncated second frame fails, even if it is a skippable frame`() {
        for second in [Self.zstandard, Zstandard.skippable(Array(repeating: 7, count: 90))] {
            for length in 4..<second.count {
                #expect(throws: DecodingFailure.truncated) { try decode(Self.raw + second.prefix(length), ["zstd"], step: 64) }
            }
        }
    }

    @Test func `a body that is neither brotli nor zstd fails`() {
        for body in ["plain text, as it happens", "{\"a\": 1}", "\r\n\r\n", "<!doctype html>"] {
            #expect(throws: DecodingFailure.self, "\(body)") { try decode(Array(body.utf8), ["zstd"], step: 1) }
            #expect(throws: DecodingFailure.self, "\(body)") { try decode(Array(body.utf8), ["br"], step: 1) }
        }
        #expect(throws: DecodingFailure.self) { try decode(Self.zstandard, ["br"], step: 7) }
        #expect(throws: DecodingFailure.self) { try decode(Self.brotli, ["zstd"], step: 7) }
        // A frame of zstd 0.7, which some libraries are built to read.
        #expect(throws: DecodingFailure.corrupt("it does not start like zstd data")) {
            try decode([0x27, 0xB5, 0x2F, 0xFD, 0, 0, 0, 0], ["zstd"], step: 8)
        }
    }

    @Test func `no flipped bit in a frame with a checksum changes the content`() {
        var count = 0
        for index in Self.zstandard.indices {
            for bit in 0..<8 {
                var damaged = Self.zstandard
                damaged[index] ^= 1 << bit
                // Decoding may succeed, because the code descriptions have unused bits; byte 4 is left out, because it has the
                // flag for the checksum.
                guard index != 4, let decoded = try? decode(damaged, ["zstd"], step: 50) else { continue }
                #expect(decoded == Self.text, "bit \(bit) of byte \(index)")
                count += 1
            }
        }
        #expect(count < 30)
    }

    @Test(arguments: [1, 7, 50, 100_000])
    func `blocks before the damage are delivered before the failure, in pieces of any size`(step: Int) throws {
        // One of the blocks yields more than one piece.
        let blocks = [
            Zstandard.raw(Self.text), Zstandard.repeated(7), Zstandard.repeated(8, count: 100_000), [0xFF, 0xFF, 0xFF],
        ]
        let damaged = Zstandard.frame(windowExponent: 7, blocks)
        let decoder = try #require(try ContentDecoder(encodings: ["zstd"], libraries: SystemCodings.all))
        var decoded: [UInt8] = []
        var rest = damaged[...]
        let failure = #expect(throws: DecodingFailure.self) {
            while !rest.isEmpty {
                decoder.push(ByteBuffer(bytes: rest.prefix(step)))
                rest = rest.dropFirst(step)
                while let piece = try decoder.next() { decoded += piece.readableBytesView }
            }
        }
        #expect(decoded == Self.text + [UInt8](repeating: 7, count: 131_072) + [UInt8](repeating: 8, count: 100_000))
        guard let failure, case .corrupt = failure else {
            Issue.record("not damage: \(String(describing: failure))")
            return
        }
        #expect(throws: failure) { try decoder.finish() }
    }

    @Test func `damaged bodies end the same in pieces of any size`() {
        var random = SeededNumbers(seed: 11)
        let bodies = [("br", Self.brotli), ("zstd", Self.zstandard), ("zstd", Self.raw + Zstandard.skippable([1]) + Self.raw)]
        for round in 0..<3_000 {
            var (encoding, damaged) = bodies[round % bodies.count]
            for _ in 0...random.next(below: 4) {
                let index = random.next(below: damaged.count)
                switch random.next(below: 3) {
                case 0: damaged[index] = UInt8(truncatingIfNeeded: random.next())
                case 1: damaged.remove(at: index)
                default: damaged.insert(UInt8(truncatingIfNeeded: random.next()), at: index)
                }
            }
            if round % 5 == 0 { (encoding, damaged) = (encoding + ", gzip", GzipBytes.stored(damaged)) }
            let encodings = encoding.split(separator: ", ").map(String.init)
            let whole = try? decode(damaged, encodings, step: damaged.count)
            let pieces = try? decode(damaged, encodings, step: 1 + random.next(below: 90))
            #expect(whole == pieces, "round \(round)")
        }
    }

    // MARK: Windows and bombs

    static let windows: [(name: String, body: [UInt8], isAccepted: Bool)] = [
        ("8 MiB", Zstandard.frame(windowExponent: 13, [Zstandard.raw(short, isLast: true)]), true),
        ("9 MiB", Zstandard.frame(windowExponent: 13, eighths: 1, [Zstandard.raw(short, isLast: true)]), false),
        ("3.75 TiB", Zstandard.frame(windowExponent: 31, eighths: 7, [Zstandard.raw(short, isLast: true)]), false),
        ("a segment of its length", Zstandard.segment(length: UInt64(short.count), [Zstandard.raw(short, isLast: true)]), true),
        ("a segment of 8 MiB and a byte", Zstandard.segment(length: 8 << 20 | 1, [Zstandard.raw(short, isLast: true)]), false),
        ("a segment of 2^63", Zstandard.segment(length: 1 << 63, [Zstandard.raw(short, isLast: true)]), false),
        ("a second frame of 16 MiB", raw + Zstandard.frame(windowExponent: 14, [Zstandard.raw(short, isLast: true)]), false),
    ]

    @Test(arguments: windows)
    func `a window above 8 MiB is refused, in pieces of any size`(name: String, body: [UInt8], isAccepted: Bool) {
        for step in [1, 5, 1_000] {
            if isAccepted {
                #expect(throws: Never.self) { try decode(body, ["zstd"], step: step) }
            } else {
                #expect(throws: DecodingFailure.corrupt("zstd: Frame requires too much memory for decoding")) {
                    try decode(body, ["zstd"], step: step)
                }
            }
        }
    }

    @Test func `a brotli window not defined by RFC 7932 is refused`() throws {
        let large = try BrotliBytes.compress(Self.lines, ["-q", "3", "--large_window=28"])
        for step in [1, 1_000] { #expect(throws: DecodingFailure.self) { try decode(large, ["br"], step: step) } }
        #expect(try decode(BrotliBytes.compress(Self.lines, ["-q", "3", "-w", "24"]), ["br"], step: 1_000) == Self.lines)
    }

    static let bombs: [(coding: String, body: [UInt8])] = [
        ("br", BrotliBytes.bomb),
        ("zstd", Zstandard.frame(windowExponent: 13, (0..<1_024).map { _ in Zstandard.repeated(0) })),
    ]

    @Test(arguments: bombs) func `a bomb only expands as far as requested`(coding: String, body: [UInt8]) throws {
        let decoder = try #require(try ContentDecoder(encodings: [coding], libraries: SystemCodings.all))
        decoder.push(ByteBuffer(bytes: body))
        var pieces = 0
        while let piece = try decoder.next() {
            pieces += 1
            #expect(piece.readableBytes <= ContentDecoder.pieceSize)
            #expect(decoder.decodedBytes <= Int64(pieces * ContentDecoder.pieceSize))
        }
        #expect(decoder.decodedBytes == BrotliBytes.bombLength)
    }

    @Test(arguments: bombs) func `a bomb is detected if a limit is set`(coding: String, body: [UInt8]) throws {
        let limit = ContentDecoder.Limit(ratio: 100, floor: 1 << 20)
        let decoder = try #require(try ContentDecoder(encodings: [coding], libraries: SystemCodings.all, limit: limit))
        decoder.push(ByteBuffer(bytes: body))
        let failure = #expect(throws: DecodingFailure.self) { while try decoder.next() != nil {} }
        guard case .bomb(let coded, let decoded)? = failure else {
            Issue.record("not a bomb: \(String(describing: failure))")
            return
        }
        #expect(coded == Int64(body.count))
        #expect(decoded <= max(coded * 100, 1 << 20) + Int64(2 * ContentDecoder.pieceSize))
        #expect(throws: DecodingFailure.bomb(coded: coded, decoded: decoded)) { try decoder.next() }
    }

    @Test(arguments: ["br", "zstd"]) func `a bomb between two codings is detected even without a limit`(coding: String) throws {
        // A skippable frame yields nothing, however long it is.
        let skipped = Zstandard.magic(ofSkippable: 0) + [0xFF, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 40 << 20)
        let coded = coding == "br" ? try BrotliBytes.compress(skipped, ["-q", "5"]) : try ZstandardBytes.compress(skipped)
        let decoder = try #require(try ContentDecoder(encodings: ["zstd", coding], libraries: SystemCodings.all))
        decoder.push(ByteBuffer(bytes: coded))
        let failure = #expect(throws: DecodingFailure.self) { while try decoder.next() != nil {} }
        guard case .bomb = failure else {
            Issue.record("not a bomb: \(String(describing: failure))")
            return
        }
    }

    @Test func `releasing a decoder halfway frees its memory`() throws {
        func fill() throws {
            for (coding, body) in Self.bombs {
                let decoder = try #require(try ContentDecoder(encodings: [coding], libraries: SystemCodings.all))
                decoder.push(ByteBuffer(bytes: body))
                for _ in 0..<200 { #expect(try decoder.next() != nil) }
            }
        }
        try fill()
        let before = try ProcessProbe.residentBytes()
        for _ in 0..<40 { try fill() }
        // If the decoders were not freed, each call would add windows of 24 MiB.
        #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
    }

    private func decode(_ coded: [UInt8], _ encodings: [String], step: Int) throws -> [UInt8] {
        let decoder = try #require(try ContentDecoder(encodings: encodings, libraries: SystemCodings.all))
        var decoded: [UInt8] = []
        var rest = coded[...]
        while !rest.isEmpty {
            decoder.push(ByteBuffer(bytes: rest.prefix(step)))
            rest = rest.dropFirst(step)
            while let piece = try decoder.next() {
                #expect(piece.readableBytes <= ContentDecoder.pieceSize)
                decoded += piece.readableBytesView
            }
        }
        try decoder.finish()
        #expect(decoder.codedBytes == Int64(coded.count))
        #expect(decoder.decodedBytes == Int64(decoded.count))
        return decoded
    }
}
