// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTransport
import LoadingTestKit
import NIOCore
import SeededNumbers
import Testing

@Suite struct ContentDecoderTests {
    /// 60 lines, and their encoding by `zlib` at level 9.
    static let text = Array((0..<60).map { "line \($0 * 7919 % 1000): the quick brown fox\n" }.joined().utf8)
    static let gzip = [UInt8](
        Data(
            base64Encoded: """
                H4sIAAAAAAACA33Uy2kCUBBG4X2quCXcec9YToJBURQlwZQfUkDO+odZfAzner4d1z6sr9NxPb7PH5f1/ry/buvz/vN2/dtGBta2hrWi\
                YM1KWGOCVnFY3QxWC4VVS2CVISvZZKVENU5UnURVTVS1iSqVqMKJypOorIlKB6mErMTIKohqiqh6iKqFqMqIKoOooojKm6h8E5UpUamT\
                lSRaERVBjSqeJajKjUEZDEpjUAqDkhiUwKA4BoWsRMjKiGpiY1AGg4JV31h1xap7YFDwqRqrvrHq+o/VL8ed1fEABwAA
                """
        ) ?? Data()
    )
    static let rawDeflate = Array(gzip[10..<(gzip.count - 8)])
    static let zlib = [0x78, 0xDA] + rawDeflate + GzipBytes.zlib(text).suffix(4)

    struct Sample: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var encodings: [String]
        var coded: [UInt8]
        var decoded = ContentDecoderTests.text
    }

    static let accepted: [Sample] = [
        Sample(testDescription: "gzip", encodings: ["gzip"], coded: gzip),
        Sample(testDescription: "x-gzip", encodings: ["X-GZIP"], coded: gzip),
        Sample(testDescription: "deflate in zlib's wrapping", encodings: ["deflate"], coded: zlib),
        Sample(testDescription: "raw deflate", encodings: ["deflate"], coded: rawDeflate),
        Sample(testDescription: "stored blocks", encodings: ["gzip"], coded: GzipBytes.stored(text)),
        Sample(testDescription: "raw stored blocks", encodings: ["deflate"], coded: GzipBytes.storedBlocks(text)),
        Sample(testDescription: "two members", encodings: ["gzip"], coded: gzip + gzip, decoded: text + text),
        Sample(
            testDescription: "three members, one empty", encodings: ["gzip"], coded: gzip + GzipBytes.stored([]) + gzip,
            decoded: text + text),
        Sample(testDescription: "garbage behind a member", encodings: ["gzip"], coded: gzip + Array("garbage".utf8)),
        Sample(testDescription: "zeros behind a member", encodings: ["gzip"], coded: gzip + [UInt8](repeating: 0, count: 512)),
        Sample(testDescription: "half a magic number behind a member", encodings: ["gzip"], coded: gzip + [0x1F]),
        Sample(
            testDescription: "something like a magic number behind a member", encodings: ["gzip"], coded: gzip + [0x1F, 0x8C, 8]),
        Sample(testDescription: "garbage behind deflate", encodings: ["deflate"], coded: zlib + [1, 2, 3]),
        Sample(testDescription: "an empty body", encodings: ["gzip"], coded: [], decoded: []),
        Sample(testDescription: "an empty deflate body", encodings: ["deflate"], coded: [], decoded: []),
        Sample(
            testDescription: "a body that is empty when decoded", encodings: ["gzip"], coded: GzipBytes.stored([]), decoded: []),
        Sample(testDescription: "two codings in one field", encodings: ["deflate, gzip"], coded: GzipBytes.stored(zlib)),
        Sample(
            testDescription: "two codings in two fields", encodings: ["gzip", "identity", "deflate"], coded: GzipBytes.zlib(gzip)),
        Sample(
            testDescription: "five codings", encodings: ["gzip,gzip,gzip", "gzip , gzip"],
            coded: (0..<4).reduce(gzip) { coded, _ in GzipBytes.stored(coded) }),
        Sample(testDescription: "two codings of nothing", encodings: ["gzip, gzip"], coded: GzipBytes.stored([]), decoded: []),
    ]

    @Test(arguments: accepted)
    func `an encoded body is decoded in pieces of any size`(_ sample: Sample) throws {
        for step in [1, 2, 3, 7, 100, 1 << 20] {
            #expect(try decode(sample.coded, sample.encodings, step: step) == sample.decoded, "in pieces of \(step)")
        }
    }

    @Test(arguments: [["identity"], [], [""], ["br"], ["gzip, zstd"], ["utf-8"], ["identity, identity"]])
    func `an unsupported or invalid coding leaves the body as it is`(_ encodings: [String]) throws {
        #expect(try ContentDecoder(encodings: encodings) == nil)
    }

    @Test(arguments: [
        ["gzip, gzip, gzip, gzip, gzip, gzip"], Array(repeating: "gzip", count: 20), Array(repeating: "br", count: 6),
    ])
    func `more than five codings fail`(_ encodings: [String]) {
        #expect(throws: DecodingFailure.tooManyCodings(encodings.count == 1 ? 6 : encodings.count)) {
            try ContentDecoder(encodings: encodings)
        }
    }

    @Test func `a truncated body fails at any length`() {
        for (encoding, coded) in [("gzip", Self.gzip), ("deflate", Self.zlib), ("deflate", Self.rawDeflate)] {
            for length in 1..<coded.count {
                #expect(throws: DecodingFailure.truncated, "\(encoding), \(length) of \(coded.count) bytes") {
                    try decode(Array(coded.prefix(length)), [encoding], step: 64)
                }
            }
        }
    }

    @Test func `a truncated second member fails`() {
        for length in 2..<Self.gzip.count {
            #expect(throws: DecodingFailure.truncated) { try decode(Self.gzip + Self.gzip.prefix(length), ["gzip"], step: 64) }
        }
    }

    @Test func `a body that is not gzip fails`() {
        for body in ["plain text, as it happens", "{}", "\u{1F}", "\r\n"] {
            #expect(throws: DecodingFailure.self) { try decode(Array(body.utf8), ["gzip"], step: 1) }
        }
    }

    @Test func `every flipped bit in the data or checksum of a gzip body is detected`() {
        // The ten-byte header is left out, because its time and operating system are ignored, and so is the last byte of the
        // data, because it has unused bits.
        for index in 10..<Self.gzip.count where index != Self.gzip.count - 9 {
            for bit in 0..<8 {
                var damaged = Self.gzip
                damaged[index] ^= 1 << bit
                #expect(throws: DecodingFailure.self, "bit \(bit) of byte \(index)") { try decode(damaged, ["gzip"], step: 50) }
            }
        }
    }

    @Test(arguments: [1, 7, 50, 100_000])
    func `the content before the damage is the same in pieces of any size`(step: Int) throws {
        let damaged = Array(Self.gzip.dropLast(8)) + [1, 2, 3, 4] + Array(Self.gzip.suffix(4))
        let decoder = try #require(try ContentDecoder(encodings: ["gzip"]))
        var decoded: [UInt8] = []
        var rest = damaged[...]
        #expect(throws: DecodingFailure.corrupt("incorrect data check")) {
            while !rest.isEmpty {
                decoder.push(ByteBuffer(bytes: rest.prefix(step)))
                rest = rest.dropFirst(step)
                while let piece = try decoder.next() { decoded += piece.readableBytesView }
            }
        }
        #expect(decoded == Self.text)
        #expect(throws: DecodingFailure.corrupt("incorrect data check")) { try decoder.finish() }
    }

    @Test func `damage after the end of a coding is ignored, wherever the body is split`() throws {
        let text = Array("a short text".utf8)
        var coded = GzipBytes.stored(GzipBytes.zlib(text))
        coded[coded.count - 8] ^= 1
        for cut in 1..<coded.count {
            let decoder = try #require(try ContentDecoder(encodings: ["deflate, gzip"]))
            var decoded: [UInt8] = []
            for part in [coded[..<cut], coded[cut...]] {
                decoder.push(ByteBuffer(bytes: part))
                while let piece = try decoder.next() { decoded += piece.readableBytesView }
            }
            try decoder.finish()
            #expect(decoded == text, "cut at \(cut)")
        }
    }

    @Test func `damaged bodies end the same in pieces of any size`() {
        var random = SeededNumbers(seed: 7)
        for round in 0..<3_000 {
            var damaged = round % 2 == 0 ? Self.gzip : GzipBytes.stored(GzipBytes.zlib(Self.text))
            for _ in 0...random.next(below: 4) {
                let index = random.next(below: damaged.count)
                switch random.next(below: 3) {
                case 0: damaged[index] = UInt8(truncatingIfNeeded: random.next())
                case 1: damaged.remove(at: index)
                default: damaged.insert(UInt8(truncatingIfNeeded: random.next()), at: index)
                }
            }
            let encodings = [["gzip"], ["deflate"], ["deflate", "gzip"]][round % 3]
            let whole = Result { try decode(damaged, encodings, step: damaged.count) }
            let pieces = Result { try decode(damaged, encodings, step: 1 + random.next(below: 90)) }
            switch (whole, pieces) {
            case (.success(let one), .success(let other)): #expect(one == other, "round \(round)")
            case (.failure(let one), .failure(let other)):
                #expect(one as? DecodingFailure == other as? DecodingFailure, "round \(round)")
            default: Issue.record("round \(round): \(whole), in pieces \(pieces)")
            }
        }
    }

    @Test func `a bomb only expands as far as requested`() throws {
        let decoder = try #require(try ContentDecoder(encodings: ["gzip"]))
        decoder.push(ByteBuffer(bytes: GzipBytes.bombStart))
        decoder.push(ByteBuffer(repeating: 0, count: 1 << 20))
        for count in 1...32 {
            let piece = try #require(try decoder.next())
            #expect(piece.readableBytes <= ContentDecoder.pieceSize)
            #expect(decoder.decodedBytes <= Int64(count * ContentDecoder.pieceSize))
        }
    }

    @Test func `a bomb is detected if a limit is set`() throws {
        let decoder = try #require(try ContentDecoder(encodings: ["gzip"], limit: .init(ratio: 100, floor: 1 << 20)))
        decoder.push(ByteBuffer(bytes: GzipBytes.bombStart))
        decoder.push(ByteBuffer(repeating: 0, count: 1 << 17))
        let failure = #expect(throws: DecodingFailure.self) { while try decoder.next() != nil {} }
        guard case .bomb(let coded, let decoded)? = failure else {
            Issue.record("not a bomb: \(String(describing: failure))")
            return
        }
        #expect(decoded > coded * 100)
        #expect(decoded <= coded * 100 + Int64(2 * ContentDecoder.pieceSize))
        #expect(throws: DecodingFailure.bomb(coded: coded, decoded: decoded)) { try decoder.next() }
        #expect(throws: DecodingFailure.bomb(coded: coded, decoded: decoded)) { try decoder.finish() }
    }

    @Test func `a bomb below the limit's floor is accepted`() throws {
        let decoder = try #require(try ContentDecoder(encodings: ["gzip"], limit: .init(ratio: 1, floor: 1 << 30)))
        decoder.push(ByteBuffer(bytes: GzipBytes.bombStart))
        decoder.push(ByteBuffer(repeating: 0, count: 10_000))
        while try decoder.next() != nil {}
        #expect(decoder.decodedBytes > 10_000_000)
        #expect(throws: DecodingFailure.truncated) { try decoder.finish() }
    }

    private func decode(_ coded: [UInt8], _ encodings: [String], step: Int) throws -> [UInt8] {
        let decoder = try #require(try ContentDecoder(encodings: encodings))
        var decoded: [UInt8] = []
        var rest = coded[...]
        while !rest.isEmpty {
            decoder.push(ByteBuffer(bytes: rest.prefix(step)))
            rest = rest.dropFirst(step)
            while let piece = try decoder.next() {
                #expect(piece.readableBytes > 0)
                decoded += piece.readableBytesView
            }
        }
        try decoder.finish()
        #expect(decoder.codedBytes == Int64(coded.count))
        #expect(decoder.decodedBytes == Int64(decoded.count))
        return decoded
    }
}
