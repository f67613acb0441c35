// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let chunk = [UInt8](repeating: 0x61, count: 65_536)
/// An upper limit, in bytes, for what socket buffers and windows hold; far less than the tests send.
private let windows = 32 << 20

/// Back-pressure in both directions, and suspension of an open WebSocket.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketFlowTests {
    /// A server that sends the same frame `count` times, and then a close frame.
    private func withSender(
        frame: [UInt8] = WebSocketPeer.frame(2, chunk), count: Int, delegate: WebSocketRecorder = WebSocketRecorder(),
        test: (ScriptedServer, URLSession, URLSessionWebSocketTask) async throws -> Void
    ) async throws {
        try await withScenario(
            sendBuffer: 262_144, delegate: delegate,
            reply: { request in
                ScriptedReply.webSocket(request)
                    .then(.gate("talk"), .repeat(frame, count: count), .write(WebSocketPeer.frame(8, [0x03, 0xE8])), .stall)
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            try await delegate.opening(of: task)
            try await test(server, session, task)
        }
    }

    @Test func `back-pressure reaches the server until the app receives`() async throws {
        let recorder = WebSocketRecorder()
        try await withSender(count: 1_536, delegate: recorder) { (server, session, task) async throws in
            server.open("talk")
            try await settle(session)
            #expect(server.bytesWritten(on: 0) < windows)
            #expect(task.state == .running)
            for number in 0..<1_536 {
                let isRight = try await task.next() == .binary(chunk)
                try #require(isRight, "message \(number)")
            }
            #expect(try await recorder.completion(of: task).closings.map(\.code) == [1000])
        }
    }

    @Test func `each received message lets exactly as much more arrive`() async throws {
        try await withSender(count: 1_536) { (server, session, task) async throws in
            server.open("talk")
            for _ in 0..<160 { _ = try await task.receive() }
            try await settle(session)
            let written = server.bytesWritten(on: 0)
            #expect(written >= 160 * chunk.count && written < windows + 160 * chunk.count)
        }
    }

    @Test func `unread tiny messages take bounded memory`() async throws {
        // Twelve million empty messages in 24 MB.
        let frame = [UInt8](repeating: 0, count: 65_536).indices.map { UInt8($0 & 1 == 0 ? 0x81 : 0x00) }
        try await withSender(frame: frame, count: 384) { (server, session, task) async throws in
            let before = try ProcessProbe.residentBytes()
            server.open("talk")
            try await settle(session)
            #expect(server.bytesWritten(on: 0) < 20 << 20)
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
            for _ in 0..<1_000 { #expect(try await task.next() == .text("")) }
        }
    }

    @Test func `an incomplete message below the maximum does not stop the server`() async throws {
        try await withWebSocket { connection in
            try connection.accept()
            try connection.send(2, chunk, isFinal: false)
            for _ in 0..<254 { try connection.send(0, chunk, isFinal: false) }
            try connection.send(0, chunk)
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 16 << 20
            task.resume()
            #expect(try await task.next().payload.count == 16 << 20)
        }
    }

    @Test func `send waits for a server that does not read, and returns once it does`() async throws {
        let mayRead = ThreadGate()
        let count = Delivered<Int>()
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            mayRead.wait()
            while let frame = try connection.readFrame() {
                if frame.opcode == 8 { return try connection.send(8, frame.payload) }
                count(frame.payload.count)
            }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            let sent = Delivered<Bool>()
            let writer = Task {
                for _ in 0..<64 {
                    try await task.send(.data(Data(count: 1 << 20)))
                    sent(true)
                }
            }
            try await sent.count(reaches: 1)
            try await settle(session)
            #expect(sent.all.count < 32, "send returns although the server does not read")
            mayRead.open()
            try await writer.value
            task.cancel(with: .normalClosure, reason: nil)
            try await recorder.completion(of: task)
            try await peer.waitForEnds()
            #expect(count.all == [Int](repeating: 1 << 20, count: 64))
        }
    }

    @Test func `messages arrive from a server that does not read`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withWebSocket { connection in
            try connection.accept()
            for number in 0..<20 { try connection.sendText("\(number)") }
            mayEnd.wait()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            for _ in 0..<32 { task.send(.data(Data(count: 1 << 20))) { _ in } }
            for number in 0..<20 { #expect(try await task.nextText() == "\(number)") }
        }
    }

    @Test func `both sides send at once, more than the socket buffers hold`() async throws {
        try await withWebSocket(echoing) { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let writer = Task { for _ in 0..<512 { try await task.send(.data(Data(chunk))) } }
            for number in 0..<512 {
                let isRight = try await task.next() == .binary(chunk)
                try #require(isRight, "message \(number)")
            }
            try await writer.value
        }
    }

    // MARK: Suspension

    @Test func `a suspended task sends nothing until it is resumed`() async throws {
        let seen = Delivered<WireMessage>()
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            while let frame = try connection.readFrame() { seen(frame.wire) }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            try await task.send(.string("before"))
            try await seen.count(reaches: 1)
            task.suspend()
            #expect(task.state == .suspended)
            let sent = Delivered<Int>()
            for number in 0..<3 { task.send(.string("\(number)")) { sent($0 == nil ? number : -1) } }
            try await settle(session)
            #expect(seen.all == [.text("before")] && sent.all.isEmpty)
            task.resume()
            try await seen.count(reaches: 4)
            #expect(seen.all.map(\.payload) == ["before", "0", "1", "2"].map { Array($0.utf8) })
            try await sent.count(reaches: 3)
            #expect(sent.all == [0, 1, 2])
        }
    }

    @Test func `a suspended task stops the server, and receives everything once resumed`() async throws {
        let recorder = WebSocketRecorder()
        try await withSender(count: 1_536, delegate: recorder) { (server, session, task) async throws in
            task.suspend()
            let received = Delivered<Int>()
            for _ in 0..<1_536 {
                task.receive { result in if case .success(let one) = result { received(one.wire.payload.count) } }
            }
            server.open("talk")
            try await settle(session)
            #expect(server.bytesWritten(on: 0) < windows)
            task.resume()
            try await received.count(reaches: 1_536)
            #expect(received.all.allSatisfy { $0 == chunk.count })
            #expect(try await recorder.completion(of: task).error == nil)
        }
    }

    @Test func `timeouts do not run while a task is suspended`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.pingInterval = 0.5
            task.resume()
            try await recorder.opening(of: task)
            task.suspend()
            try await waitOut(0.5, times: 5)
            #expect(task.state == .suspended && !recorder.record(of: task).isComplete)
            task.resume()
            try await task.send(.string("still here"))
            #expect(try await task.nextText() == "still here")
        }
    }

    @Test func `a task suspended and resumed in the handshake opens`() async throws {
        let head = Delivered<Bool>()
        let mayAnswer = ThreadGate()
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            head(true)
            mayAnswer.wait()
            try echoing(connection)
        } test: { (peer, session) async throws in
            var request = URLRequest(peer.url())
            request.timeoutInterval = 0.5
            let task = session.webSocketTask(with: request)
            task.resume()
            _ = try await head.value
            task.suspend()
            // This is longer than the timeout, which does not run during the suspension.
            try await waitOut(0.5, times: 3)
            #expect(!recorder.record(of: task).isComplete)
            mayAnswer.open()
            task.resume()
            try await recorder.opening(of: task)
            try await task.send(.string("open"))
            #expect(try await task.nextText() == "open")
        }
    }
}
