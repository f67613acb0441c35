// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

@Suite struct `Request heads` {
    private func written(_ head: RequestHead) throws(InvalidRequest) -> String {
        var bytes: [UInt8] = []
        try RequestSerializer.append(head, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a head is written as in RFC 9112`() throws {
        let head = RequestHead(
            method: "GET",
            target: "/a?b=c",
            headers: HeaderBlock([("Host", "example.com"), ("Accept", "*/*"), ("Empty", ""), ("X", "é\t1")])
        )
        let text = "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nEmpty: \r\nX: é\t1\r\n\r\n"
        #expect(try written(head) == text)
        #expect(RequestSerializer.encodedLength(of: head) == text.utf8.count)
    }

    @Test func `laid-out fields are written like others, even after changes`() throws {
        var block = HeaderBlock([("Host", "example.com"), ("X-Left", "1"), ("Accept", "*/*"), ("Empty", "")])
        block.remove("x-left")
        let ready = try block.laidOut()
        #expect(ready == block)
        #expect(ready.first("Accept") == "*/*" && ready.contains(.host) && !ready.contains(.range))
        let changes: [(String, (inout HeaderBlock) -> Void)] = [
            ("none", { _ in }), ("append", { $0.append("Range", "bytes=0-") }), ("remove", { $0.remove("accept") }),
            ("set", { $0.set("Accept", "text/html") }), ("set another", { $0.set("Cookie", "a=b") }),
            ("append a block", { $0.append(contentsOf: HeaderBlock([("Range", "bytes=0-")])) }),
            ("append itself", { [ready] in $0.append(contentsOf: ready) }),
        ]
        for (name, change) in changes {
            var (plain, laidOut) = (block, ready)
            change(&plain)
            change(&laidOut)
            let (one, other) = (
                RequestHead(method: "GET", target: "/", headers: plain), RequestHead(method: "GET", target: "/", headers: laidOut)
            )
            #expect(try written(one) == written(other), "\(name)")
            #expect(RequestSerializer.encodedLength(of: one) == RequestSerializer.encodedLength(of: other), "\(name)")
        }
    }

    @Test func `invalid fields are not laid out, and fields added later are validated`() throws {
        #expect(throws: InvalidRequest.fieldValue(name: "x")) { try HeaderBlock([("x", "a\nb")]).laidOut() }
        var block = try HeaderBlock([("x", "a")]).laidOut()
        block.append("y", "a\r\nb")
        #expect(throws: InvalidRequest.fieldValue(name: "y")) {
            try written(RequestHead(method: "GET", target: "/", headers: block))
        }
        #expect(try HeaderBlock().laidOut().isEmpty)
    }

    @Test func `a head is appended to existing bytes`() throws {
        var bytes = Array("abc".utf8)
        try RequestSerializer.append(RequestHead(method: "OPTIONS", target: "*", headers: HeaderBlock()), to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "abcOPTIONS * HTTP/1.1\r\n\r\n")
    }

    @Test func `a head is only written into a buffer that is large enough`() throws {
        let head = RequestHead(method: "PUT", target: "/", headers: HeaderBlock([("Host", "a")]))
        let length = RequestSerializer.encodedLength(of: head)
        var room = [UInt8](repeating: 0x23, count: length + 2)
        let count = try room.withUnsafeMutableBytes { try RequestSerializer.encode(head, into: $0) }
        #expect(count == length)
        #expect(String(decoding: room, as: UTF8.self) == "PUT / HTTP/1.1\r\nHost: a\r\n\r\n##")
        var small = [UInt8](repeating: 0x23, count: length - 1)
        #expect(throws: InvalidRequest.bufferTooSmall) {
            try small.withUnsafeMutableBytes { try RequestSerializer.encode(head, into: $0) }
        }
        #expect(small.allSatisfy { $0 == 0x23 })
    }

    @Test(arguments: [
        ("CR LF", "x", "a\r\nEvil: b", InvalidRequest.fieldValue(name: "x")),
        ("CR", "x", "a\rb", .fieldValue(name: "x")),
        ("LF", "x", "a\nb", .fieldValue(name: "x")),
        ("LF at the end", "x", "0123456789\n", .fieldValue(name: "x")),
        ("NUL", "x", "01234567\0", .fieldValue(name: "x")),
        ("CR LF", "x\r\nEvil", "a", .fieldName("x\r\nEvil")),
        ("colon", "x:", "a", .fieldName("x:")),
        ("space", "x y", "a", .fieldName("x y")),
        ("empty", "", "a", .fieldName("")),
        ("not ASCII", "é", "a", .fieldName("é")),
    ])
    func `a field that a peer could read differently is refused`(
        why: String,
        name: String,
        value: String,
        expected: InvalidRequest
    ) {
        let head = RequestHead(method: "GET", target: "/", headers: HeaderBlock([("Host", "a"), (name, value)]))
        #expect(throws: expected, "\(why)") { try written(head) }
        #expect(throws: expected, "\(why)") { try RequestSerializer.validate(head) }
        #expect(!expected.message.isEmpty)
    }

    @Test func `only fields that were not validated before are validated`() throws {
        var judged = HeaderBlock([("Accept", "*/*"), ("Accept-Language", "en")])
        judged.markAsValidated()
        func block(_ change: (inout HeaderBlock) -> Void) -> RequestHead {
            var block = HeaderBlock([("Host", "a")])
            block.append(contentsOf: judged)
            change(&block)
            return RequestHead(method: "GET", target: "/", headers: block)
        }
        let text = "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nAccept-Language: en\r\n\r\n"
        #expect(try written(block { _ in }) == text)
        let bad = "x\r\nEvil: y"
        let changes: [(String, (inout HeaderBlock) -> Void)] = [
            ("appended", { $0.append("Accept", bad) }),
            ("a block appended", { $0.append(contentsOf: HeaderBlock([("Accept", bad)])) }),
            ("set in its place", { $0.set("Accept", bad) }),
            ("set behind", { $0.set("New", bad) }),
            (
                "set where another was taken out",
                {
                    $0.set("Host", "b")
                    $0.remove("Accept-Language")
                    $0.set("Accept", bad)
                }
            ),
            (
                "moved up",
                {
                    $0.append("Accept", bad)
                    $0.remove("Accept-Language")
                    $0.remove("Host")
                }
            ),
            (
                "judged twice over",
                {
                    $0.append("Accept", bad)
                    $0.append(contentsOf: judged)
                }
            ),
        ]
        for (what, change) in changes {
            let isRefused = (try? written(block(change))) == nil
            #expect(isRefused, "\(what)")
        }
    }

    @Test func `a method that is not a token is refused`() {
        for method in ["", "G ET", "GET\r\n", "GET\n", "G\0", "G:", "GÉT", "GET / HTTP/1.1\r\nEvil:"] {
            #expect(throws: InvalidRequest.method, "\(method.debugDescription)") {
                try written(RequestHead(method: method, target: "/", headers: HeaderBlock()))
            }
        }
    }

    @Test func `a target with white space, controls or non-ASCII bytes is refused`() {
        for target in ["", "/ ", "/a b", "/\r\n", "/a\n", "/\0", "/\t", "/\u{7F}", "/é"] {
            #expect(throws: InvalidRequest.target, "\(target.debugDescription)") {
                try written(RequestHead(method: "GET", target: target, headers: HeaderBlock()))
            }
        }
    }

    @Test func `each error names the invalid part`() {
        let all: [InvalidRequest] = [.method, .target, .fieldName("a b"), .fieldValue(name: "c"), .bufferTooSmall]
        #expect(Set(all.map(\.message)).count == all.count)
        #expect(InvalidRequest.fieldName("a\r\nb").message == "the field name \"a\\r\\nb\" is not a token")
        #expect(InvalidRequest.fieldValue(name: "c").message.contains("field c "))
    }
}
