// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `HTTP/2 request heads` {
    /// An encoder, and the peer that decodes its blocks.
    private struct Pair {
        var encoder = HTTP2RequestEncoder()
        var peer = PlainHPACK()
        var lastBlock: [UInt8] = []
        var lastSizes: [Int] = []

        mutating func fields(
            _ head: RequestHead, scheme: StaticString = "https", priority: StaticString? = nil
        ) throws -> [PlainHPACK.Field] {
            var bytes = [UInt8](repeating: 0x23, count: HTTP2RequestEncoder.maximumLength(of: head))
            let count = try bytes.withUnsafeMutableBytes {
                try encoder.encode(head, scheme: scheme, priority: priority, into: $0)
            }
            lastBlock = Array(bytes[..<count])
            let read = try peer.decode(lastBlock)
            lastSizes = read.sizes
            return read.fields
        }
    }

    private func fields(_ method: String, _ target: String, _ fields: [(String, String)]) throws -> [String] {
        var pair = Pair()
        let head = RequestHead(method: method, target: target, headers: HeaderBlock(fields))
        return try pair.fields(head).map { "\($0.name): \($0.value)" }
    }

    @Test func `pseudo-fields come first, and names are lowercased`() throws {
        #expect(
            try fields("GET", "/a?b", [("Accept", "*/*"), ("Host", "a.test"), ("X-Thing", "Value")]) == [
                ":method: GET", ":scheme: https", ":path: /a?b", ":authority: a.test", "accept: */*", "x-thing: Value",
            ])
        #expect(try fields("DELETE", "/", []) == [":method: DELETE", ":scheme: https", ":path: /"])
        #expect(
            try fields("OPTIONS", "*", [("host", "a")]) == [":method: OPTIONS", ":scheme: https", ":path: *", ":authority: a"])
        var pair = Pair()
        let head = RequestHead(method: "POST", target: "/", headers: HeaderBlock())
        #expect(try pair.fields(head, scheme: "http").map(\.description) == [":method: POST", ":scheme: http", ":path: /"])
        #expect(try pair.fields(head, scheme: "ws").map(\.description) == [":method: POST", ":scheme: ws", ":path: /"])
    }

    @Test func `CONNECT has only a method and an authority`() throws {
        #expect(
            try fields("CONNECT", "a.test:443", [("Host", "b.test"), ("User-Agent", "x")]) == [
                ":method: CONNECT", ":authority: a.test:443", "user-agent: x",
            ])
    }

    @Test func `fields of HTTP/1 connections are left out`() throws {
        #expect(
            try fields(
                "GET", "/",
                [
                    ("Host", "a"), ("Connection", "close, X-Hop, TE,,"), ("x-hop", "1"), ("Keep-Alive", "1"),
                    ("Proxy-Connection", "close"),
                    ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk"), ("TE", "trailers"),
                    ("TE", "gzip"), ("te", "trailers, gzip"), ("HOST", "b"), ("x-hops", "2"),
                ]) == [":method: GET", ":scheme: https", ":path: /", ":authority: a", "te: trailers", "x-hops: 2"])
    }

    @Test func `white space around a value is removed`() throws {
        #expect(
            try fields("GET", "/", [("Host", " a "), ("B", "\t c d \t"), ("E", "  ")]) == [
                ":method: GET", ":scheme: https", ":path: /", ":authority: a", "b: c d", "e: ",
            ])
    }

    @Test(arguments: [
        ("a=b; c=d; e=f", ["a=b", "c=d", "e=f"]), ("a=b", ["a=b"]), ("", [""]), ("a=b;c=d", ["a=b;c=d"]), ("a=b;", ["a=b;"]),
        ("a=b; ", ["a=b;"]), ("a=b;  c=d", ["a=b;  c=d"]), ("a=b ; c=d", ["a=b ; c=d"]), ("; a=b", ["; a=b"]),
        ("a=b; ; c=d", ["a=b", "; c=d"]), ("a; b; c", ["a", "b", "c"]),
    ])
    func `a cookie is split into crumbs that join to the same value`(value: String, crumbs: [String]) throws {
        let found = try fields("GET", "/", [("Cookie", value)]).dropFirst(3).map { String($0.dropFirst(8)) }
        #expect(found == crumbs)
        #expect(found.joined(separator: "; ") == String(value.reversed().drop { $0 == " " }.reversed()))
    }

    @Test func `secrets are never indexed, and fields that change with every request are not added to the table`() throws {
        var pair = Pair()
        let headers = HeaderBlock([
            ("Host", "a"), ("Authorization", "Basic eDp5"), ("Proxy-Authorization", "Basic eDp5"), ("Cookie", "id=short"),
            ("Content-Length", "12"), ("Range", "bytes=0-1"), ("If-None-Match", "\"x\""), ("If-Modified-Since", "x"),
            ("If-Range", "x"),
            ("If-Match", "x"), ("If-Unmodified-Since", "x"), ("Cookie", "id=0123456789abcdefg"), ("Accept", "*/*"),
        ])
        let head = RequestHead(method: "POST", target: "/path", headers: headers)
        let forms = try pair.fields(head).map(\.form)
        #expect(
            forms == [
                .indexed, .indexed, .notAdded, .added, .neverAdded, .neverAdded, .neverAdded, .notAdded, .notAdded, .notAdded,
                .notAdded,
                .notAdded, .notAdded, .notAdded, .added, .added,
            ])
        #expect(pair.peer.table.map(\.name) == ["accept", "cookie", ":authority"])
        #expect(try pair.fields(head).filter { $0.form == .indexed }.count == 5)
        #expect(pair.peer.table.count == 3)
    }

    @Test func `a repeated head takes one byte per field`() throws {
        var pair = Pair()
        let headers = HeaderBlock([
            ("Host", "a.test"), ("User-Agent", "App/1"), ("ACCEPT-ENCODING", "gzip, deflate"), ("X-A", "b"),
        ])
        let head = RequestHead(method: "GET", target: "/", headers: headers)
        let first = try pair.fields(head)
        #expect(try pair.fields(head) == first)
        #expect(pair.lastBlock.count == 7)
        var other = head
        other.headers.set("x-a", "c")
        #expect(try pair.fields(other).last == PlainHPACK.Field("x-a", "c"))
        #expect(pair.lastBlock.count == 6 + 3)
    }

    @Test func `a priority is added unless the head has one`() throws {
        var pair = Pair()
        var head = RequestHead(method: "GET", target: "/", headers: HeaderBlock([("Host", "a")]))
        #expect(try pair.fields(head, priority: "u=1, i").last == PlainHPACK.Field("priority", "u=1, i"))
        head.headers.append("Priority", "u=7")
        #expect(
            try pair.fields(head, priority: "u=1, i").filter { $0.name == "priority" } == [PlainHPACK.Field("priority", "u=7")])
    }

    @Test func `the table stays within the peer's limit, and a change is announced first`() throws {
        var pair = Pair()
        let head = RequestHead(method: "GET", target: "/", headers: HeaderBlock([("Host", "a.test"), ("X-A", "b")]))
        _ = try pair.fields(head)
        #expect(pair.lastSizes == [])
        for (limits, sizes) in [
            ([65_536], []), ([4_096], []), ([100], [100]), ([100], []), ([0, 4_096], [0, 4_096]), ([200, 50, 60], [50, 60]),
            ([0], [0]),
            ([40], [40]), ([-1], [0]), ([Int.max], [4_096]),
        ] as [([Int], [Int])] {
            for limit in limits { pair.encoder.setTableLimit(limit) }
            #expect(try pair.fields(head).map(\.name) == [":method", ":scheme", ":path", ":authority", "x-a"], "\(limits)")
            #expect(pair.lastSizes == sizes, "\(limits)")
        }
    }

    @Test(
        arguments: [
            ("a method that is no token", "G T", "/", [], InvalidRequest.method),
            ("a target with white space", "GET", "/ x", [], .target), ("no target", "GET", "", [], .target),
            ("an absolute target", "GET", "http://a/", [], .target), ("the asterisk of OPTIONS", "GET", "*", [], .target),
            ("a name", "GET", "/", [("a b", "c")], .fieldName("a b")),
            ("a pseudo-field", "GET", "/", [(":path", "/x")], .fieldName(":path")),
            ("a value", "GET", "/", [("a", "b\r\nc: d")], .fieldValue(name: "a")),
            ("a value that would be left out", "GET", "/", [("Connection", "b\0")], .fieldValue(name: "Connection")),
        ] as [(String, String, String, [(String, String)], InvalidRequest)])
    func `a head that cannot be written leaves the encoder unchanged`(
        what: String, method: String, target: String, fields: [(String, String)], refusal: InvalidRequest
    ) throws {
        var pair = Pair()
        let good = RequestHead(method: "GET", target: "/", headers: HeaderBlock([("Host", "a"), ("X", "y")]))
        _ = try pair.fields(good)
        pair.encoder.setTableLimit(1_000)
        let bad = RequestHead(method: method, target: target, headers: HeaderBlock([("New", "field")] + fields))
        #expect(throws: refusal, "\(what)") { try pair.fields(bad) }
        #expect(try pair.fields(good).count == 5)
        #expect(pair.lastSizes == [1_000])
        #expect(pair.lastBlock.count == 3 + 5)
    }

    @Test func `a buffer that is too small is refused`() {
        let head = RequestHead(method: "GET", target: "/", headers: HeaderBlock([("Host", "a")]))
        var bytes = [UInt8](repeating: 0x23, count: HTTP2RequestEncoder.maximumLength(of: head) - 1)
        var encoder = HTTP2RequestEncoder()
        #expect(throws: InvalidRequest.bufferTooSmall) {
            try bytes.withUnsafeMutableBytes { try encoder.encode(head, scheme: "https", priority: nil, into: $0) }
        }
        #expect(bytes.allSatisfy { $0 == 0x23 })
    }

    /// RFC 9113, section 6.5.2: the size is the sum of the names and values, plus 32 bytes per field.
    @Test(
        arguments: [
            ("GET", "/", [("Host", "a.test"), ("Accept", "*/*")], nil),
            ("POST", "/path?query", [("Host", " a.test "), ("Content-Length", "4"), ("Authorization", "Basic eDp5")], "u=1"),
            ("GET", "/", [("Host", "a"), ("Host", "b"), ("Priority", "u=2"), ("X", "  spaces  ")], "u=1"),
            ("GET", "/", [("Cookie", "a=b; c=d;e=f ; g; \(String(repeating: "h", count: 40))"), ("cookie", "i=j")], nil),
            ("GET", "/", [("Connection", "keep-alive, x-gone"), ("X-Gone", "?"), ("Upgrade", "h2c"), ("X", "y")], nil),
            ("GET", "/", [("TE", "trailers"), ("TE", "gzip"), ("Connection", "te")], nil),
            ("CONNECT", "a.test:443", [("Host", "b.test"), ("User-Agent", "x")], nil), ("OPTIONS", "*", [], nil),
        ] as [(String, String, [(String, String)], String?)])
    func `the list size of a head is the size of the sent fields`(
        method: String, target: String, fields: [(String, String)], priority: String?
    ) throws {
        let head = RequestHead(method: method, target: target, headers: HeaderBlock(fields))
        let priority: StaticString? = priority == nil ? nil : "u=1"
        var pair = Pair()
        let sent = try pair.fields(head, priority: priority)
        let size = sent.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
        #expect(HTTP2RequestEncoder.listSize(of: head, scheme: "https", priority: priority) == size)
    }
}
