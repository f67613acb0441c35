// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let head = "HTTP/1.1 200 OK\r\n"

/// Malformed HTTP/1.1 responses.
@Suite(.timeLimit(.minutes(1)))
struct HostileResponseTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var effects: [SocketEffect]
        var codes: [URLError.Code]
        var testDescription: String { name }

        init(_ name: String, _ effects: [SocketEffect], _ codes: URLError.Code...) {
            self.name = name
            self.effects = effects
            self.codes = codes
        }
    }

    static let rows: [Row] = [
        Row("close before any byte", [.close], .networkConnectionLost),
        Row("reset after the request", [.reset], .networkConnectionLost),
        Row("end inside the header section", [.write(head + "Content-Le"), .close], .networkConnectionLost),
        Row("end after a whole field line", [.write(head + "Content-Length: 0\r\n"), .close], .networkConnectionLost),
        Row("NUL at the start of a line", [.write(head + "\0X: y\r\n\r\n")], .badServerResponse),
        Row("NUL in a value", [.write(head + "X: a\0b\r\nContent-Length: 0\r\n\r\n")], .badServerResponse),
        Row("short body", [.write(head + "Content-Length: 10\r\n\r\n12345"), .close], .networkConnectionLost),
        Row("reset in the body", [.write(head + "Content-Length: 10\r\n\r\n12345"), .reset], .networkConnectionLost),
        Row("reset in a body that lasts until the close", [.write(head + "\r\n12345"), .reset], .networkConnectionLost),
        Row(
            "chunked without its end", [.write(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), .close],
            .networkConnectionLost),
        Row(
            "chunk size that is not a number", [.write(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n")],
            .cannotParseResponse),
        Row(
            "negative chunk size", [.write(head + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n")],
            .cannotParseResponse),
        Row(
            "chunk size of 72 bits", [.write(head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello\r\n")],
            .cannotParseResponse),
        Row(
            "chunk longer than its size", [.write(head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n")],
            .cannotParseResponse),
        Row(
            "two lengths in two lines", [.write(head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")],
            .badServerResponse),
        Row("two lengths in one line", [.write(head + "Content-Length: 5, 6\r\n\r\nhello!")], .badServerResponse),
        Row("length with a sign", [.write(head + "Content-Length: +5\r\n\r\nhello")], .badServerResponse),
        Row("negative length", [.write(head + "Content-Length: -1\r\n\r\nhello")], .badServerResponse),
        Row("length with a tail", [.write(head + "Content-Length: 5x\r\n\r\nhello")], .badServerResponse),
        Row(
            "length beyond 64 bits", [.write(head + "Content-Length: 99999999999999999999999\r\n\r\nhello")],
            .badServerResponse),
        Row("end in the status line", [.write("HTTP/1.1 20"), .close], .networkConnectionLost),
        Row(
            "another transfer coding after chunked", [.write(head + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n")],
            .badServerResponse),
        Row(
            "unknown transfer coding", [.write(head + "Transfer-Encoding: sparkle\r\n\r\nhello"), .close], .badServerResponse),
        Row(
            "header block without end", [.write(head), .repeat(line, count: .max)],
            .dataLengthExceedsMaximum),
        Row(
            "one field without end", [.write(head + "X: "), .repeat([UInt8](repeating: 97, count: 4096), count: .max)],
            .dataLengthExceedsMaximum),
        Row(
            "more than 5000 lines", [.write(head), .repeat(Array("a: b\r\n".utf8), count: 10_000), .write("\r\n")],
            .dataLengthExceedsMaximum),
        Row(
            "status line without end", [.write("HTTP/1.1 200 "), .repeat([UInt8](repeating: 97, count: 4096), count: .max)],
            .dataLengthExceedsMaximum),
        Row(
            "unsolicited 101",
            [.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")], .badServerResponse),
        Row("HTTP/0.9", [.write("hello world, this is plain text\r\nand more of it\r\n\r\n"), .close], .badServerResponse),
        Row("HTTP/2 preface", [.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), .close], .badServerResponse),
        Row("status of two digits", [.write("HTTP/1.1 20 OK\r\n\r\n"), .close], .badServerResponse),
        Row("field line without a colon", [.write(head + "Content-Length: 0\r\nhello\r\n\r\n")], .badServerResponse),
        Row("bare CR in the status line", [.write("HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n")], .badServerResponse),
        Row("bare CR in a name", [.write(head + "X\rY: z\r\nContent-Length: 0\r\n\r\n")], .badServerResponse),
        Row("bare CR in a value", [.write(head + "X: y\rz\r\nContent-Length: 0\r\n\r\n")], .badServerResponse),
        Row("bare CR before the end", [.write(head + "X: y\r\r\nContent-Length: 0\r\n\r\n")], .badServerResponse),
    ]

    private static let line = Array("X-Filler: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n".utf8)

    @Test(arguments: rows) func `a malformed response fails the load, and the connection is not reused`(row: Row) async throws {
        let isBad = "/bad"
        try await withScenario(reply: { $0.path == isBad ? ScriptedReply(row.effects) : .ok("good") }) {
            (server, session) async throws in
            let error = await expectFailure(row.codes[0], row.codes[row.codes.count - 1], in: row.name) {
                try await session.data(from: server.url(isBad))
            }
            #expect(error?.failingURL == server.url(isBad))
            #expect(try await session.text(server.url("/good")) == "good")
            #expect(server.requests.map(\.path) == [isBad, "/good"])
            #expect(server.connectionCount == 2)
            try await server.waitForClose(0)
            #expect(server.bytesWritten(on: 0) < 16 << 20)
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nName:v\r\nContent-Length:2\r\n\r\nok", "v"),
        ("HTTP/1.1 200 \r\nName: v\r\nContent-Length: 2\r\n\r\nok", "v"),
        ("HTTP/1.1 200\r\nName: v\r\nContent-Length: 2\r\n\r\nok", "v"),
        ("HTTP/1.1 200 OK\nName: v\nContent-Length: 2\n\nok", "v"),
        ("HTTP/1.1 200 OK\r\nName: v\r\n w\r\nContent-Length: 2\r\n\r\nok", "v w"),
        ("HTTP/1.1 200 OK\r\nname: \t v \t\r\nContent-Length: 2\r\n\r\nok", "v"),
        ("HTTP/1.1 200 OK\r\nName:\r\nContent-Length: 2\r\n\r\nok", ""),
    ])
    func `a response with tolerable deviations is accepted`(text: String, value: String) async throws {
        try await withScenario(reply: { _ in .raw(text) }) { (server, session) async throws in
            let (body, response) = try await session.text(URLRequest(server.url()))
            #expect(body == "ok")
            #expect(response.statusCode == 200)
            let found = try #require(response.value(forHTTPHeaderField: "Name"))
            #expect(found.split(separator: " ").joined(separator: " ") == value)
        }
    }

    @Test func `a Latin-1 value is preserved`() async throws {
        let bytes =
            Array("HTTP/1.1 200 Caf".utf8) + [0xE9] + Array("\r\nName: na".utf8) + [0xEF]
            + Array("ve\r\nContent-Length: 2\r\n\r\nok".utf8)
        try await withScenario(reply: { _ in [.write(bytes)] }) { (server, session) async throws in
            let (body, response) = try await session.text(URLRequest(server.url()))
            #expect(body == "ok")
            #expect(response.value(forHTTPHeaderField: "name") == "na\u{EF}ve")
        }
    }

    @Test func `a load delivers the bytes received before the connection was lost, and then fails`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { _ in [.write(head + "Content-Length: 10\r\n\r\n12345"), .gate("read"), .close] }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            try await recorder.wait(for: task) { $0.body.count == 5 }
            server.open("read")
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("12345".utf8))
            #expect((record.error as? URLError)?.code == .networkConnectionLost)
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `chunked framing overrides Content-Length, and the connection is closed afterwards`() async throws {
        let both = head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        try await withScenario(reply: { $0.order == 0 ? .raw(both) : .ok("2") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "hello")
            #expect(try await session.text(server.url()) == "2")
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `an unsolicited second response is never delivered`() async throws {
        try await withScenario(
            reply: {
                $0.order == 0 ? .raw(head + "Content-Length: 3\r\n\r\none" + head + "Content-Length: 4\r\n\r\nevil") : .ok("two")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/1")) == "one")
            #expect(try await session.text(server.url("/2")) == "two")
            #expect(try await session.text(server.url("/3")) == "two")
            try await server.waitForClose(0)
        }
    }

    @Test(arguments: [
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ])
    func `a body that is not permitted is dropped, and its connection is closed`(method: String, text: String) async throws {
        try await withScenario(reply: { $0.order == 0 ? .raw(text) : .ok("next") }) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url(), method: method)).text.isEmpty)
            #expect(try await session.text(server.url()) == "next")
            try await server.waitForClose(0)
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `a GET whose reused connection is closed is retried once`() async throws {
        try await withScenario(reply: { $0.connection == 0 && $0.number == 1 ? [.close] : .ok("\($0.connection)") }) {
            (server, session) async throws in
            #expect(try await session.text(server.url("/1")) == "0")
            #expect(try await session.text(server.url("/2")) == "1")
            #expect(server.requests.map(\.path) == ["/1", "/2", "/2"])
        }
    }

    @Test func `a GET is not retried more than once`() async throws {
        try await withScenario(reply: { $0.order == 0 ? .ok() : [.close] }) { (server, session) async throws in
            _ = try await session.data(from: server.url())
            await expectFailure(.networkConnectionLost) { try await session.data(from: server.url()) }
            #expect(server.requests.count == 3)
        }
    }

    @Test func `a retry uses a new connection, however many idle ones are stale`() async throws {
        let count = 20
        try await withScenario(
            configure: { $0.httpMaximumConnectionsPerHost = count },
            reply: { request in
                if request.order < count { return .ok("old").after(.gate("go")) }
                return request.connection < count ? [.close] : .ok("new")
            }
        ) { (server, session) async throws in
            let texts = Delivered<Bool>()
            for _ in 0..<count { session.dataTask(with: server.url()) { texts($2 == nil) }.resume() }
            try await server.reached("go", times: count)
            server.open("go")
            try await texts.count(reaches: count)
            #expect(try await session.text(server.url()) == "new")
            #expect(server.requests.count == count + 2)
            #expect(server.connectionCount == count + 1)
        }
    }

    @Test func `a POST whose reused connection is closed is not retried`() async throws {
        try await withScenario(reply: { $0.connection == 0 && $0.number == 1 ? [.close] : .ok() }) {
            (server, session) async throws in
            _ = try await session.data(from: server.url("/1"))
            let post = URLRequest(server.url("/2"), method: "POST", body: Data("x".utf8))
            await expectFailure(.networkConnectionLost) { try await session.data(for: post) }
            #expect(server.requests.map(\.path) == ["/1", "/2"])
        }
    }

    @Test func `a response that arrives byte by byte is parsed`() async throws {
        let text =
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + head
            + "X: y\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: v\r\n\r\n"
        try await withScenario(reply: { _ in [.writeSlowly(text)] }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "abc")
            #expect(try await session.text(server.url()) == "abc")
            #expect(server.connectionCount == 1)
        }
    }
}
