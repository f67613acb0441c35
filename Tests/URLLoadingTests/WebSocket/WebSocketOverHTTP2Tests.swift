// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// WebSockets over HTTP/2 (RFC 8441).
@Suite(.timeLimit(.minutes(1)))
struct WebSocketOverHTTP2Tests {
    private static let allowed: HTTP2ScriptedServer.Greeting = { _ in [.settings([.enableConnectProtocol: 1])] }
    private static let closeFrame: [UInt8] = [0x88, 2, 0x03, 0xE8]

    private static func text(_ text: String) -> [UInt8] { WebSocketPeer.frame(1, Array(text.utf8)) }

    private static func socketURL(_ server: HTTP2ScriptedServer, _ path: String = "/socket") throws -> URL {
        try #require(URL(string: "wss://localhost:\(server.port)\(path)"))
    }

    @Test func `a WebSocket uses a stream of an HTTP/2 connection that allows it`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: Self.allowed,
            reply: { request in
                guard request.method == "CONNECT" else { return .ok("page") }
                return [
                    .headers([(":status", "200"), ("sec-websocket-protocol", "chat")]), .data(Self.text("hello"), ends: false),
                    // "hi", masked, with its frame header.
                    .awaitBody(8), .data(Self.text("and more"), ends: false),
                    // A close frame with a code.
                    .awaitBody(16), .data(Self.closeFrame, ends: true),
                ]
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/page")) == "page")
            let task = session.webSocketTask(with: try Self.socketURL(server), protocols: ["chat", "other"])
            task.resume()
            #expect(try await task.receive().text == "hello")
            try await task.send(.string("hi"))
            #expect(try await task.receive().text == "and more")
            task.cancel(with: .normalClosure, reason: nil)
            #expect(try await recorder.completion(of: task).error == nil)
            #expect(task.closeCode == .normalClosure)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 200)

            #expect(server.connectionCount == 1)
            let request = server.requests[1]
            #expect(request.method == "CONNECT")
            #expect(request.header(":protocol") == "websocket")
            #expect(request.header(":scheme") == "https")
            #expect(request.path == "/socket")
            #expect(request.authority == "localhost:\(server.port)")
            #expect(request.header("sec-websocket-version") == "13")
            #expect(request.header("sec-websocket-protocol") == "chat, other")
            for name in ["sec-websocket-key", "upgrade", "connection", "content-length"] { #expect(request.header(name) == nil) }
            #expect(server.frames(.resetStream).isEmpty)
        }
    }

    @Test func `a WebSocket uses a stream of an HTTP/2 connection through a tunnel`() async throws {
        let place = Watched(0)
        try await withTunnelProxy({ _ in .tunnel(to: place.read { $0 }) }) { (proxy) async throws in
            try await withHTTP2Scenario(
                configure: { $0.connectionProxyDictionary = proxyDictionary(https: proxy.port) }, greeting: Self.allowed,
                reply: { request in
                    request.method == "CONNECT"
                        ? [.headers([(":status", "200")]), .data(Self.text("hello"), ends: false), .stall] : .ok("page")
                }
            ) { (server, session) async throws in
                place.change { [port = server.port] in $0 = port }
                #expect(try await session.text(server.url("/page")) == "page")
                let task = session.webSocketTask(with: try Self.socketURL(server))
                task.resume()
                #expect(try await task.receive().text == "hello")
                #expect(server.requests.map(\.method) == ["GET", "CONNECT"] && proxy.connectionCount == 1)
                task.cancel()
            }
        }
    }

    @Test(arguments: [true, false])
    func `without the setting, a WebSocket uses HTTP/1.1`(hasConnection: Bool) async throws {
        let recorder = EventRecorder()
        let ordinary: HTTP2ScriptedServer.Greeting = { _ in [.settings()] }
        let greeting = hasConnection ? ordinary : Self.allowed
        try await withHTTP2Scenario(delegate: recorder, greeting: greeting, reply: { $0.isHTTP2 ? .ok("page") : [.stall] }) {
            (server, session) async throws in
            if hasConnection { _ = try await session.text(server.url("/page")) }
            let task = session.webSocketTask(with: try Self.socketURL(server))
            task.resume()
            _ = try await server.head(hasConnection ? 1 : 0)
            task.cancel()
            _ = try await recorder.completion(of: task)
            // Without an existing connection, none is made for HTTP/2.
            #expect(server.protocols == (hasConnection ? ["h2", "http/1.1"] : ["http/1.1"]))
            #expect(server.requests.last?.method == "GET")
            #expect(server.requests.last?.header("upgrade") == "websocket")
        }
    }

    @Test func `a server that withdraws the setting violates the protocol`() async throws {
        try await withHTTP2Scenario(
            greeting: Self.allowed,
            reply: { _ in [.settings([.enableConnectProtocol: 0]), .stall] }
        ) { (server, session) async throws in
            await #expect(throws: URLError.self) { try await session.text(server.url("/page")) }
            let frame = try await server.frame(.goAway, on: 0)
            #expect(frame.code == 1)
        }
    }

    @Test(arguments: [HTTP2Frame.ErrorCode.cancel, .protocolError, .noError])
    func `a reset stream fails the task as a lost connection`(code: HTTP2Frame.ErrorCode) async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: Self.allowed,
            reply: { request in
                request.method == "CONNECT"
                    ? [.headers([(":status", "200")]), .data(Self.text("hello"), ends: false), .awaitBody(8), .resetStream(code)]
                    : .ok("page")
            }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/page"))
            let task = session.webSocketTask(with: try Self.socketURL(server))
            task.resume()
            #expect(try await task.receive().text == "hello")
            try await task.send(.string("hi"))
            await #expect(throws: URLError.self) { try await task.receive() }
            #expect((try await recorder.completion(of: task).error as? URLError).map { brokenProtocol.contains($0.code) } == true)
            #expect(task.closeCode == .abnormalClosure)
            // The connection is still usable.
            #expect(try await session.text(server.url("/page")) == "page")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `another status fails the handshake`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: Self.allowed,
            reply: { $0.method == "CONNECT" ? [.headers([(":status", "501")], ends: true)] : .ok("page") }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/page"))
            let task = session.webSocketTask(with: try Self.socketURL(server))
            task.resume()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .badServerResponse)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 501)
        }
    }

    @Test func `sending respects the flow-control windows, and back-pressure reaches the server`() async throws {
        let recorder = EventRecorder()
        let piece = [UInt8](repeating: 7, count: 100_000)
        try await withHTTP2Scenario(
            delegate: recorder, greeting: Self.allowed,
            reply: { request in
                guard request.method == "CONNECT" else { return .ok("page") }
                // 1,000,000 bytes, with 14 of frame header.
                return [.headers([(":status", "200")]), .awaitBody(1_000_014), .reach("sent")]
                    + [.data(WebSocketPeer.frame(2, piece), times: 100, ends: false), .data(Self.closeFrame, ends: true)]
            }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/page"))
            let task = session.webSocketTask(with: try Self.socketURL(server))
            task.resume()
            try await task.send(.data(Data(count: 1_000_000)))
            try await server.reached("sent")
            // The server is blocked before its end: 10 MB exceed the buffers for unread messages.
            let left = try await server.blocked(stream: server.requests[1].stream)
            #expect(left > 0)
            var count = 0
            for try await message in task.messages {
                #expect(message.data == Data(piece))
                count += 1
            }
            #expect(count == 100)
            #expect(try await recorder.completion(of: task).error == nil)
        }
    }
}

extension URLSessionWebSocketTask.Message {
    var text: String? { if case .string(let text) = self { text } else { nil } }
    var data: Data? { if case .data(let data) = self { data } else { nil } }
}
