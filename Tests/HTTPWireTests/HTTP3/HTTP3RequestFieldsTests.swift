// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `HTTP/3 request heads` {
    private func made(
        _ method: String, _ target: String, _ fields: [(String, String)], scheme: StaticString = "https",
        priority: StaticString? = nil, protocolName: StaticString? = nil
    ) throws -> (fields: HTTP3RequestFields, text: [String]) {
        let head = RequestHead(method: method, target: target, headers: HeaderBlock(fields))
        let made = try HTTP3RequestFields(head, scheme: scheme, priority: priority, protocolName: protocolName)
        func text(_ range: Range<Int>) -> String { String(decoding: made.bytes[range], as: UTF8.self) }
        let list = made.fields.map { "\(text($0.name)): \(text($0.value))\($0.isSecret ? " (secret)" : "")" }
        // RFC 9114, section 4.2.2: the names, the values, and 32 bytes for each field.
        #expect(made.listBytes == made.fields.reduce(0) { $0 + $1.name.count + $1.value.count + 32 })
        #expect(
            made.listBytes
                == HTTP2RequestEncoder.listSize(of: head, scheme: scheme, priority: priority, protocolName: protocolName))
        return (made, list)
    }

    @Test(
        arguments: [
            (
                "pseudo-fields come first, names are in lower case", "GET", "/a?b",
                [("Accept", "*/*"), ("Host", "a.test"), ("X-Thing", "Value")],
                [":method: GET", ":scheme: https", ":path: /a?b", ":authority: a.test", "accept: */*", "x-thing: Value"]
            ),
            ("no Host", "DELETE", "/", [], [":method: DELETE", ":scheme: https", ":path: /"]),
            (
                "OPTIONS of the server", "OPTIONS", "*", [("host", "a")],
                [":method: OPTIONS", ":scheme: https", ":path: *", ":authority: a"]
            ),
            (
                "4.4: CONNECT", "CONNECT", "a.test:443", [("Host", "b.test"), ("User-Agent", "x")],
                [":method: CONNECT", ":authority: a.test:443", "user-agent: x"]
            ),
            (
                "4.2: fields of HTTP/1 connections", "GET", "/",
                [
                    ("Host", "a"), ("Connection", "close, X-Hop, TE,,"), ("x-hop", "1"), ("Keep-Alive", "1"),
                    ("Proxy-Connection", "close"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("TE", "trailers"),
                    ("TE", "gzip"), ("HOST", "b"), ("x-hops", "2"),
                ], [":method: GET", ":scheme: https", ":path: /", ":authority: a", "te: trailers", "x-hops: 2"]
            ),
            (
                "whitespace around values", "GET", "/", [("Host", " a "), ("B", "\t c d \t"), ("E", "  ")],
                [":method: GET", ":scheme: https", ":path: /", ":authority: a", "b: c d", "e: "]
            ),
            (
                "4.2.1: crumbs; short ones are secret", "GET", "/",
                [("Cookie", "a=b; session=0123456789abcdef; c=d"), ("cookie", "e=f")],
                [
                    ":method: GET", ":scheme: https", ":path: /", "cookie: a=b (secret)", "cookie: session=0123456789abcdef",
                    "cookie: c=d (secret)", "cookie: e=f (secret)",
                ]
            ),
            (
                "9204, 7.1: credentials are secret", "POST", "/",
                [("Authorization", "Basic eDp5"), ("PROXY-authorization", "Basic eDp5"), ("Content-Length", "4")],
                [
                    ":method: POST", ":scheme: https", ":path: /", "authorization: Basic eDp5 (secret)",
                    "proxy-authorization: Basic eDp5 (secret)", "content-length: 4",
                ]
            ),
        ] as [(String, String, String, [(String, String)], [String])])
    func `a head becomes fields`(
        what: String, method: String, target: String, fields: [(String, String)], expected: [String]
    ) throws {
        #expect(try made(method, target, fields).text == expected, "\(what)")
    }

    @Test func `a priority is added unless the head has one`() throws {
        #expect(try made("GET", "/", [("Host", "a")], priority: "u=1, i").text.last == "priority: u=1, i")
        let own = try made("GET", "/", [("Priority", "u=7"), ("Host", "a")], priority: "u=1, i").text
        #expect(own.filter { $0.hasPrefix("priority") } == ["priority: u=7"])
    }

    @Test func `a CONNECT with a protocol has the fields of other methods`() throws {
        #expect(
            try made("CONNECT", "/chat", [("Host", "a.test")], protocolName: "websocket").text == [
                ":method: CONNECT", ":protocol: websocket", ":scheme: https", ":path: /chat", ":authority: a.test",
            ])
    }

    @Test func `many crumbs fit`() throws {
        let crumbs = (0..<500).map { "a\($0)=\($0)" }
        let text = try made("GET", "/", [("Cookie", crumbs.joined(separator: "; "))]).text.dropFirst(3)
        #expect(text.map { String($0.dropFirst(8).prefix { $0 != " " }) } == crumbs)
    }

    @Test(
        arguments: [
            ("a method that is no token", "G T", "/", [], InvalidRequest.method), ("no target", "GET", "", [], .target),
            ("an absolute target", "GET", "http://a/", [], .target), ("the asterisk of OPTIONS", "GET", "*", [], .target),
            ("a pseudo-field", "GET", "/", [(":path", "/x")], .fieldName(":path")),
            ("a value", "GET", "/", [("a", "b\r\nc: d")], .fieldValue(name: "a")),
        ] as [(String, String, String, [(String, String)], InvalidRequest)])
    func `a head that must not be sent is refused`(
        what: String, method: String, target: String, fields: [(String, String)], refusal: InvalidRequest
    ) throws {
        #expect(throws: refusal, "\(what)") { try made(method, target, fields) }
    }
}
