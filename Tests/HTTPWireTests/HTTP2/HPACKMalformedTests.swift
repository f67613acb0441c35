// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// Field blocks that RFC 7541 forbids end the connection, because its table no longer matches the peer's.
@Suite struct `Malformed HPACK` {
    struct Row: CustomTestStringConvertible {
        var sentence: String
        var block: String
        var message: String

        init(_ sentence: String, _ block: String, _ message: String) {
            self.sentence = sentence
            self.block = block
            self.message = message
        }

        var testDescription: String { sentence }
    }

    private static let truncated = "a field block ends within a field"
    private static let integer = "an integer in a field block is too long"
    private static let index = "a field block refers to an entry that is not in the table"
    private static let huffman = "a string in a field block is not valid Huffman code"

    private static let rows = [
        Row("6.1: the index value of 0 is not used", "80", index),
        Row("2.3.3: indices strictly greater than the sum of the lengths of both tables", "be", index),
        Row("2.3.3: … of a name", "7e 01 61", index),
        Row("2.3.3: … of a name that is not added", "0f 2f 01 61", index),
        Row("2.3.3: … the one after the last", "40 01 61 01 62 bf", index),
        Row("4.4: … the one that was evicted", "3f 01 40 01 61 00 bf", index),
        Row("4.4: … the oldest of three, where two have room", "3f 23 40 01 61 00 40 01 62 00 40 01 63 00 c0", index),
        Row("4.4: … the older of two, where a byte is missing", "3f 22 40 01 61 00 40 01 62 00 bf", index),
        Row("5.1: an integer goes on", "ff", truncated),
        Row("5.1: … and on", "ff 80", truncated),
        Row("5.1: … for longer than it may", "ff 80 80 80 80 00", integer),
        Row("5.1: … with a value nobody has", "ff ff ff ff ff ff ff ff ff ff 7f", integer),
        Row("5.1: … the length of a string", "00 7f ff ff ff ff 0f", integer),
        Row("5.1: … a size", "3f 80 80 80 80 01", integer),
        Row("5.2: a string that is not all there", "00 02 61", truncated),
        Row("5.2: … whose length is not", "00", truncated),
        Row("5.2: a value that is missing", "00 01 61", truncated),
        Row("5.2: … behind an indexed name", "58", truncated),
        Row("5.2: a padding strictly longer than 7 bits", "58 82 1f ff", huffman),
        Row("5.2: … nothing but padding", "58 81 ff", huffman),
        Row("5.2: a padding not corresponding to the most significant bits of the code for the EOS symbol", "58 81 18", huffman),
        Row("5.2: a Huffman-encoded string literal containing the EOS symbol", "58 84 ff ff ff ff", huffman),
        Row("5.2: … behind another symbol", "58 85 1f ff ff ff ff", huffman),
        Row("5.2: … in a name", "40 81 ff 01 61", huffman),
        Row(
            "6.3: the new maximum size MUST be lower than or equal to the limit", "3f e2 1f",
            "a table size update exceeds the announced size"),
        Row(
            "4.2: an update MUST occur at the beginning of a field block", "88 20",
            "a table size update is not at the beginning of a field block"),
        Row("4.2: at most two", "20 20 20", "a table size update is not at the beginning of a field block"),
    ]

    @Test(arguments: rows)
    func `a malformed field block ends the connection`(row: Row) {
        let failure = HTTP2Transcript(ServerFrames.settings + ServerFrames.headers(ServerFrames.hexadecimal(row.block))).failure
        #expect(failure == HTTP2Failure(code: .compressionError, message: row.message))
    }

    @Test func `up to seven bits of padding and every code but EOS are decoded`() {
        // The texts of zeros need padding of every length.
        for text in ["", "0", "00", "000", "0000", "00000", "000000", "0000000", "00000000", "~", "é\u{1}\u{7F}"] {
            let block = [0x40, 1, 0x61] + PlainHPACK.string(text, isHuffman: true)
            #expect(
                HTTP2Transcript(ServerFrames.settings + ServerFrames.headers(block)).events.last == "HEADERS 1 - [a: \(text)]")
        }
        for byte in UInt8.min...UInt8.max where ![0, 9, 10, 13, 32].contains(byte) {
            let bytes = PlainHPACK.huffman([byte, 0x61])
            let block = [0x40, 1, 0x61, 0x80 | UInt8(bytes.count)] + bytes
            let text = String(Unicode.Scalar(byte)) + "a"
            #expect(
                HTTP2Transcript(ServerFrames.settings + ServerFrames.headers(block)).events.last == "HEADERS 1 - [a: \(text)]")
        }
    }

    @Test func `the peer must resize its table after it acknowledged a lower limit`() {
        var limits = HTTP2FrameReader.Limits()
        limits.headerTableBytes = 100
        func failure(_ frames: [UInt8]...) -> String? {
            HTTP2Transcript(ServerFrames.settings + frames.flatMap(\.self), limits: limits).failure?.message
        }
        let resize = ServerFrames.headers(PlainHPACK.integer(100, 5, 0x20) + [0x88])
        let missing = "the table was not resized to the announced size"
        #expect(failure(ServerFrames.headers([0x88])) == nil)
        #expect(failure(ServerFrames.acknowledgement, resize, ServerFrames.headers([0x88])) == nil)
        #expect(failure(resize, ServerFrames.acknowledgement, ServerFrames.headers([0x88])) == nil)
        #expect(failure(ServerFrames.acknowledgement, ServerFrames.headers([0x88])) == missing)
        #expect(failure(ServerFrames.headers([0x88]), ServerFrames.acknowledgement, ServerFrames.headers([])) == missing)
        #expect(
            failure(ServerFrames.acknowledgement, ServerFrames.headers(PlainHPACK.integer(101, 5, 0x20)))
                == "a table size update exceeds the announced size")
    }

    @Test func `a larger announced table can be used`() {
        var limits = HTTP2FrameReader.Limits()
        limits.headerTableBytes = 8_192
        let first = PlainHPACK.integer(8_192, 5, 0x20)
        let values = (0..<2).map {
            [0x40, 1, 0x61] + PlainHPACK.string(String(repeating: "\($0)", count: 3_000), isHuffman: false)
        }
        let bytes = ServerFrames.settings + ServerFrames.acknowledgement + ServerFrames.headers(first + values[0] + values[1])
        let transcript = HTTP2Transcript(bytes + ServerFrames.headers([0xBF]), limits: limits)
        #expect(transcript.events.last == "HEADERS 1 - [a: \(String(repeating: "0", count: 3_000))]")
    }

    @Test func `entries that exactly fill the table are kept`() {
        let block = ServerFrames.hexadecimal("3f 23 40 01 61 00 40 01 62 00 bf be")
        let transcript = HTTP2Transcript(ServerFrames.settings + ServerFrames.headers(block))
        #expect(transcript.events.last == "HEADERS 1 - [a:  | b:  | a:  | b: ]")
    }

    @Test func `an entry larger than the table empties it`() {
        let large = [0x40, 1, 0x62] + PlainHPACK.string(String(repeating: "x", count: 4_064), isHuffman: false)
        let transcript = HTTP2Transcript(
            ServerFrames.settings + ServerFrames.headers([0x40, 1, 0x61, 0]) + ServerFrames.headers([0xBE])
                + ServerFrames.headers(large) + ServerFrames.headers([0xBE]))
        #expect(transcript.events.count == 4)
        #expect(transcript.failure?.message == Self.index)
    }
}
