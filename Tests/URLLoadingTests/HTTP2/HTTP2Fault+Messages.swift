// SPDX-License-Identifier: Apache-2.0

import LoadingTestKit

private let ok = (":status", "200")

extension HTTP2Fault {
    private static func malformed(
        _ name: String, _ fields: [(String, String)], peer: Set<HTTP2Frame.ErrorCode>? = nil
    ) -> HTTP2Fault {
        HTTP2Fault(name, .stream, [.protocolError], peer: peer, .block(HPACKBytes.literals(fields)), .data("hello"))
    }

    /// Responses that are malformed (RFC 9113, section 8.1.1).
    static let messages: [HTTP2Fault] = [
        // Section 8.3.2.
        malformed("no :status", [("server", "a")]),
        malformed("no fields", []),
        malformed(":status twice", [ok, ok]),
        malformed(":status after a field", [("server", "a"), ok]),
        malformed(":status in upper case", [(":Status", "200")]),
        malformed(":status without a value", [(":status", "")]),
        malformed(":status of two digits", [(":status", "20")]),
        malformed(":status of four digits", [(":status", "2000")]),
        malformed(":status that is not a number", [(":status", "2oo")]),
        malformed(":status with a reason", [(":status", "200 OK")]),
        malformed("101", [(":status", "101")]),
        // Section 8.3.
        malformed("a pseudo-header field of requests", [ok, (":path", "/")]),
        malformed("an unknown pseudo-header field", [ok, (":version", "2")]),
        malformed("a name that is a colon", [ok, (":", "a")]),
        // Section 8.2.
        malformed("a name in upper case", [ok, ("Server", "a")]),
        malformed("an empty name", [ok, ("", "a")]),
        malformed("a name with a space", [ok, ("a b", "a")]),
        malformed("a name with a colon", [ok, ("a:b", "a")]),
        malformed("a name with NUL", [ok, ("a\0b", "a")]),
        malformed("a name with a line break", [ok, ("a\r\nb", "a")]),
        malformed("a name with DEL", [ok, ("a\u{7F}b", "a")]),
        malformed("a name beyond ASCII", [ok, ("a\u{E9}b", "a")]),
        malformed("a value with NUL", [ok, ("a", "b\0c")]),
        malformed("a value with CR", [ok, ("a", "b\rc")]),
        malformed("a value with LF", [ok, ("a", "b\nset-cookie: c=d")]),
        malformed("a value that begins with a space", [ok, ("a", " b")], peer: []),
        malformed("a value that ends with a tab", [ok, ("a", "b\t")], peer: []),
        // Section 8.2.2.
        malformed("Connection", [ok, ("connection", "close")]),
        malformed("Keep-Alive", [ok, ("keep-alive", "timeout=5")]),
        malformed("Proxy-Connection", [ok, ("proxy-connection", "keep-alive")]),
        malformed("Transfer-Encoding", [ok, ("transfer-encoding", "chunked")]),
        malformed("Upgrade", [ok, ("upgrade", "h2c")]),
        // Section 8.1.1.
        malformed("a Content-Length that is not a number", [ok, ("content-length", "five")]),
        malformed("a negative Content-Length", [ok, ("content-length", "-5")]),
        malformed("two lengths that differ", [ok, ("content-length", "5"), ("content-length", "6")]),
        malformed("more DATA than Content-Length", [ok, ("content-length", "4")]),
        malformed("less DATA than Content-Length", [ok, ("content-length", "6")]),
        .init("no DATA, but a Content-Length", .stream, [.protocolError], .head(200, [("content-length", "6")], ends: true)),
        .init("an interim response that ends the stream", .stream, [.protocolError], .head(103, ends: true)),
        .init("DATA after only an interim response", .stream, [.protocolError], .head(103), .data("hello")),
        .init(
            "a pseudo-header field in trailers", .stream, [.protocolError], .head(), .data("hello", ends: false),
            .headers([ok], ends: true)),
        .init(
            "trailers in upper case", .stream, [.protocolError], .head(), .data("hello", ends: false),
            .block(HPACKBytes.literals([("X-Trailer", "a")]), ends: true)),
        .init(
            "Connection in trailers", .stream, [.protocolError], .head(), .data("hello", ends: false),
            .headers([("connection", "close")], ends: true)),
    ]

    private static func uncompressed(_ name: String, _ block: [UInt8]) -> HTTP2Fault {
        HTTP2Fault(name, .connection, [.compressionError], .block(block, ends: true))
    }

    /// A `:status` field whose value is Huffman-coded in `digits`.
    private static func status(_ digits: [UInt8]) -> [UInt8] { [0x08] + HPACKBytes.huffman(digits) }

    /// Field blocks that cannot be decoded (RFC 7541), which is a connection error (RFC 9113, section 4.3).
    static let compression: [HTTP2Fault] = [
        // RFC 7541, section 2.3.3.
        uncompressed("index 0", [0x80]),
        uncompressed("an index beyond the static table", HPACKBytes.index(62)),
        uncompressed("an index far beyond both tables", HPACKBytes.index(1 << 20)),
        uncompressed("the name at an index beyond both tables", [0x7F, 0x80, 0x01, 0x01, 0x61]),
        // RFC 7541, sections 4.2 and 6.3.
        uncompressed("a table larger than allowed", HPACKBytes.tableSize(1 << 24) + HPACKBytes.index(8)),
        uncompressed("a table size after a field", HPACKBytes.index(8) + HPACKBytes.tableSize(0)),
        uncompressed(
            "an entry evicted from the table",
            HPACKBytes.indexed([ok, ("large", String(repeating: "a", count: 4040))]) + HPACKBytes.index(63)),
        // RFC 7541, section 5.1.
        uncompressed("an integer cut off", [0xFF, 0x80]),
        uncompressed("an integer without end", [0xFF] + [UInt8](repeating: 0x80, count: 20) + [0x01]),
        uncompressed("an integer above 2^64", [0xFF] + [UInt8](repeating: 0xFF, count: 12) + [0x01]),
        // RFC 7541, section 5.2.
        uncompressed("a string cut off", [0x00] + HPACKBytes.string("server", length: 7)),
        uncompressed("a string longer than the field block", [0x00] + HPACKBytes.integer(1 << 40, prefix: 7, first: 0)),
        uncompressed("a name without a value", [0x00] + HPACKBytes.string("server")),
        uncompressed("Huffman padding of more than seven bits", status([0x10, 0x01, 0xFF])),
        uncompressed("Huffman padding of zeros", status([0x10, 0x00])),
        uncompressed("EOS in a Huffman string", status([0xFF, 0xFF, 0xFF, 0xFF])),
    ]
}
