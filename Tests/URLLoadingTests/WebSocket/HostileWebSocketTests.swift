// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Frames that violate RFC 6455 or RFC 7692: the task fails, the server receives a close code, and nothing is delivered.
@Suite(.timeLimit(.minutes(1)))
struct HostileWebSocketTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var bytes: [UInt8]
        /// The close codes that the server may receive.
        var codes: [Int] = [1002]
        var error = URLError.Code.badServerResponse
        var offersCompression = false
        var testDescription: String { name }
    }

    private static func frame(_ first: UInt8, _ payload: [UInt8] = []) -> [UInt8] { [first, UInt8(payload.count)] + payload }
    private static func text(_ payload: [UInt8]) -> [UInt8] { frame(0x81, payload) }

    static let headRows =
        [0x70, 0x40, 0x20, 0x10].flatMap { bits -> [Row] in
            [("text", 0x81), ("binary", 0x82), ("close", 0x88), ("ping", 0x89), ("pong", 0x8A)].map { kind in
                Row(name: "reserved bits \(bits) of \(kind.0)", bytes: frame(UInt8(kind.1 | bits), kind.0 == "close" ? [] : [97]))
            }
        }
        + [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].flatMap { opcode -> [Row] in
            [
                Row(name: "opcode \(opcode)", bytes: frame(0x80 | opcode, [97])),
                Row(name: "opcode \(opcode), not final", bytes: frame(opcode)),
            ]
        }
        + [
            Row(name: "a masked text", bytes: [0x81, 0x81, 1, 2, 3, 4, 97 ^ 1]),
            Row(name: "a masked text with a key of zeros", bytes: [0x81, 0x81, 0, 0, 0, 0, 97]),
            Row(name: "a masked empty text", bytes: [0x81, 0x80, 1, 2, 3, 4]),
            Row(name: "a masked ping", bytes: [0x89, 0x80, 1, 2, 3, 4]),
            Row(name: "a masked close", bytes: [0x88, 0x82, 0, 0, 0, 0, 3, 0xE8]),
            Row(name: "a continuation without a start", bytes: frame(0x80, [97])),
            Row(name: "a continuation that is not final, without a start", bytes: frame(0x00, [97])),
            Row(name: "a continuation after a whole message", bytes: frame(0x81, [97]) + frame(0x80, [98])),
            Row(name: "a text within a text", bytes: frame(0x01, [97]) + frame(0x81, [98])),
            Row(name: "a binary within a text", bytes: frame(0x01, [97]) + frame(0x02, [98])),
            Row(name: "a text within a binary", bytes: frame(0x02, [97]) + frame(0x01, [98])),
            Row(name: "a ping in fragments", bytes: frame(0x09, [97])),
            Row(name: "a pong in fragments", bytes: frame(0x0A)),
            Row(name: "a close in fragments", bytes: frame(0x08, [3, 0xE8])),
            Row(name: "a ping of 126 bytes", bytes: [0x89, 126, 0, 126] + [UInt8](repeating: 0, count: 126)),
            Row(name: "a pong of 126 bytes", bytes: [0x8A, 126, 0, 126] + [UInt8](repeating: 0, count: 126)),
            Row(name: "a close of 126 bytes", bytes: [0x88, 126, 0, 126, 3, 0xE8] + [UInt8](repeating: 97, count: 124)),
            Row(name: "a ping whose length has 64 bits", bytes: [0x89, 127, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
            Row(name: "a length of 2^63", bytes: [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            Row(name: "a length of 2^64 - 1", bytes: [0x82, 127] + [UInt8](repeating: 0xFF, count: 8)),
            Row(
                name: "a length of 2^63 - 1", bytes: [0x82, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7), codes: [1009],
                error: .dataLengthExceedsMaximum),
            Row(
                name: "2^63 - 1 behind a fragment",
                bytes: frame(0x02, [1, 2, 3]) + [0x80, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7),
                codes: [1009], error: .dataLengthExceedsMaximum),
            // "the minimal number of bytes MUST be used to encode the length" (RFC 6455, section 5.2).
            Row(name: "125 in 16 bits", bytes: [0x82, 126, 0, 125] + [UInt8](repeating: 0, count: 125)),
            Row(name: "0 in 16 bits", bytes: [0x82, 126, 0, 0]),
            Row(
                name: "65535 in 64 bits", bytes: [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 65_535)),
            Row(name: "1 in 64 bits", bytes: [0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
        ]

    static let closeRows =
        [Row(name: "a close body of one byte", bytes: frame(0x88, [3]))]
        + [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map { code in
            Row(name: "close code \(code)", bytes: frame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)]))
        }
        + [
            Row(name: "a close reason that is no UTF-8", bytes: frame(0x88, [3, 0xE8, 0xFF]), codes: [1007, 1002]),
            Row(name: "a close reason cut inside a character", bytes: frame(0x88, [3, 0xE8, 0xE2, 0x82]), codes: [1007, 1002]),
        ]

    static let textRows: [Row] = [
        ("0xFF", [0xFF]), ("a lone continuation byte", [0x80]), ("an overlong slash", [0xC0, 0xAF]),
        ("an overlong NUL", [0xC0, 0x80]), ("overlong in three bytes", [0xE0, 0x80, 0xAF]),
        ("overlong in four bytes", [0xF0, 0x80, 0x80, 0xAF]), ("a surrogate", [0xED, 0xA0, 0x80]),
        ("a pair of surrogates", [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80]), ("beyond U+10FFFF", [0xF4, 0x90, 0x80, 0x80]),
        ("a lead byte of five", [0xF8, 0x88, 0x80, 0x80, 0x80]), ("cut inside two bytes", [0x61, 0xC3]),
        ("cut inside three bytes", [0x61, 0xE2, 0x82]), ("cut inside four bytes", [0xF0, 0x9F, 0x98]),
        ("a character and then a lead byte", [0xC3, 0xA4, 0xC3]), ("Latin-1", Array("gr".utf8) + [0xFC, 0x6E]),
    ].flatMap { name, bytes -> [Row] in
        [
            Row(name: "\(name)", bytes: text(bytes), codes: [1007]),
            Row(
                name: "\(name), byte by byte in fragments",
                bytes: bytes.enumerated().flatMap { frame($0 == 0 ? 0x01 : 0x00, [$1]) } + frame(0x80), codes: [1007]),
            Row(
                name: "\(name), behind good text", bytes: frame(0x01, Array("gr\u{FC}n".utf8)) + frame(0x80, bytes), codes: [1007]
            ),
        ]
    }

    /// "Hello", compressed (RFC 7692, section 7.2.3.1).
    private static let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]

    static let compressionRows = [
        Row(name: "RSV1 on a continuation", bytes: frame(0x41, Array(hello[..<3])) + frame(0xC0, Array(hello[3...]))),
        Row(name: "RSV1 on a ping", bytes: frame(0xC9, [97])), Row(name: "RSV1 on a close", bytes: frame(0xC8, [3, 0xE8])),
        Row(name: "RSV1 on a pong", bytes: frame(0xCA)), Row(name: "RSV1 and RSV2", bytes: frame(0xE1, hello)),
        Row(name: "no deflate", bytes: frame(0xC1, [0xFF, 0xFF, 0xFF, 0xFF]), codes: [1002, 1007]),
        Row(name: "a reserved block", bytes: frame(0xC2, [0x06, 0x00]), codes: [1002, 1007]),
        Row(name: "a distance before the start", bytes: frame(0xC2, [0xF2, 0x00, 0x11, 0x00, 0x00]), codes: [1002, 1007]),
        Row(
            name: "a stored block whose length is wrong",
            bytes: frame(0xC2, [0x00, 0x05, 0x00, 0xFB, 0xFF] + Array("Hello".utf8)),
            codes: [1002, 1007]),
        Row(name: "deflate that is cut", bytes: frame(0xC2, [0xF2, 0x48, 0xCD]), codes: [1002, 1007]),
        // The text is 0xFF 0xFE, in a stored block.
        Row(
            name: "compressed text that is no UTF-8", bytes: frame(0xC1, [0x00, 0x02, 0x00, 0xFD, 0xFF, 0xFF, 0xFE, 0x00]),
            codes: [1007]),
    ].map { row in
        var row = row
        row.offersCompression = true
        return row
    }

    /// Expects that a server fails the task by sending these bytes after its 101.
    private func expect(_ row: Row, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let recorder = WebSocketRecorder()
        let (seen, rest) = (Delivered<WebSocketPeer.Frame?>(), Delivered<Int>())
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept(
                row.offersCompression ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : "", then: row.bytes)
            seen(try connection.readFrame())
            rest(try connection.drain())
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.offersCompression = row.offersCompression
            // These are the outcomes of pending receives and of later ones.
            let outcomes = Delivered<String>()
            let note: @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void = { result in
                switch result {
                case .success(let message): outcomes(message.wire == .text("a") ? "a" : "\(message.wire)")
                case .failure(let error): outcomes("\((error as? URLError)?.code.rawValue ?? 0)")
                }
            }
            for _ in 0..<2 { task.receive(completionHandler: note) }
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == row.error, sourceLocation: sourceLocation)
            #expect(record.letters == "coME", sourceLocation: sourceLocation)
            #expect((task.error as? URLError)?.code == row.error, sourceLocation: sourceLocation)
            for _ in 0..<2 { task.receive(completionHandler: note) }
            try await outcomes.count(reaches: 4)
            // A complete earlier message is received; the invalid one never is.
            let failures = outcomes.all.drop { $0 == "a" }
            #expect(failures.count >= 3, "\(outcomes.all)", sourceLocation: sourceLocation)
            #expect(failures.allSatisfy { $0 == "\(row.error.rawValue)" }, "\(outcomes.all)", sourceLocation: sourceLocation)
            let frame = try #require(try await seen.value, sourceLocation: sourceLocation)
            let isClose = frame.opcode == 8 && frame.wasMasked && frame.code.map(row.codes.contains) == true
            #expect(isClose, "\(frame)", sourceLocation: sourceLocation)
            #expect(try await rest.value == 0, "bytes followed the close frame", sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: headRows) func `an invalid frame fails the task`(row: Row) async throws { try await expect(row) }

    @Test(arguments: closeRows) func `an invalid close frame fails the task`(row: Row) async throws {
        try await expect(row)
    }

    @Test(arguments: textRows) func `text that is not UTF-8 fails the task`(row: Row) async throws { try await expect(row) }

    @Test(arguments: compressionRows) func `invalid compression fails the task`(row: Row) async throws {
        try await expect(row)
    }

    @Test(arguments: [[0x61, 0xFF], [0xC3, 0x28], [0x80], [0xC0], [0xED, 0xA0], [0xF4, 0x90]] as [[UInt8]])
    func `text that cannot become UTF-8 fails before its message is complete`(bytes: [UInt8]) async throws {
        let seen = Delivered<Int?>()
        try await withWebSocket { connection in
            try connection.accept()
            try connection.send(1, Array("good".utf8) + bytes, isFinal: false)
            try connection.send(9, [1])
            // A pong means that the bytes before it have not failed yet.
            while let frame = try connection.readFrame() { seen(frame.opcode == 10 ? 0 : frame.code) }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try #require(try await seen.value == 1007)
            await expectFailure(.badServerResponse) { try await task.receive() }
        }
    }

    /// RFC 7692, section 7.2.3.
    @Test(
        arguments: [
            ("one block", [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], ["Hello"]),
            ("fragments", [0x41, 0x03, 0xF2, 0x48, 0xCD, 0x80, 0x04, 0xC9, 0xC9, 0x07, 0x00], ["Hello"]),
            (
                "the window of the message before",
                [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00],
                ["Hello", "Hello"]
            ),
            ("a stored block", [0xC1, 0x0B, 0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00], ["Hello"]),
            ("a block with BFINAL", [0xC1, 0x08, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00], ["Hello"]),
            (
                "a message behind one with BFINAL",
                [
                    0xC1, 0x08, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00, 0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07,
                    0x00,
                ], ["Hello", "Hello"]
            ),
            (
                "two blocks", [0xC1, 0x0D, 0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
                ["Hello"]
            ),
            ("an empty message", [0xC1, 0x01, 0x00], [""]),
            ("a message that is not compressed", [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F], ["Hello"]),
            ("an empty fragment first", [0x41, 0x00, 0x80, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], ["Hello"]),
        ] as [(String, [UInt8], [String])])
    func `every form of compressed message is received`(name: String, bytes: [UInt8], texts: [String]) async throws {
        for isSlow in [false, true] {
            try await withScenario(
                reply: { request in
                    .webSocket(request, [("Sec-WebSocket-Extensions", "permessage-deflate")])
                        .then(isSlow ? .writeSlowly(bytes) : .write(bytes), .stall)
                }
            ) { (server, session) async throws in
                let task = session.webSocketTask(with: server.socketURL())
                task.offersCompression = true
                task.resume()
                for text in texts { #expect(try await task.next() == .text(text), "\(name)") }
            }
        }
    }
}
