// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `The chunked coding` {
    static let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    static let prefix = "1.1 200 'OK' [Transfer-Encoding=chunked] chunked / "

    private static let bodies: [(why: String, body: String, outcome: String)] = [
        ("two chunks", "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "body hello! / end / reusable"),
        (
            "hexadecimal digits of both cases, and leading zeros", "0000a\r\n0123456789\r\n00B\r\n0123456789a\r\n000\r\n\r\n",
            "body 01234567890123456789a / end / reusable"
        ),
        (
            "RFC 9112, 7.1.1: unrecognised extensions are ignored", "1;a=b;c=\"d e\"\r\nx\r\n0;e\r\n\r\n",
            "body x / end / reusable"
        ),
        ("padding", "1  \r\nx\r\n0\t\r\n\r\n", "body x / end / reusable"),
        (
            "RFC 9112, 7.1.1: bad white space", "1 ;\ta\t= b ; c;d= \"\" ;e\r\nx\r\n0\t;\te\r\n\r\n",
            "body x / end / reusable"
        ),
        (
            "RFC 9110, 5.6.4: quoted strings", "1;a=\";\t\u{E9}\\\"\\\\=\";b\r\nx\r\n0\r\n\r\n",
            "body x / end / reusable"
        ),
        ("an extension without a name", "1;\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("two semicolons", "1;;a\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a name that is no token", "1;a@b\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a name in two words", "1;a b\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("no semicolon", "1 a\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a value that is not there", "1;a=\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a value without a name", "1;=a\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("two values", "1;a=b=c\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a mark within a value", "1;a=b\"c\"\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("something after a quoted string", "1;a=\"b\"c\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a quoted string without end", "1;a=\"b\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a line end that is quoted", "1;a=\"\\\r\n\"\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("a control character in a quoted string", "1;a=\"\u{7F}\"\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("padding after an extension", "1;a \r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("no last chunk", "1\r\nx\r\n", "body x / failed closedInChunkedBody"),
        ("in a size", "1", "failed closedInChunkedBody"),
        ("in a chunk", "5\r\nhel", "body hel / failed closedInChunkedBody"),
        ("no empty line", "0\r\n", "failed closedInChunkedBody"),
        ("in the trailers", "0\r\na: b", "failed closedInChunkedBody"),
        ("not a number", "xyz\r\n", "failed malformedChunkSize"),
        ("negative", "-1\r\nx\r\n", "failed malformedChunkSize"),
        ("plus", "+1\r\nx\r\n", "failed malformedChunkSize"),
        ("empty", "\r\n", "failed malformedChunkSize"),
        ("prefixed", "0x1\r\nx\r\n", "failed malformedChunkSize"),
        ("white space before", " 1\r\nx\r\n", "failed malformedChunkSize"),
        ("only an extension", ";a\r\nx\r\n", "failed malformedChunkSize"),
        ("72 bits", "fffffffffffffffff2\r\nx", "failed chunkSizeTooLarge"),
        ("64 bits", "ffffffffffffffff\r\nx", "failed chunkSizeTooLarge"),
        (
            "sizes of a fixed width", "0000000000000001\r\nx\r\n00000000000000000000\r\n\r\n",
            "body x / end / reusable"
        ),
        ("64 bits behind zeros", "000ffffffffffffffff\r\nx", "failed chunkSizeTooLarge"),
        ("the largest", "fffffffffffffff\r\nx", "body x / failed closedInChunkedBody"),
        ("bare LF after a size", "1\nx\r\n0\r\n\r\n", "failed malformedChunkSize"),
        ("bare CR after a size", "1\rx\r\n0\r\n\r\n", "failed malformedChunkSize"),
        ("bare LF after an extension", "1;a\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("bare CR in an extension", "1;a\rb\r\nx\r\n0\r\n\r\n", "failed malformedChunkSize"),
        ("NUL in an extension", "1;a\0\r\nx\r\n0\r\n\r\n", "failed malformedChunkExtension"),
        ("data longer than its size", "1\r\nxy\r\n0\r\n\r\n", "body x / failed malformedChunkEnd"),
        ("bare LF after data", "1\r\nx\n0\r\n\r\n", "body x / failed malformedChunkEnd"),
        ("bare CR after data", "1\r\nx\r0\r\n\r\n", "body x / failed malformedChunkEnd"),
        ("trailers", "0\r\nExpires: never\r\nX:y\r\n\r\n", "end [Expires=never|X=y] / reusable"),
        ("a folded trailer", "0\r\na: b\r\n c\r\n\r\n", "end [a=b c] / reusable"),
        (
            "RFC 9110, 6.5.1: framing fields in trailers are ignored",
            "0\r\nContent-Length: 7\r\na: b\r\nTRANSFER-Encoding: gzip\r\nConnection: close\r\n\r\n",
            "end [a=b] / reusable"
        ),
        ("nothing but framing fields", "0\r\nContent-Length: 7\r\n\r\n", "end / reusable"),
        ("a trailer that is no field", "0\r\na b\r\n\r\n", "failed whitespaceBeforeColon"),
        ("NUL in a trailer", "0\r\na: \0\r\n\r\n", "failed nulByte"),
    ]

    @Test func `chunks are parsed as in RFC 9112 section 7-1`() {
        for (why, body, outcome) in Self.bodies {
            ResponseRow(why, Self.head + body, Self.prefix + outcome).check(#_sourceLocation)
        }
    }

    @Test func `extensions and trailers beyond the limits fail`() {
        var limits = ResponseParser.Limits()
        limits.chunkExtensionBytes = 10
        limits.trailerBytes = 12
        let rows: [(String, String, String)] = [
            ("as much as allowed, in two chunks", "1;2345\r\nx\r\n0;2345\r\n\r\n", "body x / end / reusable"),
            ("one more", "1;2345\r\nx\r\n0;23456\r\n\r\n", "body x / failed chunkExtensionsTooLarge"),
            ("zeros without end", String(repeating: "0", count: 27), "failed chunkExtensionsTooLarge"),
            (
                "sizes of a fixed width, in any number of chunks",
                String(repeating: "0000000000000001\r\nx\r\n", count: 20) + "0000000000000000\r\n\r\n",
                "body " + String(repeating: "x", count: 20) + " / end / reusable"
            ),
            ("one line without end", "1;2345678901234", "failed chunkExtensionsTooLarge"),
            ("as much as allowed", "0\r\na: 45678\r\n\r\n", "end [a=45678] / reusable"),
            ("one more", "0\r\na: 456789\r\n\r\n", "failed headTooLarge"),
            ("one line without end", "0\r\na: 45678901234567890", "failed headTooLarge"),
        ]
        for (why, body, outcome) in rows {
            ResponseRow(why, Self.head + body, Self.prefix + outcome).check(limits: limits, #_sourceLocation)
        }
    }

    @Test func `written chunks parse back`() throws {
        var bytes = Array(Self.head.utf8)
        var expected = ""
        for length in [1, 9, 15, 16, 17, 255, 256, 4095, 4096, 70_000] {
            let piece = String(repeating: "x", count: length)
            bytes += ChunkedBody.frameHead(length: length) + Array(piece.utf8) + ChunkedBody.frameTail
            expected += piece
        }
        let plain = Transcript(bytes + ChunkedBody.lastChunk)
        #expect(plain.outcome == Self.prefix + "body \(expected) / end / reusable")
        let trailers = HeaderBlock([("Digest", "abc"), ("X", "")])
        let trailing = Transcript(bytes + (try ChunkedBody.end(trailers: trailers)))
        #expect(trailing.outcome == Self.prefix + "body \(expected) / end [Digest=abc|X=] / reusable")
    }

    @Test func `chunk sizes are written in hexadecimal`() {
        let heads = [0, 1, 10, 15, 16, 255, 4096, Int.max]
            .map { String(decoding: ChunkedBody.frameHead(length: $0), as: UTF8.self) }
        #expect(heads == ["0\r\n", "1\r\n", "a\r\n", "f\r\n", "10\r\n", "ff\r\n", "1000\r\n", "7fffffffffffffff\r\n"])
    }

    @Test func `trailers that a peer could read differently are refused`() throws {
        #expect(try ChunkedBody.end(trailers: HeaderBlock()) == ChunkedBody.lastChunk)
        #expect(throws: InvalidRequest.fieldValue(name: "a")) {
            try ChunkedBody.end(trailers: HeaderBlock([("a", "b\r\nc: d")]))
        }
        #expect(throws: InvalidRequest.fieldName("a:")) { try ChunkedBody.end(trailers: HeaderBlock([("a:", "b")])) }
    }
}
