// SPDX-License-Identifier: Apache-2.0

import LoadingTestKit

private let ok = (":status", "200")

extension HTTP3Fault {
    private static func malformed(_ name: String, _ fields: [(String, String)]) -> HTTP3Fault {
        HTTP3Fault(name, .messageError, .headers(fields), .data("hello", ends: false))
    }

    /// Responses that are malformed (RFC 9114, section 4.1.2), for which only the stream ends; the server does not end it.
    static let messages: [HTTP3Fault] = [
        // Section 4.3.2.
        malformed("no :status", [("server", "a")]),
        malformed(":status twice", [ok, ok]),
        malformed(":status after a field", [("server", "a"), ok]),
        malformed(":status in upper case", [(":Status", "200")]),
        malformed(":status without a value", [(":status", "")]),
        malformed(":status of two digits", [(":status", "20")]),
        malformed(":status of four digits", [(":status", "2000")]),
        malformed(":status that is not a number", [(":status", "2oo")]),
        malformed(":status with a reason", [(":status", "200 OK")]),
        malformed("101", [(":status", "101")]),
        // Section 4.3.
        malformed("a pseudo-header field of requests", [ok, (":path", "/")]),
        malformed("an unknown pseudo-header field", [ok, (":version", "3")]),
        // Section 4.2.
        malformed("a name in upper case", [ok, ("Server", "a")]),
        malformed("Connection", [ok, ("connection", "close")]),
        malformed("Keep-Alive", [ok, ("keep-alive", "timeout=5")]),
        malformed("Proxy-Connection", [ok, ("proxy-connection", "keep-alive")]),
        malformed("Transfer-Encoding", [ok, ("transfer-encoding", "chunked")]),
        malformed("Upgrade", [ok, ("upgrade", "h2c")]),
        // Section 4.1.2.
        malformed("a Content-Length that is not a number", [ok, ("content-length", "five")]),
        malformed("a negative Content-Length", [ok, ("content-length", "-5")]),
        malformed("two lengths that differ", [ok, ("content-length", "5"), ("content-length", "6")]),
        .init(
            "a pseudo-header field in trailers", .messageError, .head(), .data("hello", ends: false), .headers([ok])),
        .init(
            "trailers in upper case", .messageError, .head(), .data("hello", ends: false),
            .headers([("X-Trailer", "a")])),
        .init(
            "Connection in trailers", .messageError, .head(), .data("hello", ends: false),
            .headers([("connection", "close")])),
    ]

    /// Responses that are malformed as a whole, for which the library ends the connection.
    static let lengths: [HTTP3Fault] = [
        .init(
            "HEADERS after trailers", .messageError, .head(), .data("hello", ends: false), .headers([("x-trailer", "a")]),
            .headers([("x-trailer", "b")])),
        .init(
            "DATA after trailers", .messageError, .head(), .data("hello", ends: false), .headers([("x-trailer", "a")]),
            .data("more")),
        .init("no fields", .messageError, .frame(.headers, ends: true)),
        .init("more DATA than Content-Length", .messageError, .head(200, [("content-length", "4")]), .data("hello")),
        .init("less DATA than Content-Length", .messageError, .head(200, [("content-length", "6")]), .data("hello")),
        .init("no DATA, but a Content-Length", .messageError, .head(200, [("content-length", "6")], ends: true)),
        .init("only an interim response", .messageError, .head(103, ends: true)),
    ]

    /// Fields that do not appear in the response, which is otherwise unharmed (RFC 9110, section 5.5).
    static let dropped: [(name: String, fields: [(String, String)])] = [
        ("a value with NUL", [("a", "b\0c")]),
        ("a value with CR", [("a", "b\rc")]),
        ("a value with LF", [("a", "b\nset-cookie: c=d")]),
        ("a name with a space", [("a b", "a")]),
        ("a name with a line break", [("a\r\nb", "a")]),
        ("a name with NUL", [("a\0b", "a")]),
        ("a name with DEL", [("a\u{7F}b", "a")]),
        ("a name with a colon", [("a:b", "a")]),
        ("a name beyond ASCII", [("a\u{E9}b", "a")]),
        ("an empty name", [("", "a")]),
        ("a value that begins with a space", [("a", " b")]),
        ("a value that ends with a tab", [("a", "b\t")]),
    ]

    /// Packets that violate RFC 9000.
    static let packets: [HTTP3Fault] = [
        // Section 12.4.
        .init("an unknown frame", [7], .packet([0x3F])),
        .init("a frame cut off", [7], .packet([0x0A, 0x03, 0x45, 0xDC, 0x61])),
        // Section 4.6.
        .init("a stream of the server's requests", [4], .packet([0x0A, 0x01, 0x01, 0x21])),
        // Section 19.3.
        .init("an acknowledgment of packets that were not sent", [0xA], .packet([0x02, 0x80, 0x01, 0, 0, 0, 0, 0])),
        .init("an acknowledgment of packets below 0", [7], .packet([0x02, 0x01, 0x00, 0x00, 0x05])),
        // Section 19.4.
        .init("a reset of a stream that was not begun", [5], .packet([0x04, 0x40, 0xC8, 0x00, 0x00])),
        // Section 19.5.
        .init("STOP_SENDING of the server's own stream", [5], .packet([0x05, 0x03, 0x00])),
        // Section 19.7.
        .init("NEW_TOKEN without a token", [7], .packet([0x07, 0x00])),
        // Section 19.8.
        .init("STREAM of a request that was not begun", [5], .packet([0x0A, 0x40, 0xC8, 0x01, 0x61])),
        .init("STREAM beyond the window", [3], .packet([0x0E, 0x03] + HTTP3Bytes.integer(1 << 40) + [0x01, 0x61])),
        .init("STREAM beyond 2^62", [3, 7], .packet([0x0E, 0x03] + HTTP3Bytes.integer((1 << 62) - 1) + [0x02, 0x61, 0x61])),
        .init(
            "more streams than allowed", [4],
            .packet([0x0A] + HTTP3Bytes.integer(4 * 100_000 + 3) + [0x01, 0x21])),
        // Section 19.10.
        .init("MAX_STREAM_DATA of the server's own stream", [5], .packet([0x11, 0x03, 0x10])),
        // Section 19.11.
        .init("MAX_STREAMS above 2^60", [7], .packet([0x12] + HTTP3Bytes.integer((1 << 60) + 1))),
        // Section 19.15.
        .init("a connection ID without bytes", [7], .packet([0x18, 0x05, 0x00, 0x00] + [UInt8](repeating: 1, count: 16))),
        .init(
            "a connection ID that retires itself", [7],
            .packet([0x18, 0x05, 0x06, 0x08] + [UInt8](repeating: 2, count: 8) + [UInt8](repeating: 1, count: 16))),
        // Section 19.16.
        .init("the end of a connection ID that was not issued", [0xA], .packet([0x19, 0x40, 0xC8])),
    ]
}
