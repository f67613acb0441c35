// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Responses that fail the WebSocket handshake.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketRefusalTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        /// The head of the response; `ACCEPT` stands for the correct value of Sec-WebSocket-Accept.
        var head: String
        var testDescription: String { name }

        init(_ name: String, _ fields: String, status: String = "HTTP/1.1 101 Switching Protocols") {
            self.name = name
            head = "\(status)\r\n\(fields)\r\n"
        }
    }

    private static let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    private static let accept = "Sec-WebSocket-Accept: ACCEPT\r\n"

    /// RFC 6455, section 4.1: the client's checks, in order.
    static let rows = [
        Row("no Accept", upgrade),
        Row("an empty Accept", upgrade + "Sec-WebSocket-Accept:\r\n"),
        Row("another Accept", upgrade + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
        Row("the key for Accept", upgrade + "Sec-WebSocket-Accept: KEY\r\n"),
        Row("Accept in lower case", upgrade + "Sec-WebSocket-Accept: LOWER\r\n"),
        Row("Accept with a tail", upgrade + "Sec-WebSocket-Accept: ACCEPTx\r\n"),
        Row("Accept twice", upgrade + accept + accept),
        Row("Accept twice in one line", upgrade + "Sec-WebSocket-Accept: ACCEPT, ACCEPT\r\n"),
        Row("Accept, then another", upgrade + accept + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
        Row("no Upgrade", "Connection: Upgrade\r\n" + accept),
        Row("an empty Upgrade", "Upgrade:\r\nConnection: Upgrade\r\n" + accept),
        Row("another Upgrade", "Upgrade: h2c\r\nConnection: Upgrade\r\n" + accept),
        Row("Upgrade with a version", "Upgrade: websocket/13\r\nConnection: Upgrade\r\n" + accept),
        Row("two protocols in Upgrade", "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n" + accept),
        Row("no Connection", "Upgrade: websocket\r\n" + accept),
        Row("another Connection", "Upgrade: websocket\r\nConnection: keep-alive\r\n" + accept),
        Row("Connection with more than a token", "Upgrade: websocket\r\nConnection: Upgraded\r\n" + accept),
        Row("an extension that was not offered", upgrade + accept + "Sec-WebSocket-Extensions: permessage-deflate\r\n"),
        Row("an extension that is none", upgrade + accept + "Sec-WebSocket-Extensions: x-foo\r\n"),
        Row("a subprotocol that was not offered", upgrade + accept + "Sec-WebSocket-Protocol: soap\r\n"),
        Row("a subprotocol in another case", upgrade + accept + "Sec-WebSocket-Protocol: CHAT\r\n"),
        Row("two subprotocols", upgrade + accept + "Sec-WebSocket-Protocol: chat, superchat\r\n"),
        Row(
            "two fields of subprotocols",
            upgrade + accept + "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: superchat\r\n"),
        Row("an empty subprotocol", upgrade + accept + "Sec-WebSocket-Protocol:\r\n"),
        Row("HTTP/1.0", upgrade + accept, status: "HTTP/1.0 101 Switching Protocols"),
        Row("200", upgrade + accept + "Content-Length: 0\r\n", status: "HTTP/1.1 200 OK"),
        Row("100 and nothing else", upgrade + accept + "\r\n", status: "HTTP/1.1 100 Continue"),
        Row("1010", upgrade + accept, status: "HTTP/1.1 1010 Switching"),
        Row("no HTTP", "", status: "\u{1}\u{2}\u{3}"),
    ]

    @Test(arguments: rows) func `an invalid response fails the handshake`(row: Row) async throws {
        let recorder = WebSocketRecorder()
        let rest = Delivered<Int>()
        try await withWebSocket(delegate: recorder) { connection in
            let text = row.head.replacingOccurrences(of: "ACCEPT", with: connection.acceptValue)
                .replacingOccurrences(of: "KEY", with: connection.field("Sec-WebSocket-Key") ?? "")
                .replacingOccurrences(of: "LOWER", with: connection.acceptValue.lowercased())
            try connection.write(
                Array(text.utf8) + (row.name == "100 and nothing else" ? [] : WebSocketPeer.frame(1, [104, 105])))
            if row.name != "100 and nothing else" { rest(try connection.drain()) }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url(), protocols: ["chat", "superchat"])
            let sent = Delivered<URLError.Code?>()
            task.send(.string("early")) { sent(($0 as? URLError)?.code) }
            task.resume()
            let record = try await recorder.completion(of: task)
            if row.name == "100 and nothing else" {
                #expect(record.code == .networkConnectionLost || record.code == .badServerResponse)
            } else {
                #expect(record.code == .badServerResponse, "\(String(describing: record.error))")
                // Nothing was sent to a server that did not accept.
                #expect(try await rest.value == 0)
            }
            #expect(record.letters == "cME" && record.closings.isEmpty)
            #expect(try await sent.value == record.code)
            await #expect(throws: (any Error).self) { _ = try await task.receive() }
        }
    }

    @Test(arguments: [200, 201, 204, 300, 304, 400, 401, 403, 404, 407, 426, 429, 500, 503])
    func `another status fails with badServerResponse, and the task has the response`(status: Int) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { _ in
                [204, 304].contains(status)
                    ? .raw(ScriptedReply.head(status, [("X-Why", "because")]))
                    : .status(status, [("X-Why", "because"), ("Sec-WebSocket-Version", "13")], body: "the reason")
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .badServerResponse && record.letters == "cME")
            #expect((record.error as? URLError)?.failingURL == server.socketURL("/a"))
            let response = try #require(task.response as? HTTPURLResponse)
            #expect(response.statusCode == status && response.value(forHTTPHeaderField: "X-Why") == "because")
            #expect(server.requests.count == 1, "no retry")
            #expect(task.closeCode == .invalid || task.closeCode == .abnormalClosure)
        }
    }

    @Test func `a handshake that only the cache may answer fails`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            let task = session.webSocketTask(
                with: URLRequest(server.socketURL(), headers: ["Cache-Control": "only-if-cached"]))
            task.resume()
            #expect(try await recorder.completion(of: task).code == .badServerResponse)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 504 && server.requests.isEmpty)
        }
    }

    @Test func `the task does not wait for the body of a refusal`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { request in
                request.path == "/stalls"
                    ? [.write(ScriptedReply.head(403, [("Content-Length", "100")]) + "begin"), .stall]
                    : [.write(ScriptedReply.head(403)), .repeat([UInt8](repeating: 97, count: 65_536), count: .max)]
            }
        ) { (server, session) async throws in
            for path in ["/stalls", "/endless"] {
                let task = session.webSocketTask(with: server.socketURL(path))
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .badServerResponse, "\(path): \(String(describing: record.error))")
                #expect((task.response as? HTTPURLResponse)?.statusCode == 403)
            }
            try await server.waitForAllClosed()
        }
    }

    @Test func `an endless head is limited`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder, reply: { _ in [.write("HTTP/1.1 101 Switching\r\n"), .endlessly("X-Field: more\r\n")] }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .dataLengthExceedsMaximum || record.code == .badServerResponse)
            try await server.waitForClose(0)
        }
    }

    @Test func `an unreachable server and an unknown host name fail the task`() async throws {
        let recorder = WebSocketRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let port = try RefusingPort()
            for (text, codes) in [
                ("ws://127.0.0.1:\(port.number)/", [URLError.Code.cannotConnectToHost]),
                ("wss://127.0.0.1:\(port.number)/", [.cannotConnectToHost]),
                ("wss://name.invalid/", [.cannotFindHost, .dnsLookupFailed]),
            ] {
                let task = session.webSocketTask(with: try #require(URL(string: text)))
                let sent = Delivered<URLError.Code?>()
                task.send(.string("never")) { sent(($0 as? URLError)?.code) }
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.letters == "cME" && codes.contains { $0 == record.code }, "\(text)")
                #expect(try await sent.value == record.code)
            }
        }
    }

    @Test func `a handshake on a reused connection that closes is retried once`() async throws {
        // GET is idempotent, and the connection was not a WebSocket yet.
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { request in
                if request.path == "/plain" { return .ok("plain") }
                return request.number > 0 ? [.close] : .greeting(request).then(.stall)
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/plain")) == "plain")
            let task = session.webSocketTask(with: server.socketURL("/socket"))
            task.resume()
            try await recorder.opening(of: task)
            #expect(server.requests.filter { $0.path == "/socket" }.count <= 2)
        }
    }

    @Test func `a connection lost after the 101 is not retried`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { ScriptedReply.webSocket($0).then(.close) }) {
            (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .networkConnectionLost && record.letters == "coME")
            try await settle(session)
            #expect(server.requests.count == 1)
        }
    }

    // MARK: Extensions

    @Test(arguments: [
        "permessage-deflate", "permessage-deflate; server_no_context_takeover", "permessage-deflate; client_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        "permessage-deflate;server_no_context_takeover", "permessage-deflate; server_max_window_bits=15",
        "permessage-deflate; server_max_window_bits=\"9\"",
    ])
    func `compression is accepted in any valid form`(value: String) async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept("Sec-WebSocket-Extensions: \(value)\r\n")
            // "Hello", compressed (RFC 7692, section 7.2.3.1).
            try connection.send(1, [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], isCompressed: true)
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.offersCompression = true
            task.resume()
            #expect(try await task.next() == .text("Hello"))
        }
    }

    /// RFC 7692, sections 5.1 and 7.1.
    @Test(arguments: [
        "permessage-deflate; x_unknown", "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover=true", "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=7", "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=08", "permessage-deflate; server_max_window_bits=+9",
        "permessage-deflate; server_max_window_bits=", "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
        "permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=16", "permessage-deflate, permessage-deflate",
        "permessage-deflate, x-foo", "x-foo", "permessage-deflate;", "permessage-deflate; ;", "permessage-deflate; =9",
        "permessage-deflate; server_max_window_bits=\"9", "x-webkit-deflate-frame", "permessage-bzip2",
    ])
    func `compression parameters that are invalid or not offered fail the handshake`(value: String) async throws {
        let recorder = WebSocketRecorder()
        let rest = Delivered<Int>()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept("Sec-WebSocket-Extensions: \(value)\r\n")
            rest(try connection.drain())
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.offersCompression = true
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .badServerResponse && record.letters == "cME")
            #expect(try await rest.value == 0)
        }
    }

    @Test func `accepting compression twice fails the handshake`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept(String(repeating: "Sec-WebSocket-Extensions: permessage-deflate\r\n", count: 2))
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.offersCompression = true
            task.resume()
            #expect(try await recorder.completion(of: task).code == .badServerResponse)
        }
    }

    @Test func `compression is offered once, and only if requested`() async throws {
        let recorder = WebSocketRecorder()
        let offers = Delivered<String?>()
        try await withWebSocket(delegate: recorder) { connection in
            offers(connection.field("Sec-WebSocket-Extensions"))
            try echoing(connection)
        } test: { (peer, session) async throws in
            for isOffered in [false, true] {
                let task = session.webSocketTask(with: peer.url())
                #expect(!task.offersCompression)
                task.offersCompression = isOffered
                task.resume()
                // A server that does not accept it is used without compression.
                try await task.send(.string("plain"))
                #expect(try await task.nextText() == "plain")
            }
            #expect(offers.all.first == .some(nil))
            let offer = try #require(offers.all.last ?? nil)
            #expect(offer.components(separatedBy: "permessage-deflate").count == 2, "\(offer)")
        }
    }
}
