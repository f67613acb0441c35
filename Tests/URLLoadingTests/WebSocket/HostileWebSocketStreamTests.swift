// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Connections that close at any byte, and servers that send endlessly.
@Suite(.timeLimit(.minutes(2)))
struct HostileWebSocketStreamTests {
    /// A server's side of a conversation, with a message and a control frame of every kind.
    private static let frames: [UInt8] =
        WebSocketPeer.frame(1, Array("gr\u{FC}n".utf8)) + WebSocketPeer.frame(1, Array("a\u{20AC}".utf8), isFinal: false)
        + WebSocketPeer.frame(9, [1, 2, 3]) + WebSocketPeer.frame(0, Array("b".utf8)) + WebSocketPeer.frame(10, [])
        + WebSocketPeer.frame(2, [UInt8](repeating: 5, count: 130)) + WebSocketPeer.frame(2, [])
        + WebSocketPeer.frame(8, [0x03, 0xE9] + Array("bye".utf8))
    /// The messages in ``frames``, each with the number of bytes after which it is complete.
    private static let messages: [(end: Int, message: WireMessage)] = [
        (7, .text("gr\u{FC}n")), (7 + 6 + 5 + 3, .text("a\u{20AC}b")),
        (7 + 6 + 5 + 3 + 2 + 134, .binary([UInt8](repeating: 5, count: 130))),
        (7 + 6 + 5 + 3 + 2 + 134 + 2, .binary([])),
    ]

    /// The outcome of a task: its messages, then its end.
    private func outcome(
        of task: URLSessionWebSocketTask, _ recorder: WebSocketRecorder
    ) async throws -> (messages: [WireMessage], record: WebSocketRecorder.Record) {
        var messages: [WireMessage] = []
        while let message = try? await task.receive() { messages.append(message.wire) }
        return (messages, try await recorder.completion(of: task))
    }

    @Test(arguments: [false, true]) func `a connection that closes at any byte of its frames fails the task once`(
        isReset: Bool
    ) async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            guard let cut = Int(connection.path.dropFirst()) else { return }
            try connection.accept(then: Array(Self.frames[..<cut]))
            if isReset { connection.reset() }
            // A complete close frame is answered.
            if cut == Self.frames.count, !isReset { try connection.drain() }
        } test: { (peer, session) async throws in
            for cut in 0...Self.frames.count {
                let task = session.webSocketTask(with: peer.url("/\(cut)"))
                task.resume()
                let (messages, record) = try await outcome(of: task, recorder)
                let whole = Self.messages.filter { $0.end <= cut }.map(\.message)
                if isReset {
                    // A reset may overtake the bytes before it.
                    #expect(messages == Array(whole.prefix(messages.count)), "\(cut)")
                    continue
                }
                #expect(messages == whole, "\(cut)")
                if cut == Self.frames.count {
                    #expect(record.error == nil && record.closings == [.init(code: 1001, reason: "bye")])
                } else {
                    #expect(record.code == .networkConnectionLost && record.letters == "coME", "\(cut)")
                    #expect(task.closeCode == .abnormalClosure, "\(cut)")
                }
            }
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test(arguments: [false, true]) func `a connection that closes within the 101 fails the task`(isReset: Bool) async throws {
        let recorder = WebSocketRecorder()
        // The head has the same length on every connection.
        let length = 129
        try await withWebSocket(delegate: recorder) { connection in
            guard let cut = Int(connection.path.dropFirst()) else { return }
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(connection.acceptValue)\r\n\r\n"
            guard head.utf8.count == length else { return }
            try connection.write(Array(head.utf8.prefix(cut)))
            if isReset { connection.reset() }
        } test: { (peer, session) async throws in
            for cut in 0..<length {
                let task = session.webSocketTask(with: peer.url("/\(cut)"))
                let sent = Delivered<Bool>()
                task.send(.string("early")) { sent($0 == nil) }
                task.resume()
                let (messages, record) = try await outcome(of: task, recorder)
                #expect(messages.isEmpty && record.letters == "cME", "\(cut)")
                #expect(record.code == .networkConnectionLost || record.code == .badServerResponse, "\(cut)")
                #expect(try await sent.value == false)
            }
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test func `a compressed message that ends at any byte fails the task once`() async throws {
        let recorder = WebSocketRecorder()
        let bytes: [UInt8] = [
            0x41, 0x03, 0xF2, 0x48, 0xCD, 0x80, 0x04, 0xC9, 0xC9, 0x07, 0x00, 0xC1, 0x05, 0xF2, 0x00, 0x11, 0x00, 0x00,
        ]
        try await withWebSocket(delegate: recorder) { connection in
            guard let cut = Int(connection.path.dropFirst()) else { return }
            try connection.accept("Sec-WebSocket-Extensions: permessage-deflate\r\n", then: Array(bytes[..<cut]))
        } test: { (peer, session) async throws in
            for cut in 0...bytes.count {
                let task = session.webSocketTask(with: peer.url("/\(cut)"))
                task.offersCompression = true
                task.resume()
                let (messages, record) = try await outcome(of: task, recorder)
                #expect(messages.count == (cut < 11 ? 0 : cut < bytes.count ? 1 : 2), "\(cut)")
                #expect(messages.allSatisfy { $0 == .text("Hello") })
                #expect(record.code == .networkConnectionLost && record.letters == "coME", "\(cut)")
            }
        }
    }

    @Test func `a connection that closes while the app sends fails the unsent messages`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            _ = try connection.readFrame()
            if connection.number & 1 == 1 { connection.reset() }
        } test: { (peer, session) async throws in
            for _ in 0..<40 {
                let task = session.webSocketTask(with: peer.url())
                task.resume()
                let results = Delivered<URLError.Code?>()
                for _ in 0..<32 { task.send(.data(Data(count: 1 << 20))) { results(($0 as? URLError)?.code) } }
                let record = try await recorder.completion(of: task)
                #expect(record.code == .networkConnectionLost)
                try await results.count(reaches: 32)
                // Sends that completed come first; all later ones fail.
                let failed = results.all.drop { $0 == nil }
                let codes = failed.map { $0?.rawValue }
                #expect(!codes.isEmpty && codes.allSatisfy { $0 == URLError.Code.networkConnectionLost.rawValue }, "\(codes)")
            }
        }
    }

    // MARK: Floods

    @Test func `a message of a million empty fragments is received, in bounded memory`() async throws {
        let empty = [UInt8](repeating: 0, count: 65_536)
        try await withScenario(
            sendBuffer: 262_144,
            reply: { request in
                request.path == "/other"
                    ? .ok("answered")
                    : .webSocket(request)
                        .then(.write([0x01, 0x00]), .repeat(empty, count: 31), .write([0x80, 0x02, 0x68, 0x69]), .stall)
            }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            async let other = session.text(server.url("/other"))
            #expect(try await task.next() == .text("hi"))
            #expect(try await other == "answered")
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
        }
    }

    @Test func `endless tiny frames do not block other loads`() async throws {
        // Empty fragments of a text, and unsolicited pongs.
        let frames: [UInt8] = (0..<16_384).flatMap { _ in [0x00, 0x00, 0x8A, 0x00] as [UInt8] }
        try await withScenario(
            sendBuffer: 262_144,
            reply: { request in
                request.path == "/other"
                    ? .ok("answered") : .webSocket(request).then(.write([0x01, 0x00]), .repeat(frames, count: .max))
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            try await server.waitForBytesWritten(1 << 20, on: 0)
            let before = try ProcessProbe.residentBytes()
            for _ in 0..<20 { #expect(try await session.text(server.url("/other")) == "answered") }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            task.cancel()
            try await server.waitForClose(0)
        }
    }

    @Test func `endless pings whose pongs are not read take bounded memory`() async throws {
        let ping = WebSocketPeer.frame(9, [UInt8](repeating: 7, count: 125))
        let pings = (0..<512).flatMap { _ in ping }
        let recorder = WebSocketRecorder()
        try await withScenario(
            sendBuffer: 262_144, delegate: recorder,
            reply: { request in
                if request.path == "/other" { return .ok("answered") }
                // 256 MB of pings, which the client would answer with 280 MB of pongs.
                return .webSocket(request).then(.stopReading, .repeat(pings, count: 4_096), .reach("all sent"), .stall)
            }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            try await server.waitForBytesWritten(8 << 20, on: 0)
            for _ in 0..<200 { _ = try await session.text(server.url("/other")) }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            // Only the most recent ping is answered (RFC 6455, section 5.5.3), so the task continues.
            #expect(!recorder.record(of: task).isComplete)
            task.cancel()
            #expect(try await recorder.completion(of: task).code == .cancelled)
        }
    }

    @Test func `an endless message is limited to the maximum size`() async throws {
        let fragment = WebSocketPeer.frame(0, [UInt8](repeating: 97, count: 60_000), isFinal: false)
        try await withScenario(
            sendBuffer: 262_144,
            reply: { .webSocket($0).then(.write(WebSocketPeer.frame(1, [], isFinal: false)), .repeat(fragment, count: .max)) }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            await expectFailure(.dataLengthExceedsMaximum) { try await task.receive() }
            try await server.waitForClose(0)
        }
    }

    @Test func `a server that keeps sending after a protocol error is disconnected`() async throws {
        let chunk = WebSocketPeer.frame(2, [UInt8](repeating: 0, count: 60_000))
        let recorder = WebSocketRecorder()
        try await withScenario(
            sendBuffer: 262_144, delegate: recorder,
            reply: { .webSocket($0).then(.write([0x83, 0x00]), .stopReading, .repeat(chunk, count: .max)) }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await recorder.completion(of: task).code == .badServerResponse)
            try await server.waitForClose(0)
        }
    }

    @Test func `a hostile server does not affect other tasks`() async throws {
        let good = try WebSocketPeer(echoing)
        defer { good.stop() }
        try await withWebSocket { connection in
            try connection.accept(then: [UInt8(connection.number & 0xFF), 0xFF, 0xFF])
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: good.url())
            task.resume()
            for round in 0..<100 {
                let bad = session.webSocketTask(with: peer.url())
                bad.resume()
                if round & 3 == 0 { bad.cancel() } else { bad.cancel(with: .goingAway, reason: nil) }
                try await task.send(.string("\(round)"))
                #expect(try await task.nextText() == "\(round)")
            }
        }
    }
}
