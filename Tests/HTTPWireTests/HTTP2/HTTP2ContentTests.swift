// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `HTTP/2 content and field blocks` {
    private static let endHeaders = HTTP2Frames.Flag.endHeaders

    private func events(_ frames: [UInt8]..., limits: HTTP2FrameReader.Limits = HTTP2FrameReader.Limits()) -> [String] {
        let transcript = HTTP2Transcript(ServerFrames.settings + frames.flatMap(\.self), limits: limits)
        return transcript.events.dropFirst() + [transcript.failure.map { "\($0.code.name)" }].compactMap(\.self)
    }

    /// Returns for each piece of DATA its text, the number of bytes that it takes from the windows, and whether it ends the
    /// stream.
    private func pieces(_ bytes: [UInt8], cuts: [Int]) throws -> [String] {
        var reader = HTTP2FrameReader()
        var found: [String] = []
        _ = HTTP2Transcript(ServerFrames.settings, &reader)
        var start = 0
        for end in cuts + [bytes.count] {
            let piece = Array(bytes[start..<end])
            start = end
            try piece.withUnsafeBytes { piece in
                var offset = 0
                while let event = try reader.next(piece, &offset) {
                    guard case .data(_, let range, let taken, let endsStream) = event else { continue }
                    found.append("\(String(decoding: piece[range], as: UTF8.self)) \(taken)\(endsStream ? " end" : "")")
                }
            }
        }
        return found
    }

    @Test func `content is reported as it arrives, and the end with the last piece`() throws {
        let frame = ServerFrames.frame(0, HTTP2Frames.Flag.endStream, 1, Array("hello".utf8))
        #expect(try pieces(frame, cuts: []) == ["hello 5 end"])
        #expect(try pieces(frame, cuts: [9]) == ["hello 5 end"])
        #expect(try pieces(frame, cuts: [4, 11, 11]) == ["he 2", "llo 3 end"])
        #expect(try pieces(frame, cuts: [10, 11, 12, 13]) == ["h 1", "e 1", "l 1", "l 1", "o 1 end"])
    }

    @Test func `padding counts against the windows, and the frame's end ends the stream`() throws {
        let flags = HTTP2Frames.Flag.endStream | HTTP2Frames.Flag.padded
        let frame = ServerFrames.frame(0, flags, 1, [3] + Array("hi".utf8) + [0, 0, 0])
        #expect(try pieces(frame, cuts: []) == ["hi 6 end"])
        #expect(try pieces(frame, cuts: [10]) == ["hi 6 end"])
        #expect(try pieces(frame, cuts: [11]) == ["h 2", "i 4 end"])
        #expect(try pieces(frame, cuts: [12, 13, 14]) == ["hi 3", " 3 end"])
        #expect(try pieces(frame, cuts: [13]) == ["hi 3", " 3 end"])
        let empty = ServerFrames.frame(0, HTTP2Frames.Flag.padded, 1, [2, 0, 0])
        #expect(try pieces(empty, cuts: []) == [" 3"])
        #expect(try pieces(empty, cuts: [9, 10, 11]) == [" 3"])
        #expect(try pieces(ServerFrames.frame(0, flags, 1, [0]), cuts: [9]) == [" 1 end"])
    }

    @Test func `an empty DATA frame is reported`() throws {
        #expect(try pieces(ServerFrames.frame(0, 0, 1, []), cuts: [4]) == [" 0"])
        #expect(try pieces(ServerFrames.frame(0, HTTP2Frames.Flag.endStream, 1, []), cuts: []) == [" 0 end"])
    }

    @Test func `a field block may be split, padded and have a priority`() {
        let flags = HTTP2Frames.Flag.padded | HTTP2Frames.Flag.priority | HTTP2Frames.Flag.endStream
        let fields: [UInt8] = [0x88, 0x40, 1, 0x61, 1, 0x62]
        let expected = ["HEADERS 1 end 200 [a: b]"]
        #expect(events(ServerFrames.headers(fields, flags: Self.endHeaders | HTTP2Frames.Flag.endStream)) == expected)
        #expect(
            events(
                ServerFrames.frame(1, flags, 1, [2, 0, 0, 0, 3, 9] + fields[..<3] + [0, 0]),
                ServerFrames.frame(9, 0, 1, []), ServerFrames.frame(9, 0xFB, 1, [fields[3]]),
                ServerFrames.frame(9, Self.endHeaders, 1, Array(fields[4...]))) == expected)
        #expect(events(ServerFrames.frame(1, 1, 1, []), ServerFrames.frame(9, Self.endHeaders, 1, fields)) == expected)
        #expect(events(ServerFrames.headers([])) == ["HEADERS 1 - []"])
    }

    @Test func `a promise is reported, and its fields enter the table`() {
        let promise = ServerFrames.frame(
            5, Self.endHeaders | HTTP2Frames.Flag.padded, 1, [1, 0x80, 0, 0, 2, 0x40, 1, 0x61, 1, 0x62, 0])
        #expect(events(promise, ServerFrames.headers([0x88, 0xBE])) == ["PUSH_PROMISE 1 2", "HEADERS 1 200 [a: b]"])
        let parts =
            ServerFrames.frame(5, 0, 1, [0, 0, 0, 2, 0x40, 1]) + ServerFrames.frame(9, Self.endHeaders, 1, [0x61, 1, 0x62])
        #expect(events(parts, ServerFrames.headers([0x88, 0xBE])) == ["PUSH_PROMISE 1 2", "HEADERS 1 200 [a: b]"])
    }

    @Test func `CONTINUATION frames or blocks beyond the limits end the connection`() {
        var limits = HTTP2FrameReader.Limits()
        limits.continuationFrames = 3
        limits.blockBytes = 6
        let first = ServerFrames.frame(1, 0, 1, [0x88])
        let empty = ServerFrames.frame(9, 0, 1, [])
        let last = ServerFrames.frame(9, Self.endHeaders, 1, [])
        #expect(events(first, empty, empty, last, limits: limits) == ["HEADERS 1 200 []"])
        #expect(events(first, empty, empty, empty, last, limits: limits) == ["ENHANCE_YOUR_CALM"])
        let five = ServerFrames.frame(9, Self.endHeaders, 1, [0x40, 1, 0x61, 1, 0x62])
        #expect(events(first, five, limits: limits) == ["HEADERS 1 200 [a: b]"])
        let six = ServerFrames.frame(9, Self.endHeaders, 1, [0x40, 1, 0x61, 2, 0x62, 0x62])
        #expect(events(first, six, limits: limits) == ["ENHANCE_YOUR_CALM"])
        #expect(events(ServerFrames.frame(1, 0, 1, [UInt8](repeating: 0x88, count: 7)), limits: limits) == ["ENHANCE_YOUR_CALM"])
    }

    @Test func `a larger announced frame size is accepted`() {
        var limits = HTTP2FrameReader.Limits()
        limits.maximumFrameSize = 16_386
        let content = [UInt8](repeating: 0x78, count: 16_386)
        let text = String(decoding: content, as: UTF8.self)
        #expect(events(ServerFrames.frame(0, 1, 1, content), limits: limits) == ["DATA 1 end \(text) takes 16386"])
        #expect(events(ServerFrames.frame(0, 1, 1, content + [0]), limits: limits) == ["FRAME_SIZE_ERROR"])
    }
}
