// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// The rules of RFC 9113 about frames.
@Suite struct `HTTP/2 frame rules` {
    private static let data = HTTP2Frames.data
    private static let headers = HTTP2Frames.headers
    private static let endStream = HTTP2Frames.Flag.endStream
    private static let endHeaders = HTTP2Frames.Flag.endHeaders
    private static let padded = HTTP2Frames.Flag.padded

    private static func transcript(_ frames: [UInt8]...) -> HTTP2Transcript {
        HTTP2Transcript(ServerFrames.settings + frames.flatMap(\.self))
    }

    private static func setting(_ identifier: UInt8, _ value: [UInt8]) -> [UInt8] { [0, identifier] + value }

    struct Refusal: CustomTestStringConvertible {
        var sentence: String
        var code: HTTP2ErrorCode
        var frames: [UInt8]

        init(_ sentence: String, _ code: HTTP2ErrorCode, _ frames: [UInt8]...) {
            self.sentence = sentence
            self.code = code
            self.frames = frames.flatMap(\.self)
        }

        var testDescription: String { sentence }
    }

    private static let sizes: [Refusal] = [
        Refusal(
            "4.2: an endpoint MUST send an error code of FRAME_SIZE_ERROR if a frame exceeds the size defined in SETTINGS_MAX_FRAME_SIZE",
            .frameSizeError, ServerFrames.frame(data, 0, 1, [], length: 16_385)),
        Refusal("4.2: … HEADERS", .frameSizeError, ServerFrames.frame(headers, 0, 1, [], length: 16_385)),
        Refusal("4.2: … unknown", .frameSizeError, ServerFrames.frame(0xBB, 0, 1, [], length: 16_777_215)),
        Refusal("4.2: … too small to contain mandatory frame data", .frameSizeError, ServerFrames.frame(data, padded, 1, [])),
        Refusal(
            "4.2: … HEADERS without its pad length", .frameSizeError, ServerFrames.frame(headers, padded | endHeaders, 1, [])),
        Refusal(
            "4.2: … HEADERS without its priority", .frameSizeError,
            ServerFrames.frame(headers, HTTP2Frames.Flag.priority | endHeaders, 1, [0, 0, 0, 0])),
        Refusal("4.2: … PUSH_PROMISE without its stream", .frameSizeError, ServerFrames.frame(5, endHeaders, 1, [0, 0, 0])),
        Refusal(
            "6.4: a RST_STREAM frame with a length other than 4 octets", .frameSizeError, ServerFrames.frame(3, 0, 1, [0, 0, 0])),
        Refusal("6.4: … 5", .frameSizeError, ServerFrames.frame(3, 0, 1, [0, 0, 0, 0, 0])),
        Refusal(
            "6.5: a SETTINGS frame with the ACK flag set and a length field value other than 0", .frameSizeError,
            ServerFrames.frame(4, 1, 0, [0, 1, 0, 0, 0, 0])),
        Refusal(
            "6.5: a SETTINGS frame with a length other than a multiple of 6 octets", .frameSizeError,
            ServerFrames.frame(4, 0, 0, [0, 1, 0, 0, 0])),
        Refusal(
            "6.7: receipt of a PING frame with a length field value other than 8", .frameSizeError,
            ServerFrames.frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0])),
        Refusal(
            "6.8: GOAWAY is shorter than what it has to have", .frameSizeError,
            ServerFrames.frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0])),
        Refusal(
            "6.9: a WINDOW_UPDATE frame with a length other than 4 octets", .frameSizeError,
            ServerFrames.frame(8, 0, 1, [0, 0, 0, 1, 0])),
    ]

    private static let streams: [Refusal] = [
        Refusal(
            "6.1: if a DATA frame is received whose stream identifier field is 0x00", .protocolError,
            ServerFrames.frame(0, 0, 0, [1])),
        Refusal("6.2: if a HEADERS frame is received whose …", .protocolError, ServerFrames.frame(1, endHeaders, 0, [0x88])),
        Refusal(
            "6.3: if a PRIORITY frame is received with a stream identifier of 0x00", .protocolError,
            ServerFrames.frame(2, 0, 0, [0, 0, 0, 0, 0])),
        Refusal(
            "6.4: if a RST_STREAM frame is received with a stream identifier of 0x00", .protocolError,
            ServerFrames.frame(3, 0, 0, [0, 0, 0, 0])),
        Refusal(
            "6.5: if an endpoint receives a SETTINGS frame whose stream identifier field is anything other than 0x00",
            .protocolError,
            ServerFrames.frame(4, 0, 1, [])),
        Refusal(
            "6.6: if the stream identifier field specifies the value 0x00", .protocolError,
            ServerFrames.frame(5, endHeaders, 0, [0, 0, 0, 2])),
        Refusal(
            "6.6: an illegal stream identifier is promised: 0", .protocolError,
            ServerFrames.frame(5, endHeaders, 1, [0, 0, 0, 0])),
        Refusal("6.6: … a client's", .protocolError, ServerFrames.frame(5, endHeaders, 1, [0, 0, 0, 3])),
        Refusal(
            "6.7: if a PING frame is received with a stream identifier field value other than 0x00", .protocolError,
            ServerFrames.frame(6, 0, 1, [0, 0, 0, 0, 0, 0, 0, 0])),
        Refusal(
            "6.8: a GOAWAY frame with a stream identifier other than 0x00", .protocolError,
            ServerFrames.frame(7, 0, 1, [0, 0, 0, 0, 0, 0, 0, 0])),
        Refusal(
            "6.9: errors on the connection flow-control window MUST be treated as a connection error", .protocolError,
            ServerFrames.frame(8, 0, 0, [0x80, 0, 0, 0])),
        Refusal(
            "6.10: if a CONTINUATION frame is received with a stream identifier field of 0x00", .protocolError,
            ServerFrames.frame(9, endHeaders, 0, [])),
    ]

    private static let order: [Refusal] = [
        Refusal(
            "6.1: if the length of the padding is the length of the frame payload", .protocolError,
            ServerFrames.frame(data, padded, 1, [1])),
        Refusal("6.1: … or greater", .protocolError, ServerFrames.frame(data, padded, 1, [9, 0, 0])),
        Refusal(
            "6.2: padding that exceeds the size remaining for the field block fragment", .protocolError,
            ServerFrames.frame(headers, padded | endHeaders, 1, [2, 0x88])),
        Refusal(
            "6.2: … behind a priority", .protocolError,
            ServerFrames.frame(headers, padded | endHeaders | HTTP2Frames.Flag.priority, 1, [1, 0, 0, 0, 0, 0])),
        Refusal(
            "6.10: a CONTINUATION frame MUST be preceded by a HEADERS, PUSH_PROMISE or CONTINUATION frame without END_HEADERS",
            .protocolError, ServerFrames.frame(9, endHeaders, 1, [])),
        Refusal(
            "6.10: … and not by one with it", .protocolError, ServerFrames.headers([0x88]),
            ServerFrames.frame(9, endHeaders, 1, [])),
        Refusal(
            "6.2: the receipt of any other type of frame", .protocolError,
            ServerFrames.frame(headers, 0, 1, [0x88]), ServerFrames.frame(data, 0, 1, [1])),
        Refusal(
            "4.3: … even if it is unknown", .protocolError,
            ServerFrames.frame(headers, 0, 1, [0x88]), ServerFrames.frame(0xBB, 0, 1, [])),
        Refusal(
            "4.3: … or PING", .protocolError,
            ServerFrames.frame(headers, 0, 1, [0x88]), ServerFrames.frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0])),
        Refusal(
            "6.2: … or a frame on a different stream", .protocolError,
            ServerFrames.frame(headers, 0, 1, [0x88]), ServerFrames.frame(9, endHeaders, 3, [])),
        Refusal(
            "6.6: the same behind PUSH_PROMISE", .protocolError,
            ServerFrames.frame(5, 0, 1, [0, 0, 0, 2]), ServerFrames.frame(headers, endHeaders, 1, [0x88])),
    ]

    private static let values: [Refusal] = [
        Refusal(
            "6.5.2: a client MUST treat receipt of a SETTINGS frame with SETTINGS_ENABLE_PUSH set to 1 as a connection error",
            .protocolError, ServerFrames.frame(4, 0, 0, setting(2, [0, 0, 0, 1]))),
        Refusal("6.5.2: any value other than 0 or 1", .protocolError, ServerFrames.frame(4, 0, 0, setting(2, [0, 0, 0, 2]))),
        Refusal(
            "6.5.2: values above the maximum flow-control window size of 2^31-1", .flowControlError,
            ServerFrames.frame(4, 0, 0, setting(4, [0x80, 0, 0, 0]))),
        Refusal(
            "6.5.2: values outside this range: 2^14-1", .protocolError,
            ServerFrames.frame(4, 0, 0, setting(5, [0, 0, 0x3F, 0xFF]))),
        Refusal("6.5.2: … 2^24", .protocolError, ServerFrames.frame(4, 0, 0, setting(5, [1, 0, 0, 0]))),
        Refusal(
            "RFC 8441, 3: the value of the parameter MUST be 0 or 1", .protocolError,
            ServerFrames.frame(4, 0, 0, setting(8, [0, 0, 0, 2]))),
        Refusal(
            "RFC 9218, 2.1: any value other than 0 or 1", .protocolError, ServerFrames.frame(4, 0, 0, setting(9, [0, 0, 0, 2]))),
        Refusal(
            "6.5.3: values are processed in the order they appear, and none may be wrong", .protocolError,
            ServerFrames.frame(4, 0, 0, setting(5, [0, 0, 0, 0]) + setting(5, [0, 0, 0x40, 0]))),
    ]

    @Test(arguments: [sizes, streams, order, values].flatMap(\.self))
    func `a forbidden frame ends the connection with the RFC's error code`(refusal: Refusal) {
        let bytes = ServerFrames.settings + refusal.frames
        let whole = HTTP2Transcript(bytes)
        #expect(whole.failure?.code == refusal.code)
        #expect(whole.failure?.stream == nil)
        #expect(whole.failure?.message.isEmpty == false)
        #expect(HTTP2Transcript(bytes, cuts: Array(bytes.indices)) == whole)
    }

    @Test func `the first frame must be SETTINGS without ACK`() {
        for (what, first) in [
            ("an acknowledgement", ServerFrames.acknowledgement),
            ("PING", ServerFrames.frame(6, 0, 0, [UInt8](repeating: 0, count: 8))),
            ("unknown", ServerFrames.frame(0xBB, 0, 0, [])), ("HEADERS", ServerFrames.headers([0x88])),
        ] {
            let failure = HTTP2Transcript(first).failure
            #expect(failure?.code == .protocolError, "\(what)")
            #expect(failure?.message == "the server's first frame is not SETTINGS, which HTTP/2 requires", "\(what)")
        }
    }

    @Test func `a server that responds with HTTP/1 is reported as such`() {
        let bytes = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        for cuts in [[], Array(bytes.indices)] {
            let failure = HTTP2Transcript(bytes, cuts: cuts).failure
            #expect(failure?.code == .protocolError)
            #expect(failure?.message == "the server answered with HTTP/1 although HTTP/2 was negotiated")
        }
        #expect(HTTP2Transcript(ServerFrames.settings + bytes).failure?.code == .frameSizeError)
    }

    @Test func `a stream error does not end the connection`() {
        let transcript = Self.transcript(
            ServerFrames.frame(8, 0, 3, [0x80, 0, 0, 0]), ServerFrames.frame(2, 0, 5, [0, 0, 0, 0]),
            ServerFrames.frame(2, 0, 5, []),
            ServerFrames.frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0, 7]))
        #expect(transcript.failure == nil)
        #expect(
            transcript.events.dropFirst() == [
                "malformed 3 PROTOCOL_ERROR", "malformed 5 FRAME_SIZE_ERROR", "malformed 5 FRAME_SIZE_ERROR", "PING 7",
            ])
    }

    @Test func `a failure repeats`() throws {
        var reader = HTTP2FrameReader()
        let first = HTTP2Transcript(ServerFrames.settings + ServerFrames.frame(0, 0, 0, [1]), &reader)
        let second = HTTP2Transcript(ServerFrames.headers([0x88]), &reader)
        #expect(first.failure != nil)
        #expect(second.failure == first.failure)
        #expect(second.events.isEmpty)
    }

    @Test func `the reserved bit, unknown flags and unknown frames are ignored`() {
        var ping = ServerFrames.frame(6, 0xFE, 0, [0, 0, 0, 0, 0, 0, 0, 1])
        ping[5] |= 0x80
        var headers = ServerFrames.headers([0x88], stream: 0x7FFF_FFFF, flags: 0xD2 | Self.endHeaders)
        headers[5] |= 0x80
        let transcript = Self.transcript(
            ping, headers, ServerFrames.frame(0xBB, 0xFF, 0, Array("ORIGIN".utf8)), ServerFrames.frame(0xA, 0, 1, []),
            ServerFrames.frame(2, 0, 1, [0, 0, 0, 1, 2]))
        #expect(transcript.failure == nil)
        #expect(
            transcript.events.dropFirst() == [
                "PING 1", "HEADERS 2147483647 200 []", "ignored 187 0", "ignored 10 1", "ignored 2 1",
            ])
    }

    @Test func `settings are reported if present, with their last value`() {
        let entries =
            Self.setting(1, [0, 0, 0, 9]) + Self.setting(1, [0, 0, 0, 1]) + Self.setting(1, [0, 0, 0x10, 0])
            + Self.setting(4, [0x7F, 0xFF, 0xFF, 0xFF]) + Self.setting(4, [0, 0, 0, 0]) + Self.setting(0x0A, [1, 1, 1, 1])
            + Self.setting(3, [0xFF, 0xFF, 0xFF, 0xFF]) + Self.setting(9, [0, 0, 0, 1]) + Self.setting(2, [0, 0, 0, 0])
        let transcript = Self.transcript(ServerFrames.frame(4, 0xFE, 0, entries), ServerFrames.acknowledgement)
        #expect(
            transcript.events == [
                "SETTINGS of 0",
                """
                SETTINGS table 4096, least table 1, push 0, streams 4294967295, window 0, most window 2147483647, no priorities 1, \
                of 9
                """,
                "SETTINGS ack",
            ])
    }

    @Test func `hasSettings becomes true with the first SETTINGS`() {
        var reader = HTTP2FrameReader()
        #expect(!reader.hasSettings)
        let start = HTTP2Transcript(Array(ServerFrames.settings.dropLast()), &reader)
        #expect(!reader.hasSettings)
        #expect(!start.isAtFrameBoundary)
        let end = HTTP2Transcript(Array(ServerFrames.settings.suffix(1)), &reader)
        #expect(reader.hasSettings)
        #expect(end.isAtFrameBoundary)
    }

    @Test func `the reader is at a boundary after complete frames and field blocks`() {
        let cases: [([UInt8], Bool)] = [
            ([], true), ([0], false), (ServerFrames.headers([0x88]), true), (ServerFrames.headers([0x88]).dropLast(), false),
            (ServerFrames.frame(Self.headers, 0, 1, [0x88]), false), (ServerFrames.frame(0, 0, 1, [1, 2], length: 3), false),
            (ServerFrames.frame(0, Self.padded, 1, [], length: 3), false),
            (ServerFrames.frame(0xBB, 0, 1, [1, 2], length: 3), false),
            (ServerFrames.frame(0xBB, 0, 1, [1, 2]), true),
        ]
        for (bytes, isBoundary) in cases { #expect(Self.transcript(bytes).isAtFrameBoundary == isBoundary, "\(bytes)") }
    }

    @Test func `frames of the connection and of streams are reported`() {
        let debug = Array("go \u{1}away\u{E9}".utf8) + [UInt8](repeating: 0x78, count: 300)
        let transcript = Self.transcript(
            ServerFrames.frame(3, 0, 3, [0, 0, 0, 8]), ServerFrames.frame(3, 0, 3, [0, 0, 0, 0x1F]),
            ServerFrames.frame(6, 1, 0, [1, 0, 0, 0, 0, 0, 0, 0]), ServerFrames.frame(8, 0, 0, [0xFF, 0xFF, 0xFF, 0xFF]),
            ServerFrames.frame(8, 0, 9, [0, 0, 0, 1]), ServerFrames.frame(7, 0, 0, [0x80, 0, 0, 5, 0, 0, 0, 0xB] + debug),
            ServerFrames.frame(7, 0, 0, [0, 0, 0, 1, 0, 0, 0, 0]))
        #expect(
            transcript.events.dropFirst() == [
                "RST_STREAM 3 CANCEL", "RST_STREAM 3 0x1f", "PING 72057594037927936 ack", "WINDOW_UPDATE 0 2147483647",
                "WINDOW_UPDATE 9 1", "GOAWAY 5 ENHANCE_YOUR_CALM go ?away??" + String(repeating: "x", count: 246),
                "GOAWAY 1 NO_ERROR ",
            ])
    }
}
