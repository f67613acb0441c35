// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `Response heads` {
    static let statusLines: [ResponseRow] = [
        ResponseRow(
            "plain",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "1.1 200 'OK' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow(
            "RFC 9112, 4: the reason-phrase may be empty, the space before it not",
            "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
            "1.1 200 '' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow(
            "and yet the space is missing on many servers",
            "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n",
            "1.1 404 '' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow(
            "a reason of several words, and obs-text in it",
            bytes: Array("HTTP/1.1 404 Pas trouv".utf8) + [0xE9] + Array(" ici\r\nContent-Length: 0\r\n\r\n".utf8),
            "1.1 404 'Pas trouvé ici' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow(
            "RFC 9110, 15: a status code that is invalid is as good as a 5xx",
            "HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\nx",
            "1.1 99 'OK' [Content-Length=1] length(1) / body x / end / reusable"
        ),
        ResponseRow(
            "also of class 0",
            "HTTP/1.1 000 \r\nContent-Length: 0\r\n\r\n",
            "1.1 0 '' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow(
            "RFC 9110, 2.5: a higher minor version is processed as the highest that is conformed to",
            "HTTP/1.7 200 OK\r\nContent-Length: 0\r\n\r\n",
            "1.1 200 'OK' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow(
            "RFC 9112, 2.2: empty lines before the message",
            "\r\n\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "1.1 200 'OK' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow("but not without end", "\n\n\n\n\n\n\n\n\nHTTP/1.1 200 OK\r\n\r\n", "failed tooManyEmptyLines"),
        ResponseRow(
            "RFC 9112, 2.2: bare LF",
            "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            "1.1 200 'OK' [Content-Length=0] length(0) / end / reusable"
        ),
        ResponseRow("HTTP/0.9", "<html>hello</html>", "failed notHTTP"),
        ResponseRow("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "failed notHTTP"),
        ResponseRow("HTTP/2 frame", bytes: [0, 0, 18, 4, 0, 0, 0, 0, 0], "failed notHTTP"),
        ResponseRow("another version", "HTTP/2 200 OK\r\n\r\n", "failed unsupportedVersion"),
        ResponseRow("another version", "HTTP/0.9 200 OK\r\n\r\n", "failed unsupportedVersion"),
        ResponseRow("RFC 9112, 2.3: HTTP-name is case-sensitive", "http/1.1 200 OK\r\n\r\n", "failed notHTTP"),
        ResponseRow("no minor version", "HTTP/1 200 OK\r\n\r\n", "failed unsupportedVersion"),
        ResponseRow("two digits of minor version", "HTTP/1.10 200 OK\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("letter for minor version", "HTTP/1.x 200 OK\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("two spaces", "HTTP/1.1  200 OK\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("two digits", "HTTP/1.1 20 OK\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("four digits", "HTTP/1.1 2000 OK\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("negative", "HTTP/1.1 -20 OK\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("no status", "HTTP/1.1\r\n\r\n", "failed malformedStatusLine"),
        ResponseRow("bare CR before", "\rHTTP/1.1 200 OK\r\n\r\n", "failed bareCarriageReturn"),
        ResponseRow("bare CR", "HTTP/1.1 200 O\rK\r\n\r\n", "failed bareCarriageReturn"),
        ResponseRow("two CR", "HTTP/1.1 200 OK\r\r\n\r\n", "failed bareCarriageReturn"),
        ResponseRow("NUL", "HTTP/1.1 200 O\0K\r\n\r\n", "failed nulByte"),
        ResponseRow("nothing at all", "", "failed closedBeforeResponse"),
        ResponseRow("after an empty line", "\r\n", "failed closedBeforeResponse"),
        ResponseRow("in the status line", "HTTP/1.1 20", "failed closedInHead"),
        ResponseRow("after the status line", "HTTP/1.1 200 OK\r\n", "failed closedInHead"),
        ResponseRow("in a field", "HTTP/1.1 200 OK\r\nServer: a", "failed closedInHead"),
        ResponseRow("before the empty line", "HTTP/1.1 200 OK\r\nServer: a\r\n", "failed closedInHead"),
        ResponseRow("in the empty line", "HTTP/1.1 200 OK\r\nServer: a\r\n\r", "failed closedInHead"),
    ]

    @Test(arguments: statusLines)
    func `status lines are parsed as in RFC 9112 section 4`(_ row: ResponseRow) {
        row.check(#_sourceLocation)
    }

    /// Field lines, and the expected fields or failure.
    static let fieldLines: [(why: String, lines: [UInt8], outcome: String)] = [
        ("plain", Array("Server: nginx\r\nDate: now\r\n".utf8), "[Server=nginx|Date=now]"),
        ("no space", Array("Server:nginx\r\n".utf8), "[Server=nginx]"),
        ("RFC 9112, 5.1: OWS around the value is not part of it", Array("a: \t b c\t \r\n".utf8), "[a=b c]"),
        ("empty value", Array("a:\r\nb: \r\nc:\n".utf8), "[a=|b=|c=]"),
        ("repeated fields stay apart and in order", Array("a: 1\r\nb: 2\r\nA: 3\r\n".utf8), "[a=1|b=2|A=3]"),
        ("colons in the value", Array("a: b:c::\r\n".utf8), "[a=b:c::]"),
        ("every tchar", Array("!#$%&'*+-.^_`|~09azAZ: 1\r\n".utf8), "[!#$%&'*+-.^_`|~09azAZ=1]"),
        ("a Latin-1 byte", [0x61, 0x3A, 0xE9, 0x0D, 0x0A], "[a=é]"),
        ("UTF-8", Array("a: é€\r\n".utf8), "[a=é€]"),
        ("RFC 9110, 5.5: other CTLs may be retained", Array("a: b\u{1}\tc\u{7F}\r\n".utf8), "[a=b\u{1}\tc\u{7F}]"),
        ("bare LF", Array("a: b\nc: d\n".utf8), "[a=b|c=d]"),
        ("obs-fold becomes a space", Array("a: b\r\n c\r\nd: e\r\n".utf8), "[a=b c|d=e]"),
        ("obs-fold with tab and bare LF", Array("a: b\n\t\t c \nd: e\n".utf8), "[a=b c|d=e]"),
        ("obs-fold twice", Array("x: y\r\na: b\r\n c\r\n  d\r\ne: f\r\n".utf8), "[x=y|a=b c d|e=f]"),
        ("obs-fold of an empty value", Array("a:\r\n b\r\n".utf8), "[a=b]"),
        ("obs-fold of nothing", Array("a: b\r\n \r\n\t\t\r\nc: d\r\n".utf8), "[a=b|c=d]"),
        ("obs-fold of nothing into nothing", Array("a:\r\n \r\nc: d\r\n".utf8), "[a=|c=d]"),
        ("RFC 9112, 2.2: white space before the first field", Array(" a: b\r\n".utf8), "orphanedFold"),
        ("RFC 9112, 5.1: white space before the colon", Array("a : b\r\n".utf8), "whitespaceBeforeColon"),
        ("tab before the colon", Array("a\t: b\r\n".utf8), "whitespaceBeforeColon"),
        ("no name", Array(": b\r\n".utf8), "malformedFieldName"),
        ("no colon", Array("abc\r\n".utf8), "missingColon"),
        ("no colon, bare LF", Array("abc\n".utf8), "missingColon"),
        ("a name that is no token", Array("a(b: c\r\n".utf8), "malformedFieldName"),
        ("a name that is not ASCII", Array("é: c\r\n".utf8), "malformedFieldName"),
        ("bare CR in a name", Array("a\rb: c\r\n".utf8), "bareCarriageReturn"),
        ("bare CR in a value", Array("a: b\rc\r\n".utf8), "bareCarriageReturn"),
        ("bare CR before CR LF", Array("a: b\r\r\n".utf8), "bareCarriageReturn"),
        ("bare CR at line start", Array("\ra: b\r\n".utf8), "bareCarriageReturn"),
        ("bare CR in a fold", Array("a: b\r\n c\rd\r\n".utf8), "bareCarriageReturn"),
        ("NUL at line start", Array("\0a: b\r\n".utf8), "nulByte"),
        ("NUL in a name", Array("a\0: b\r\n".utf8), "nulByte"),
        ("NUL in a value", Array("abcdefgh: 0123456789\0abc\r\n".utf8), "nulByte"),
        ("NUL in a fold", Array("a: b\r\n c\0\r\n".utf8), "nulByte"),
    ]

    @Test func `field lines are parsed as in RFC 9112 section 5`() {
        for (why, lines, outcome) in Self.fieldLines {
            let bytes = Array("HTTP/1.1 204 No Content\r\n".utf8) + lines + Array("\r\n".utf8)
            let expected =
                outcome.hasPrefix("[") ? "1.1 204 'No Content' \(outcome) none / end / reusable" : "failed \(outcome)"
            ResponseRow(why, bytes: bytes, expected).check(#_sourceLocation)
        }
    }

    @Test func `every byte is treated the same at any alignment of a name, a value or a reason`() {
        for byte in UInt8.min...UInt8.max {
            for padding in 0..<9 {
                let pad = [UInt8](repeating: UInt8(ascii: "x"), count: padding)
                let value =
                    Array("HTTP/1.1 204 x".utf8) + pad + [byte] + Array("y\r\na: b".utf8) + pad + [byte]
                    + Array("c\r\n\r\n".utf8)
                let isRefused = [0, 0x0D].contains(byte)
                let transcript = Transcript(value)
                #expect((transcript.failure != nil) == isRefused || byte == 0x0A, "byte \(byte) after \(padding)")
                let name = Array("HTTP/1.1 204 x\r\nab".utf8) + pad + [byte] + Array("c: d\r\n\r\n".utf8)
                let isToken = ASCII.isTokenCharacter(byte) || byte == UInt8(ascii: ":")
                #expect((Transcript(name).failure == nil) == isToken, "byte \(byte) after \(padding)")
            }
        }
    }

    @Test func `informational responses precede the final one`() {
        ResponseRow(
            "100, 102 with fields, 103",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\na: b\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: c\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "informational 1.1 100 'Continue' [] / informational 1.1 102 'P' [a=b] / informational 1.1 103 'Early Hints' [Link=c]"
                + " / 1.1 200 'OK' [Content-Length=2] length(2) / body ok / end / reusable"
        )
        .check(#_sourceLocation)
        ResponseRow(
            "closed after a 100",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "informational 1.1 100 'Continue' [] / failed closedBeforeResponse"
        )
        .check(#_sourceLocation)
    }

    @Test(arguments: [ResponseParser.RequestKind.upgrade, .upgradeByHead])
    func `a requested 101 is final with any method, and the bytes after it are content`(kind: ResponseParser.RequestKind) {
        let transcript = Transcript(Array("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nabcdef".utf8), kind)
        #expect(transcript.outcome == "1.1 101 'Switching' [Upgrade=x] untilClose / body abcdef / end / spent")
    }

    @Test func `a response that refuses an upgrade by HEAD has no content`() {
        let transcript = Transcript(Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n".utf8), .upgradeByHead)
        #expect(transcript.outcome == "1.1 200 'OK' [Content-Length=3] none / end / reusable")
    }

    @Test func `an unrequested 101 ends the message and leaves the rest unread`() {
        let transcript = Transcript(Array("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\nabcdef".utf8))
        #expect(transcript.outcome == "informational 1.1 101 'Switching' [Upgrade=x|Content-Length=3] / end / spent")
        #expect(transcript.parts.last == "57+0+6")
    }

    @Test func `heads fail as soon as they exceed the limits`() {
        var limits = ResponseParser.Limits()
        limits.headerBytes = 40
        limits.headerLines = 3
        let rows = [
            ResponseRow(
                "as large as allowed",
                "HTTP/1.1 204 \r\na: 678901234567890123\r\n\r\n",
                "1.1 204 '' [a=678901234567890123] none / end / reusable"
            ),
            ResponseRow("one more", "HTTP/1.1 204 \r\na: 6789012345678901234\r\n\r\n", "failed headTooLarge"),
            ResponseRow(
                "one line without end",
                "HTTP/1.1 204 \r\na: 0123456789012345678901234567890123456789",
                "failed headTooLarge"
            ),
            ResponseRow(
                "as many lines as allowed",
                "HTTP/1.1 204 \r\na:\r\na:\r\na:\r\n\r\n",
                "1.1 204 '' [a=|a=|a=] none / end / reusable"
            ),
            ResponseRow("one more", "HTTP/1.1 204 \r\na:\r\na:\r\na:\r\na:\r\n\r\n", "failed tooManyFieldLines"),
            ResponseRow(
                "a status line without end", "HTTP/1.1 200 0123456789012345678901234567890123456789", "failed headTooLarge"),
            ResponseRow("with an end", "HTTP/1.1 200 0123456789012345678901234567890123456789\r\n", "failed headTooLarge"),
            ResponseRow(
                "empty lines count",
                "\n\n\n\n\n\nHTTP/1.1 204 \r\na: 67890123456789012\r\n\r\n",
                "failed headTooLarge"
            ),
            ResponseRow("folds count", "HTTP/1.1 204 \r\na: b\r\n c\r\n c\r\n c\r\n c\r\n c\r\n\r\n", "failed headTooLarge"),
        ]
        for row in rows { row.check(limits: limits, #_sourceLocation) }
    }

    @Test func `the default limits match those of browsers`() {
        let long = Array("HTTP/1.1 200 OK\r\n".utf8) + [UInt8](repeating: UInt8(ascii: "a"), count: 262_144)
        #expect(Transcript(long, closing: false).failure == .headTooLarge)
        let many = "HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 5_001)
        #expect(Transcript(Array(many.utf8), closing: false).failure == .tooManyFieldLines)
        #expect(
            Transcript(Array("HTTP/1.1 200 OK\r\n\(String(repeating: "a: b\r\n", count: 5_000))".utf8), closing: false).failure
                == nil
        )
    }

    @Test func `a failure repeats until the next request`() throws {
        var parser = ResponseParser()
        parser.begin(.other)
        let bytes = Array("nonsense".utf8)
        bytes.withUnsafeBytes { bytes in
            for _ in 0..<2 {
                var offset = 0
                #expect(throws: ResponseParser.Failure.notHTTP) { try parser.next(bytes, &offset) }
            }
        }
        #expect(throws: ResponseParser.Failure.notHTTP) { try parser.finish() }
        #expect(parser.isIdle == false)
        parser.begin(.other)
        #expect(throws: ResponseParser.Failure.closedBeforeResponse) { try parser.finish() }
    }

    @Test func `an idle parser consumes no bytes`() throws {
        var parser = ResponseParser()
        #expect(parser.isIdle == true)
        let end = try parser.finish()
        #expect(end == nil)
        try Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
            .withUnsafeBytes { bytes in
                var offset = 0
                let event = try parser.next(bytes, &offset)
                #expect(event == nil)
                #expect(offset == 0)
            }
    }

    @Test func `header bytes are counted as they arrive`() throws {
        var parser = ResponseParser()
        parser.begin(.other)
        let bytes = Array("\r\nHTTP/1.1 100 C\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\na: b\r\n c\r\nContent-Length: 1\r\n\r\nx".utf8)
        for (index, byte) in bytes.enumerated() {
            #expect(parser.headerBytesReceived == Int64(index))
            try [byte]
                .withUnsafeBytes { piece in
                    var offset = 0
                    while try parser.next(piece, &offset) != nil {}
                }
        }
        #expect(parser.headerBytesReceived == Int64(bytes.count - 1))
        #expect(parser.bodyBytesReceived == 1)
        parser.begin(.head)
        #expect(parser.headerBytesReceived == 0)
        #expect(parser.bodyBytesReceived == 0)
    }

    @Test func `each failure has its own message`() {
        #expect(Set(ResponseParser.Failure.allCases.map(\.message)).count == ResponseParser.Failure.allCases.count)
    }

    @Test func `each failure has its category`() {
        let closed: Set<ResponseParser.Failure> = [
            .closedBeforeResponse, .closedInHead, .closedInBody, .closedInChunkedBody, .brokenInBody,
        ]
        let large: Set<ResponseParser.Failure> = [.headTooLarge, .tooManyFieldLines, .chunkExtensionsTooLarge]
        let chunks: Set<ResponseParser.Failure> = [
            .malformedChunkSize, .chunkSizeTooLarge, .malformedChunkExtension, .malformedChunkEnd,
        ]
        for failure in ResponseParser.Failure.allCases {
            let expected: ResponseParser.Failure.Category =
                closed.contains(failure)
                ? .connectionLost
                : large.contains(failure) ? .tooLarge : chunks.contains(failure) ? .cannotParseResponse : .badServerResponse
            #expect(failure.category == expected, "\(failure)")
        }
    }
}
