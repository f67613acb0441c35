// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `Response framing` {
    static let lengths: [ResponseRow] = [
        ResponseRow(
            "by length",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "1.1 200 'OK' [Content-Length=5] length(5) / body hello / end / reusable"
        ),
        ResponseRow(
            "RFC 9112, 6.3, 8: until close",
            "HTTP/1.1 200 OK\r\n\r\nhello",
            "1.1 200 'OK' [] untilClose / body hello / end / spent"
        ),
        ResponseRow("until close, empty", "HTTP/1.1 200 OK\r\n\r\n", "1.1 200 'OK' [] untilClose / end / spent"),
        ResponseRow(
            "a short body",
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
            "1.1 200 'OK' [Content-Length=6] length(6) / body hello / failed closedInBody"
        ),
        ResponseRow(
            "leading zeros",
            "HTTP/1.1 200 OK\r\ncontent-length: 0005\r\n\r\nhello",
            "1.1 200 'OK' [content-length=0005] length(5) / body hello / end / reusable"
        ),
        ResponseRow(
            "the largest",
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx",
            "1.1 200 'OK' [Content-Length=9223372036854775807] length(9223372036854775807) / body x / failed closedInBody"
        ),
        ResponseRow(
            "one more",
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nx",
            "failed contentLengthTooLarge"
        ),
        ResponseRow(
            "much more",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\nx",
            "failed contentLengthTooLarge"
        ),
        ResponseRow("negative", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow("plus", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow("hexadecimal", "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow("a unit", "HTTP/1.1 200 OK\r\nContent-Length: 5b\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow("two words", "HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow("empty", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow("an empty member", "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\nhello", "failed malformedContentLength"),
        ResponseRow(
            "two lengths in two lines",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            "failed differingContentLengths"
        ),
        ResponseRow(
            "two lengths, names in other cases",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-LENGTH: 6\r\n\r\nhello!",
            "failed differingContentLengths"
        ),
        ResponseRow(
            "two lengths in a list", "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!", "failed differingContentLengths"),
        ResponseRow(
            "list and line",
            "HTTP/1.1 200 OK\r\nContent-Length: 5,5\r\nContent-Length: 6\r\n\r\nhello!",
            "failed differingContentLengths"
        ),
        ResponseRow("fold", "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n 6\r\n\r\nhello!", "failed differingContentLengths"),
        ResponseRow(
            "a fold between digits",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n 6\r\n\r\nhello!",
            "failed malformedContentLength"
        ),
        ResponseRow(
            "RFC 9112, 6.3, 5: equal lines",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
            "1.1 200 'OK' [Content-Length=2|Content-Length=2] length(2) / body ok / end / reusable"
        ),
        ResponseRow(
            "RFC 9112, 6.3, 5: equal members",
            "HTTP/1.1 200 OK\r\nContent-Length: 2 ,\t02\r\n\r\nok",
            "1.1 200 'OK' [Content-Length=2 ,\t02] length(2) / body ok / end / reusable"
        ),
        ResponseRow(
            "a name of the same length",
            "HTTP/1.1 200 OK\r\nContent-Lengti: 2\r\nTransfer-Encodinh: x\r\nConnectiom: close\r\nContent-Length: 2\r\n\r\nok",
            "1.1 200 'OK' [Content-Lengti=2|Transfer-Encodinh=x|Connectiom=close|Content-Length=2] length(2) / body ok / end / reusable"
        ),
    ]

    static let withoutContent: [ResponseRow] = [
        ResponseRow(
            "RFC 9112, 6.3, 1: HEAD",
            .head,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "1.1 200 'OK' [Content-Length=5] none / end / reusable"
        ),
        ResponseRow(
            "HEAD, chunked",
            .head,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1.1 200 'OK' [Transfer-Encoding=chunked] none / end / reusable"
        ),
        ResponseRow("HEAD, nothing said", .head, "HTTP/1.1 200 OK\r\n\r\n", "1.1 200 'OK' [] none / end / reusable"),
        ResponseRow(
            "204",
            "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n",
            "1.1 204 'No' [Content-Length=5] none / end / reusable"
        ),
        ResponseRow(
            "304",
            "HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n",
            "1.1 304 'No' [Content-Length=5] none / end / reusable"
        ),
        ResponseRow(
            "205 has a length like any",
            "HTTP/1.1 205 No\r\nContent-Length: 1\r\n\r\nx",
            "1.1 205 'No' [Content-Length=1] length(1) / body x / end / reusable"
        ),
        ResponseRow(
            "with HEAD",
            .head,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "failed differingContentLengths"
        ),
        ResponseRow(
            "HEAD, a length that nobody can count",
            .head,
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
            "1.1 200 'OK' [Content-Length=9223372036854775808] none / end / reusable"
        ),
        ResponseRow(
            "HEAD, a length that nobody can count, and more behind it",
            .head,
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808x\r\n\r\n",
            "failed malformedContentLength"
        ),
        ResponseRow(
            "HEAD, a length that nobody can count, and one that anybody can",
            .head,
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\nContent-Length: 1\r\n\r\n",
            "failed differingContentLengths"
        ),
        ResponseRow(
            "HEAD, a length that is none",
            .head,
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "failed malformedContentLength"
        ),
        ResponseRow(
            "RFC 9112, 6.3, 2: CONNECT",
            .connect,
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: y\r\n\r\n",
            "1.1 200 'OK' [Content-Length=x|Transfer-Encoding=y] none / end / spent"
        ),
        ResponseRow(
            "CONNECT refused",
            .connect,
            "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno",
            "1.1 407 'No' [Content-Length=2] length(2) / body no / end / reusable"
        ),
    ]

    static let transferEncodings: [ResponseRow] = [
        ResponseRow(
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "1.1 200 'OK' [Transfer-Encoding=chunked] chunked / end / reusable"
        ),
        ResponseRow(
            "any case",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: CHunked \r\n\r\n0\r\n\r\n",
            "1.1 200 'OK' [transfer-encoding=CHunked] chunked / end / reusable"
        ),
        ResponseRow(
            "TE + CL",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            "1.1 200 'OK' [Transfer-Encoding=chunked|Content-Length=3] chunked / body x / end / spent"
        ),
        ResponseRow(
            "CL + TE",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            "1.1 200 'OK' [Content-Length=3|Transfer-Encoding=chunked] chunked / body x / end / spent"
        ),
        ResponseRow(
            "RFC 9112, 6.3, 4: chunked is last",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            "1.1 200 'OK' [Transfer-Encoding=gzip, chunked] chunked / body x / end / reusable"
        ),
        ResponseRow(
            "chunked is last in the second line, among empty members",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: , X-GZip ,\r\nTransfer-Encoding: deflate,chunked ,\r\n\r\n0\r\n\r\n",
            "1.1 200 'OK' [Transfer-Encoding=, X-GZip ,|Transfer-Encoding=deflate,chunked ,] chunked / end / reusable"
        ),
        ResponseRow(
            "RFC 9112, 6.3, 4: chunked is not there",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nxyz",
            "1.1 200 'OK' [Transfer-Encoding=gzip|Content-Length=1] untilClose / body xyz / end / spent"
        ),
        ResponseRow(
            "identity does nothing",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx",
            "1.1 200 'OK' [Transfer-Encoding=identity] untilClose / body x / end / spent"
        ),
        ResponseRow(
            "nothing may follow chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            "failed chunkedIsNotLast"
        ),
        ResponseRow(
            "chunked twice",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "failed chunkedIsNotLast"
        ),
        ResponseRow("an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n", "failed unknownTransferEncoding"),
        ResponseRow(
            "one of two",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: compress, chunked\r\n\r\n",
            "failed unknownTransferEncoding"
        ),
        ResponseRow(
            "RFC 9112, 7.1: chunked has no parameters",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;a=b\r\n\r\n",
            "failed unknownTransferEncoding"
        ),
        ResponseRow("nothing listed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: ,\r\n\r\n", "failed unknownTransferEncoding"),
        ResponseRow("empty", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n", "failed unknownTransferEncoding"),
        ResponseRow(
            "disguised",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: \u{B}chunked\r\n\r\n",
            "failed unknownTransferEncoding"
        ),
        ResponseRow(
            "folded into place",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
            "1.1 200 'OK' [Transfer-Encoding=chunked] chunked / end / reusable"
        ),
        ResponseRow(
            "RFC 9112, 6.1: faulty in HTTP/1.0",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "failed transferEncodingInHTTP10"
        ),
    ]

    static let persistence: [ResponseRow] = [
        ResponseRow(
            "RFC 9112, 9.3: close",
            "HTTP/1.1 204 \r\nConnection: close\r\n\r\n",
            "1.1 204 '' [Connection=close] none / end / spent"
        ),
        ResponseRow(
            "close in a list",
            "HTTP/1.1 204 \r\nconnection: a, CLOSE ,b\r\n\r\n",
            "1.1 204 '' [connection=a, CLOSE ,b] none / end / spent"
        ),
        ResponseRow(
            "close in the second line",
            "HTTP/1.1 204 \r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
            "1.1 204 '' [Connection=keep-alive|Connection=close] none / end / spent"
        ),
        ResponseRow(
            "a token that contains close",
            "HTTP/1.1 204 \r\nConnection: closed\r\n\r\n",
            "1.1 204 '' [Connection=closed] none / end / reusable"
        ),
        ResponseRow("HTTP/1.0", "HTTP/1.0 204 \r\n\r\n", "1.0 204 '' [] none / end / spent"),
        ResponseRow(
            "HTTP/1.0 with keep-alive",
            "HTTP/1.0 204 \r\nConnection: Keep-Alive\r\n\r\n",
            "1.0 204 '' [Connection=Keep-Alive] none / end / reusable"
        ),
        ResponseRow(
            "HTTP/1.0 with both",
            "HTTP/1.0 204 \r\nConnection: Keep-Alive, close\r\n\r\n",
            "1.0 204 '' [Connection=Keep-Alive, close] none / end / spent"
        ),
        ResponseRow(
            "HTTP/1.0 with keep-alive until close",
            "HTTP/1.0 200 \r\nConnection: Keep-Alive\r\n\r\nx",
            "1.0 200 '' [Connection=Keep-Alive] untilClose / body x / end / spent"
        ),
    ]

    @Test(arguments: lengths)
    func `content ends with Content-Length or the connection`(_ row: ResponseRow) {
        row.check(#_sourceLocation)
    }

    @Test(arguments: withoutContent)
    func `some responses never have content`(_ row: ResponseRow) {
        row.check(#_sourceLocation)
    }

    @Test(arguments: transferEncodings)
    func `the last transfer coding determines the end of the content`(_ row: ResponseRow) {
        row.check(#_sourceLocation)
    }

    @Test(arguments: persistence)
    func `a connection persists as in RFC 9112 section 9-3`(_ row: ResponseRow) {
        row.check(#_sourceLocation)
    }

    @Test func `bytes after a complete response are not consumed`() {
        for (kind, text, left) in [
            (ResponseParser.RequestKind.other, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", 17),
            (.other, "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", 5),
            (.head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 5),
            (.connect, "HTTP/1.1 200 OK\r\n\r\nhello", 5),
            (.other, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n", 2),
        ] {
            let (whole, differing) = Transcript.everyWay(Array(text.utf8), kind)
            #expect(whole.parts.last?.hasSuffix("+\(left)") == true, "\(text): \(whole)")
            #expect(differing.isEmpty, "\(differing)")
        }
    }

    @Test func `skipped content counts as received`() throws {
        var parser = ResponseParser()
        parser.begin(.other)
        parser.skip(1)
        try Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab".utf8).withUnsafeBytes { bytes in
            var offset = 0
            while try parser.next(bytes, &offset) != nil {}
        }
        parser.skip(3)
        parser.skip(0)
        parser.skip(-1)
        #expect(parser.bodyBytesReceived == 5)
        parser.skip(9)
        #expect(parser.bodyBytesReceived == 9)
        let end = try parser.finish()
        guard case .end(nil) = end else {
            Issue.record("no end: \(String(describing: end))")
            return
        }
        #expect(parser.isIdle == true)
    }

    @Test func `one parser parses several responses`() throws {
        var parser = ResponseParser()
        let bytes = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\nt: u\r\n\r\n".utf8)
        for _ in 0..<3 {
            parser.begin(.other)
            try bytes.withUnsafeBytes { bytes in
                var offset = 0
                var ends = 0
                while let event = try parser.next(bytes, &offset) {
                    if case .end(let trailers) = event {
                        ends += 1
                        #expect(trailers?.first("T") == "u")
                    }
                }
                #expect(ends == 1)
                #expect(offset == bytes.count)
            }
            #expect(parser.mayReuseConnection == true)
            #expect(parser.bodyBytesReceived == 1)
        }
    }
}
