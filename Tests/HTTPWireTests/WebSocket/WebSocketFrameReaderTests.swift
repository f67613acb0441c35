// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@Suite struct WebSocketFrameReaderTests {
    private typealias Item = WebSocketTranscript.Item

    private static let hello = Array("Hello".utf8)

    private static func message(_ kind: WebSocketMessageKind, _ payload: [UInt8]) -> [Item] {
        let content: [Item] = payload.isEmpty ? [] : [.payload(payload)]
        return [.message(kind, isCompressed: false), .frame(UInt64(payload.count))] + content + [.messageEnd]
    }

    private static let long = [UInt8](repeating: 7, count: 256)
    private static let longer = [UInt8](repeating: 7, count: 65_536)

    /// The examples of RFC 6455, section 5.7, and other valid frames.
    private static let rows: [(name: String, bytes: [UInt8], items: [Item])] = [
        (
            "a single-frame unmasked text message", [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F],
            message(.text, hello)
        ),
        (
            "a fragmented unmasked text message", [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F],
            [
                .message(.text, isCompressed: false), .frame(3), .payload(Array("Hel".utf8)), .frame(2),
                .payload(Array("lo".utf8)),
                .messageEnd,
            ]
        ),
        ("an unmasked ping", [0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], [.ping(hello)]),
        ("a pong", [0x8A, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], [.pong(hello)]),
        ("256 bytes of binary data in a single frame", [0x82, 0x7E, 0x01, 0x00] + long, message(.binary, long)),
        (
            "64 KiB of binary data in a single frame",
            [0x82, 0x7F, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00] + longer, message(.binary, longer)
        ),
        ("an empty message", [0x81, 0x00], message(.text, [])),
        (
            "a message of empty frames", [0x02, 0x00, 0x00, 0x00, 0x80, 0x00],
            [.message(.binary, isCompressed: false), .frame(0), .frame(0), .frame(0), .messageEnd]
        ),
        ("an empty ping and an empty pong", [0x89, 0x00, 0x8A, 0x00], [.ping([]), .pong([])]),
        (
            "control frames between fragments", [0x01, 0x01, 0x61, 0x89, 0x01, 0x70, 0x8A, 0x00, 0x80, 0x01, 0x62, 0x88, 0x00],
            [
                .message(.text, isCompressed: false), .frame(1), .payload([0x61]), .ping([0x70]), .pong([]), .frame(1),
                .payload([0x62]), .messageEnd, .close(nil, ""),
            ]
        ),
        (
            "a close inside a message, which stays incomplete", [0x01, 0x01, 0x61, 0x88, 0x02, 0x03, 0xE8],
            [.message(.text, isCompressed: false), .frame(1), .payload([0x61]), .close(1000, "")]
        ),
        (
            "the longest control frames",
            ServerFrame(.ping, [UInt8](repeating: 1, count: 125)).bytes
                + ServerFrame.close(1001, [UInt8](repeating: 0x61, count: 123)),
            [.ping([UInt8](repeating: 1, count: 125)), .close(1001, String(repeating: "a", count: 123))]
        ),
        (
            "the edges of each form of the length",
            ServerFrame(.binary, [UInt8](repeating: 0, count: 125)).bytes
                + ServerFrame(.binary, [UInt8](repeating: 0, count: 126)).bytes
                + ServerFrame(.binary, [UInt8](repeating: 0, count: 65_535)).bytes,
            message(.binary, [UInt8](repeating: 0, count: 125)) + message(.binary, [UInt8](repeating: 0, count: 126))
                + message(.binary, [UInt8](repeating: 0, count: 65_535))
        ),
        (
            "the largest length that there is is told before its payload",
            [0x82, 0x7F, 0x7F] + [UInt8](repeating: 0xFF, count: 7),
            [.message(.binary, isCompressed: false), .frame(UInt64(Int64.max))]
        ),
        ("nothing is read after a close frame", [0x88, 0x00, 0xFF, 0xFF, 0x81, 0x05], [.close(nil, "")]),
    ]

    @Test(arguments: rows.indices) func `valid frames are parsed`(index: Int) {
        let row = Self.rows[index]
        let found = WebSocketTranscript(reading: row.bytes)
        #expect(found == WebSocketTranscript(row.items), "\(row.name)")
        #expect(WebSocketTranscript(reading: row.bytes, piece: { 1 }) == found, "\(row.name), byte by byte")
    }

    @Test func `bytes after a close frame are not consumed`() {
        let found = WebSocketTranscript(reading: [0x88, 0x00, 0xFF, 0xFF])
        #expect(found.isOver)
        #expect(found.leftOver == 2)
        #expect(!WebSocketTranscript(reading: [0x88]).isOver)
    }

    @Test func `isInMessage tells whether a message is incomplete`() {
        #expect(WebSocketTranscript(reading: [0x01, 0x00]).isInMessage)
        #expect(WebSocketTranscript(reading: [0x01, 0x00, 0x89, 0x00]).isInMessage)
        #expect(!WebSocketTranscript(reading: [0x01, 0x00, 0x80, 0x00]).isInMessage)
        #expect(!WebSocketTranscript(reading: [0x01]).isInMessage)
    }

    /// Invalid frames, some within a message; the reader must fail at the last byte.
    private static let malformed: [(name: String, bytes: [UInt8], code: UInt16, word: String)] =
        [
            ("a reserved bit that no extension uses", [0xC1], 1002, "RSV1"),
            ("RSV2", [0xA1], 1002, "RSV2"),
            ("RSV3", [0x91], 1002, "RSV2 or RSV3"),
            ("all reserved bits", [0xF1], 1002, "RSV2"),
            ("RSV1 on a ping", [0xC9], 1002, "RSV1"),
            ("RSV1 on a close", [0xC8], 1002, "RSV1"),
            ("a masked frame", [0x81, 0x85], 1002, "masked"),
            ("a masked frame without payload", [0x81, 0x80], 1002, "masked"),
            ("a masked control frame", [0x89, 0x80], 1002, "masked"),
            ("a length of 125 in 16 bits", [0x82, 0x7E, 0x00, 0x7D], 1002, "more bytes than necessary"),
            ("a length of 0 in 16 bits", [0x82, 0x7E, 0x00, 0x00], 1002, "more bytes than necessary"),
            ("a length of 65,535 in 64 bits", [0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 1002, "more bytes than necessary"),
            ("a length of 0 in 64 bits", [0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0], 1002, "more bytes than necessary"),
            ("a length of 2^63", [0x82, 0x7F, 0x80], 1002, "63 bits"),
            ("a length of 2^64 - 1", [0x82, 0x7F, 0xFF], 1002, "63 bits"),
            ("a ping of 126 bytes", [0x89, 0x7E], 1002, "longer than 125"),
            ("a close of 65,536 bytes", [0x88, 0x7F], 1002, "longer than 125"),
            ("a fragmented ping", [0x09], 1002, "fragmented"),
            ("a fragmented pong", [0x0A], 1002, "fragmented"),
            ("a fragmented close", [0x08], 1002, "fragmented"),
            ("a continuation without start", [0x80], 1002, "no message to continue"),
            ("a continuation that is not the last, without start", [0x00], 1002, "no message to continue"),
            ("a continuation after a whole message", [0x81, 0x00, 0x80], 1002, "no message to continue"),
            ("a text inside a message", [0x01, 0x00, 0x81], 1002, "inside another"),
            ("a binary message inside a message, after a ping", [0x02, 0x01, 0x61, 0x89, 0x00, 0x02], 1002, "inside another"),
            ("a close body of one byte", [0x88, 0x01], 1002, "one byte"),
            ("a reason that is not UTF-8", [0x88, 0x03, 0x03, 0xE8, 0xFF], 1007, "not UTF-8"),
            ("a reason that ends inside a character", [0x88, 0x04, 0x03, 0xE8, 0xE2, 0x82], 1007, "not UTF-8"),
            ("a reason with a surrogate", [0x88, 0x05, 0x03, 0xE8, 0xED, 0xA0, 0x80], 1007, "not UTF-8"),
            ("a reason with a form that is too long", [0x88, 0x04, 0x03, 0xE8, 0xC0, 0xAF], 1007, "not UTF-8"),
        ] + [0x3, 0x4, 0x5, 0x6, 0x7, 0xB, 0xC, 0xD, 0xE, 0xF].map { ("the opcode \($0)", [0x80 | $0], 1002, "opcode \($0)") }
        + [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map {
            ("the close code \($0)", ServerFrame.close($0), 1002, "code \($0)")
        }

    @Test(arguments: malformed.indices) func `an invalid frame fails at the first byte that makes it invalid`(index: Int) {
        let row = Self.malformed[index]
        let found = WebSocketTranscript(reading: row.bytes)
        #expect(found.failure?.code == row.code, "\(row.name)")
        #expect(found.failure?.message.contains(row.word) == true, "\(row.name): \(found)")
        #expect(found.failure.map { $0.message.utf8.count <= 123 } == true, "\(row.name) has a message that is too long")
        // The reader does not fail earlier, and it fails the same if the bytes arrive in pieces.
        #expect(WebSocketTranscript(reading: row.bytes.dropLast()).failure == nil, "\(row.name)")
        #expect(WebSocketTranscript(reading: row.bytes + [0, 0, 0], piece: { 1 }) == found, "\(row.name), byte by byte")
        // With compression, only RSV1 on the first frame becomes valid.
        let isCompressed = row.bytes == [0xC1]
        #expect((WebSocketTranscript(reading: row.bytes, allowsCompression: true).failure == nil) == isCompressed, "\(row.name)")
    }

    @Test func `every valid close code is accepted`() {
        let allowed = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014] + Array(3000...4999)
        for code in Array(0...5_100) + [0x8000, UInt16.max] {
            let found = WebSocketTranscript(reading: ServerFrame.close(code, Array("why".utf8)))
            if allowed.contains(Int(code)) {
                #expect(found == WebSocketTranscript([.close(code, "why")]))
            } else if found.failure?.code != 1002 {
                Issue.record("\(code): \(found)")
            }
        }
    }

    @Test func `a failure repeats`() {
        var reader = WebSocketFrameReader(allowsCompression: false)
        var failures: Set<WebSocketFailure> = []
        for bytes in [[0x83], [], [0x81, 0x00], [0x91]] as [[UInt8]] {
            var offset = 0
            do {
                let event = try bytes.withUnsafeBytes { try reader.next($0, &offset) }
                Issue.record("\(String(describing: event))")
            } catch {
                if let failure = error as? WebSocketFailure { failures.insert(failure) }
            }
        }
        #expect(failures == [.protocolError("a frame has the opcode 3, which is reserved")])
    }

    @Test func `RSV1 is valid only with compression, on the first frame of a message`() {
        let first = ServerFrame(.text, [1], isFinal: false, isCompressed: true).bytes
        let good = first + ServerFrame(.ping).bytes + ServerFrame(.continuation, [2]).bytes + ServerFrame(.binary, [3]).bytes
        #expect(
            WebSocketTranscript(reading: good, allowsCompression: true)
                == WebSocketTranscript([
                    .message(.text, isCompressed: true), .frame(1), .payload([1]), .ping([]), .frame(1), .payload([2]),
                    .messageEnd, .message(.binary, isCompressed: false), .frame(1), .payload([3]), .messageEnd,
                ]))
        for bad in [0xC0, 0x40] as [UInt8] {
            let found = WebSocketTranscript(reading: first + [bad], allowsCompression: true)
            #expect(found.failure == .protocolError("a frame that is not the first of its message has RSV1 set"))
        }
        #expect(WebSocketTranscript(reading: first).failure?.code == 1002)
    }

    // MARK: Pieces

    @Test func `every split of a stream into three pieces parses the same`() {
        let stream =
            ServerFrame(.text, Array("é€".utf8), isFinal: false).bytes + ServerFrame(.ping, [1, 2, 3]).bytes
            + ServerFrame(.continuation, [], isFinal: false).bytes
            + ServerFrame(.continuation, [UInt8](repeating: 9, count: 126)).bytes
            + ServerFrame(.binary, isCompressed: true).bytes + ServerFrame(.pong).bytes
            + ServerFrame.close(4000, Array("bye é".utf8)) + [0xFF]
        let whole = WebSocketTranscript(reading: stream, allowsCompression: true)
        #expect(whole.failure == nil && whole.isOver && whole.items.count == 13, "\(whole)")
        for first in 0...stream.count {
            for second in first...stream.count {
                var pieces = [first, second - first, stream.count].filter { $0 > 0 }.makeIterator()
                let found = WebSocketTranscript(
                    reading: stream, allowsCompression: true, piece: { pieces.next() ?? .max })
                if found != whole { Issue.record("\(first), \(second): \(found)") }
            }
        }
    }

    @Test func `every split of a long length parses the same`() {
        let stream = ServerFrame(.binary, Self.longer).bytes + ServerFrame(.ping).bytes
        let whole = WebSocketTranscript(reading: stream)
        for cut in Array(1...12) + [stream.count - 3, stream.count - 2, stream.count - 1] {
            var pieces = [cut].makeIterator()
            let found = WebSocketTranscript(reading: stream, piece: { pieces.next() ?? .max })
            if found != whole { Issue.record("\(cut)") }
        }
    }

    /// Mostly valid messages of a server, split at random.
    @Test func `random streams parse the same in any pieces`() {
        var failures = 0
        for seed in 0..<3_000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var stream: [UInt8] = []
            for _ in 0..<random.next(below: 12) {
                let lengths = [0, 1, 5, 125, 126, 300, 65_536]
                let length = lengths[random.next(below: seed % 50 == 0 ? 7 : 6)]
                let opcodes: [WebSocketOpcode] = [.continuation, .text, .binary, .ping, .pong, .close]
                let opcode = opcodes[random.next(below: random.next(below: 8) == 0 ? 6 : 5)]
                let payload = (0..<(opcode.isControl ? min(length, 125) : length)).map { UInt8(truncatingIfNeeded: $0) }
                var frame = ServerFrame(
                    opcode, payload, isFinal: opcode.isControl || random.next(below: 2) == 0,
                    isCompressed: !opcode.isControl && random.next(below: 4) == 0)
                if random.next(below: 30) == 0 { frame.isMasked = true }
                if random.next(below: 30) == 0 { frame.first ^= 1 << UInt8(random.next(below: 8)) }
                if random.next(below: 30) == 0 { frame.lengthBytes = 8 }
                stream += frame.bytes
            }
            let whole = WebSocketTranscript(reading: stream, allowsCompression: true)
            let cut = WebSocketTranscript(
                reading: stream, allowsCompression: true,
                piece: { random.next(below: 8) == 0 ? 1 + random.next(below: 400) : 1 + random.next(below: 3) })
            if whole != cut { Issue.record("seed \(seed): \(whole)\nand in pieces \(cut)") }
            if whole.failure != nil { failures += 1 }
        }
        #expect(500...2_900 ~= failures, "\(failures)")
    }

    @Test func `messages of a server are received as sent`() {
        for seed in 0..<300 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            var messages: [[UInt8]] = []
            var pings: [[UInt8]] = []
            var stream: [UInt8] = []
            for _ in 0..<5 {
                let message = (0..<random.next(below: 500)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                messages.append(message)
                var rest = message[...]
                var isFirst = true
                repeat {
                    let piece = rest.prefix(random.next(below: 300))
                    rest = rest.dropFirst(piece.count)
                    stream +=
                        ServerFrame(isFirst ? .binary : .continuation, Array(piece), isFinal: rest.isEmpty).bytes
                    isFirst = false
                    if random.next(below: 3) == 0 {
                        pings.append(Array(message.prefix(random.next(below: 126))))
                        stream += ServerFrame(.ping, pings[pings.count - 1]).bytes
                    }
                } while !rest.isEmpty
            }
            let found = WebSocketTranscript(reading: stream, piece: { 1 + random.next(below: 40) })
            #expect(found.messages == messages && found.failure == nil, "seed \(seed)")
            let heard = found.items.compactMap { item -> [UInt8]? in if case .ping(let payload) = item { payload } else { nil } }
            #expect(heard == pings, "seed \(seed)")
        }
    }
}
