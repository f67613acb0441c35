// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A message on the wire: an opcode and a payload.
struct WireMessage: Sendable, Hashable {
    var opcode: UInt8
    var payload: [UInt8]

    static func text(_ text: String) -> WireMessage { WireMessage(opcode: 1, payload: Array(text.utf8)) }
    static func binary(_ bytes: [UInt8]) -> WireMessage { WireMessage(opcode: 2, payload: bytes) }
}

extension URLSessionWebSocketTask.Message {
    var wire: WireMessage {
        switch self {
        case .string(let text): .text(text)
        case .data(let data): .binary(Array(data))
        }
    }

    init(_ wire: WireMessage) {
        self = wire.opcode == 1 ? .string(String(decoding: wire.payload, as: UTF8.self)) : .data(Data(wire.payload))
    }
}

extension WebSocketPeer.Frame {
    var wire: WireMessage { WireMessage(opcode: opcode, payload: payload) }
}

/// Runs a test with a WebSocket server whose bytes the test scripts, and a session.
func withWebSocket(
    delegate: (any URLSessionDelegate)? = nil, configure: (URLSessionConfiguration) -> Void = { _ in },
    _ script: @escaping @Sendable (WebSocketPeer.Connection) throws -> Void,
    test: (WebSocketPeer, URLSession) async throws -> Void
) async throws {
    let peer = try WebSocketPeer(script)
    defer { peer.stop() }
    try await withSession(delegate: delegate, configure) { session in try await test(peer, session) }
}

/// Accepts the handshake, and echoes all messages.
let echoing: @Sendable (WebSocketPeer.Connection) throws -> Void = { connection in
    try connection.accept()
    try connection.echo()
}

extension URLSessionWebSocketTask {
    /// The next message as on the wire.
    func next() async throws -> WireMessage { try await receive().wire }

    func nextText() async throws -> String { String(decoding: try await next().payload, as: UTF8.self) }

    /// Sends a ping and waits for its pong.
    func ping() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            sendPing { error in
                if let error { continuation.resume(throwing: error) } else { continuation.resume() }
            }
        }
    }
}

/// Waits in real time without sleeping: loads of a silent server time out one after the other.
func waitOut(_ seconds: TimeInterval, times: Int = 1) async throws {
    try await withScriptedServer(reply: { _ in [.stall] }) { (silent) async throws in
        try await withSession { (session) async throws in
            for _ in 0..<times {
                var request = URLRequest(silent.url())
                request.timeoutInterval = seconds
                await expectFailure(.timedOut) { try await session.data(for: request) }
            }
        }
    }
}

/// Makes round trips on another connection, so that everything in transit has arrived.
func settle(_ session: URLSession, times: Int = 20) async throws {
    try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
        for _ in 0..<times { _ = try await session.data(from: server.url()) }
    }
}

// MARK: Handshakes of scripted servers, also over TLS

extension ScriptedReply {
    /// A 101, a message and a close frame; then the server closes its side, so that the client waits for nothing.
    static func greeting(_ request: RecordedRequest, _ fields: [(String, String)] = []) -> ScriptedReply {
        .webSocket(request, fields, then: WebSocketPeer.frame(1, Array("hello".utf8)) + WebSocketPeer.frame(8, [0x03, 0xE8]))
            .then(.shutdownOutput)
    }
}

extension ScriptedServer {
    /// A ws or wss URL of this server.
    func socketURL(_ path: String = "/", host: String? = nil, user: String? = nil) -> URL {
        let text = "ws" + url(path, host: host, user: user).absoluteString.dropFirst(4)
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }
}
