// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How a request is sent on a stream, and how the app receives the response (RFC 9113, section 8).
@Suite(.timeLimit(.minutes(1)))
struct HTTP2ExchangeTests {
    @Test(arguments: HTTP2Start.allCases) func `a request carries the parts of its URL in pseudo-header fields`(
        way: HTTP2Start
    ) async throws {
        try await withHTTP2Scenario(way, reply: { .ok($0.path) }) { (server, session) async throws in
            #expect(try await session.text(server.url("/a/b%20c?d=e&f")) == "/a/b%20c?d=e&f")
            #expect(try await session.text(server.url("")) == "/")
            let request = server.requests[0]
            let pseudo = request.fields.prefix { $0.name.hasPrefix(":") }
            #expect(Set(pseudo.map(\.name)) == [":method", ":scheme", ":authority", ":path"])
            #expect(request.method == "GET" && request.authority == "localhost:\(server.port)")
            #expect(request.header(":scheme") == (way == .secure ? "https" : "http"))
            #expect(request.header("host") == nil)
        }
    }

    @Test func `field names are sent in lower case, and connection-specific fields are not sent`() async throws {
        try await withHTTP2Scenario(reply: { _ in .ok() }) { (server, session) async throws in
            let headers = [
                "X-One": "1", "Connection": "close, X-Two", "Keep-Alive": "timeout=5", "Proxy-Connection": "keep-alive",
                "Transfer-Encoding": "chunked", "Upgrade": "websocket", "TE": "gzip",
            ]
            _ = try await session.text(URLRequest(server.url(), headers: headers))
            let request = server.requests[0]
            #expect(request.values(of: "x-one") == ["1"])
            #expect(request.fields.allSatisfy { $0.name == $0.name.lowercased() })
            for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
                #expect(request.header(name) == nil, "\(name)")
            }
            #expect([nil, "trailers"].contains(request.header("te")))
        }
    }

    /// RFC 9113, section 8.3.1: `host` must not differ from `:authority`.
    @Test func `a Host field set by the app becomes the authority`() async throws {
        try await withHTTP2Scenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.text(URLRequest(server.url(), headers: ["Host": "other.example"]))
            #expect(server.requests[0].authority == "other.example")
            #expect([nil, "other.example"].contains(server.requests[0].header("host")))
        }
    }

    /// RFC 9113, section 8.2.3: cookies may be sent in several fields, which the server joins with "; ".
    @Test func `split cookie fields form one cookie header, and cookies of responses are stored`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                request.path == "/set"
                    ? .ok("", [("set-cookie", "a=1"), ("set-cookie", "b=two; Path=/"), ("set-cookie", "c=3")]) : .ok()
            }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/set"))
            _ = try await session.text(server.url("/get"))
            #expect(server.requests[0].header("cookie") == nil)
            let pairs = server.requests[1].values(of: "cookie").joined(separator: "; ").components(separatedBy: "; ")
            #expect(Set(pairs) == ["a=1", "b=two", "c=3"] && pairs.count == 3)
        }
    }

    @Test func `a response has its fields, without pseudo-header fields`() async throws {
        let fields = [
            ("x-twice", "a"), ("x-twice", "b"), ("x-empty", ""), ("x-long", String(repeating: "v", count: 20_000)),
            ("content-type", "text/plain; charset=utf-8"), ("x-latin", "caf\u{E9}"),
        ]
        try await withHTTP2Scenario(reply: { _ in .status(299, fields, body: Array("body".utf8)) }) {
            (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "body" && response.statusCode == 299)
            #expect(response.value(forHTTPHeaderField: "X-Twice") == "a, b")
            #expect(response.value(forHTTPHeaderField: "X-Empty")?.isEmpty == true)
            #expect(response.value(forHTTPHeaderField: "x-long")?.count == 20_000)
            #expect(response.value(forHTTPHeaderField: "x-latin")?.hasPrefix("caf") == true)
            #expect(response.mimeType == "text/plain" && response.expectedContentLength == -1)
            #expect(!response.allHeaderFields.keys.contains { "\($0)".hasPrefix(":") })
        }
    }

    @Test func `a response is the same, whatever frames carry it`() async throws {
        let fields = [(":status", "200"), ("x-field", "value of it"), ("content-length", "5")]
        let literals = HPACKBytes.literals(fields)
        let rows: [(String, [HTTP2Step])] = [
            ("a field block in pieces", [.headers(fields, size: 8), .data("hello")]),
            ("no Huffman coding", [.headers(fields, huffman: false), .data("hello")]),
            ("an empty CONTINUATION", [.frame(.headers, literals), .frame(.continuation, flags: .endHeaders), .data("hello")]),
            (
                "padded HEADERS with priority",
                [
                    .frame(.headers, flags: [.endHeaders, .padded, .priority], [3, 0x80, 0, 0, 0, 15] + literals + [0, 0, 0]),
                    .data("hello"),
                ]
            ),
            (
                "padded DATA",
                [.headers(fields), .frame(.data, flags: [.padded, .endStream], [4] + Array("hello".utf8) + [0, 0, 0, 0])]
            ),
            (
                "DATA with only padding",
                [.headers(fields), .frame(.data, flags: .padded, [2, 0, 0]), .data("hello")]
            ),
            (
                "DATA byte by byte",
                [.headers(fields)] + "hello".utf8.map { .frame(.data, [$0]) } + [.frame(.data, flags: .endStream)]
            ),
            ("END_STREAM in its own frame", [.headers(fields), .data("hello", ends: false), .data("")]),
            ("trailers", [.headers(fields), .data("hello", ends: false), .headers([("x-sum", "1")], ends: true)]),
            (
                "trailers in pieces",
                [
                    .headers(fields), .data("hello", ends: false),
                    .headers([("x-sum", "1"), ("x-other", "2")], ends: true, size: 2),
                ]
            ),
            (
                "undefined flags",
                [.frame(.headers, flags: [.endHeaders, .init(rawValue: 0xD2)], literals), .data("hello")]
            ),
            (
                "a frame of an unknown type",
                [.frame(0xFA, [9]), .headers(fields), .frame(0xFB, flags: .endStream, [9, 9]), .data("hello")]
            ),
            (
                "ALTSVC, ORIGIN and PRIORITY_UPDATE",
                [
                    .frame(10, [0, 0]), .frame(12, stream: 0), .frame(16, stream: 0, [0, 0, 0, 1]), .headers(fields),
                    .data("hello"),
                ]
            ),
            (
                "PRIORITY",
                [.frame(.priority, [0, 0, 0, 0, 1]), .headers(fields), .frame(.priority, [0, 0, 0, 0, 1]), .data("hello")]
            ),
            ("WINDOW_UPDATE", [.windowUpdate(1), .headers(fields), .windowUpdate(1), .data("hello"), .windowUpdate(1)]),
            (
                "unknown settings",
                [.frame(.settings, stream: 0, [0xF0, 0, 0, 0, 0, 1]), .settings(), .headers(fields), .data("hello")]
            ),
        ]
        try await withHTTP2Scenario(
            reply: { request in [.awaitRequestEnd] + (Int(request.path.dropFirst()).map { rows[$0].1 } ?? []) }
        ) { (server, session) async throws in
            for (number, row) in rows.enumerated() {
                do {
                    let (text, response) = try await session.text(URLRequest(server.url("/\(number)")))
                    #expect(text == "hello" && response.value(forHTTPHeaderField: "X-Field") == "value of it", "\(row.0)")
                } catch {
                    Issue.record("\(row.0): \(error)")
                }
            }
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 7541, sections 2.3.2 and 4: all responses of a connection share one dynamic table, in order.
    @Test func `the dynamic table is kept between responses`() async throws {
        let field = { (name: String) in HPACKBytes.index(8) + HPACKBytes.indexed([("x-field", name)]) }
        let none = HPACKBytes.tableSize(0) + HPACKBytes.tableSize(4096)
        let rows: [([UInt8], String)] = [
            (field("one"), "one"), (field("two"), "two"),
            (HPACKBytes.index(8) + HPACKBytes.index(62), "two"), (HPACKBytes.index(8) + HPACKBytes.index(63), "one"),
            // A new value, with the name of an existing entry.
            (HPACKBytes.index(8) + [0x7E] + HPACKBytes.string("three"), "three"),
            (HPACKBytes.index(8) + HPACKBytes.index(62), "three"),
            (none + field("four"), "four"), (HPACKBytes.index(8) + HPACKBytes.index(62), "four"),
            // Huffman-coded (appendix B): "a", then the padding.
            (HPACKBytes.index(8) + [0x00] + HPACKBytes.string("x-field") + HPACKBytes.huffman([0x1F]), "a"),
            // A field that is never indexed (section 6.2.3); then an entry larger than the table, which empties the table (section 4.4).
            (HPACKBytes.index(8) + [0x10] + HPACKBytes.string("x-field") + HPACKBytes.string("five"), "five"),
            (field(String(repeating: "6", count: 5000)), String(repeating: "6", count: 5000)),
        ]
        try await withHTTP2Scenario(
            reply: { request in [.awaitRequestEnd, .block(Int(request.path.dropFirst()).map { rows[$0].0 } ?? [], ends: true)] }
        ) { (server, session) async throws in
            for (number, row) in rows.enumerated() {
                let response = try await session.text(URLRequest(server.url("/\(number)"))).response
                #expect(response.value(forHTTPHeaderField: "X-Field") == row.1, "row \(number)")
            }
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9113, sections 5.1.1 and 4.1: the highest bit of a stream identifier is ignored.
    @Test func `the reserved bit is ignored`() async throws {
        let head = HPACKBytes.index(8)
        try await withHTTP2Scenario(
            reply: { request in
                let stream = HTTP2Step.bytes(of: UInt32(request.stream) | 0x8000_0000)
                return [.awaitRequestEnd, .write([0, 0, UInt8(head.count), 1, 5] + stream + head)]
            }
        ) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url())).response.statusCode == 200)
        }
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
    func `a response that must not have a body has none`(method: String, status: Int) async throws {
        let length = status == 204 ? [] : [("content-length", "5")]
        try await withHTTP2Scenario(
            reply: { request in
                switch request.path {
                case "/head": [.awaitRequestEnd, .head(status, length, ends: true)]
                case "/empty": [.awaitRequestEnd, .head(status, length), .data("")]
                case "/body": [.awaitRequestEnd, .head(status, length), .data("hello")]
                default: .ok("next")
                }
            }
        ) { (server, session) async throws in
            for path in ["/head", "/empty"] {
                let (text, response) = try await session.text(URLRequest(server.url(path), method: method))
                #expect(text.isEmpty && response.statusCode == status)
                #expect(response.value(forHTTPHeaderField: "Content-Length") == length.first?.1)
            }
            // The client either ignores the forbidden content, or rejects the response as malformed.
            do {
                #expect(try await session.text(URLRequest(server.url("/body"), method: method)).text.isEmpty)
            } catch let error as URLError {
                #expect(malformedResponse.contains(error.code))
            }
            #expect(try await session.text(server.url("/next")) == "next")
        }
    }

    @Test func `interim responses are reported to the delegate`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { _ in [.awaitRequestEnd, .head(103, [("link", "</a>; rel=preload")]), .head(102)] + .ok("done") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.informational.map(\.statusCode) == [103, 102])
            #expect(record.informational.first?.value(forHTTPHeaderField: "Link") == "</a>; rel=preload")
            #expect(record.body == Data("done".utf8))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test(arguments: HTTP2Start.allCases) func `metrics report h2 and the reuse of a connection`(
        way: HTTP2Start
    ) async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(way, delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
            var transactions: [URLSessionTaskTransactionMetrics] = []
            for path in ["/first", "/second"] {
                let task = session.dataTask(with: server.url(path))
                task.resume()
                transactions.append(try #require(try await recorder.completion(of: task).metrics?.transactionMetrics.first))
            }
            let (first, second) = (transactions[0], transactions[1])
            #expect(transactions.map(\.networkProtocolName) == ["h2", "h2"])
            #expect(!first.isReusedConnection && second.isReusedConnection)
            #expect(first.connectStartDate != nil && second.connectStartDate == nil)
            #expect((first.secureConnectionStartDate != nil) == (way == .secure))
            #expect(first.remotePort == server.port && second.localPort == first.localPort)
            #expect(first.countOfRequestHeaderBytesSent > 0 && first.countOfResponseHeaderBytesReceived > 0)
            #expect(first.countOfResponseBodyBytesReceived == 6)
        }
    }
}
