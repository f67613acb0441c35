// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Messages of WebSocket tasks: content, order, fragments, masking, and the queue of their handlers.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketMessageTests {
    static let samples: [WireMessage] = [
        .text("hello"), .text(""), .text("gr\u{FC}n \u{20AC} \u{1F600} \u{0}"), .binary([]), .binary(Array(0...255)),
        // The lengths at which the encoding of the length changes (RFC 6455, section 5.2).
        .text(String(repeating: "a", count: 125)), .text(String(repeating: "b", count: 126)),
        .binary([UInt8](repeating: 3, count: 65_535)), .binary([UInt8](repeating: 4, count: 65_536)),
        .text(String(repeating: "\u{E4}", count: 70_000)),
    ]

    @Test(arguments: samples) func `a message is sent and received unchanged`(message: WireMessage) async throws {
        let seen = Delivered<WebSocketPeer.Frame>()
        try await withWebSocket { connection in
            try connection.accept()
            guard let frame = try connection.readFrame() else { return }
            seen(frame)
            try connection.send(frame.opcode, frame.payload)
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await task.send(URLSessionWebSocketTask.Message(message))
            #expect(try await task.next() == message)
            let frame = try await seen.value
            #expect(frame.wire == message)
            #expect(frame.isFinal && frame.wasMasked && !frame.isCompressed)
        }
    }

    @Test func `large messages are sent and received`() async throws {
        try await withWebSocket(echoing) { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 16 << 20
            task.resume()
            let message = WireMessage.binary(ScriptedFile.pattern(9_000_001))
            for _ in 0..<2 {
                async let received = task.next()
                try await task.send(URLSessionWebSocketTask.Message(message))
                #expect(try await received == message)
            }
        }
    }

    @Test func `concurrent messages stay in order`() async throws {
        try await withWebSocket(echoing) { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let (sent, received) = (Delivered<Int>(), Delivered<String>())
            for number in 0..<100 {
                task.receive { result in
                    if case .success(.string(let text)) = result { received(text) } else { received("\(number): \(result)") }
                }
            }
            for number in 0..<100 {
                task.send(.string("\(number)")) { error in sent(error == nil ? number : -1) }
            }
            try await received.count(reaches: 100)
            #expect(received.all == (0..<100).map(String.init))
            #expect(sent.all == Array(0..<100))
        }
    }

    @Test func `messages that arrive before receive is called are queued in order`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept(then: (0..<50).flatMap { WebSocketPeer.frame(1, Array("\($0)".utf8)) })
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            try await task.ping()
            for number in 0..<50 { #expect(try await task.nextText() == "\(number)") }
        }
    }

    @Test func `calls made before resume run after it`() async throws {
        let heads = Delivered<String>()
        try await withWebSocket { connection in
            heads(connection.head)
            try echoing(connection)
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            let (order, received) = (Delivered<String>(), Delivered<WireMessage>())
            task.receive { result in if case .success(let message) = result { received(message.wire) } }
            task.receive { result in if case .success(let message) = result { received(message.wire) } }
            task.send(.string("first")) { order("first \($0 == nil)") }
            task.send(.data(Data([2]))) { order("second \($0 == nil)") }
            task.sendPing { order("pong \($0 == nil)") }
            try await settle(session)
            #expect(heads.all.isEmpty && order.all.isEmpty)
            task.resume()
            try await received.count(reaches: 2)
            #expect(received.all == [.text("first"), .binary([2])])
            try await order.count(reaches: 3)
            #expect(order.all == ["first true", "second true", "pong true"])
        }
    }

    @Test func `nothing is sent before the handshake completes`() async throws {
        try await withScenario(
            reply: { request in
                ScriptedReply([.gate("answer")] + ScriptedReply.webSocket(request).effects + [.stall])
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.send(.string("early")) { _ in }
            task.resume()
            try await server.reached("answer")
            let sent = Delivered<Bool>()
            task.send(.string("while it waits")) { sent($0 == nil) }
            task.sendPing { _ in }
            try await settle(session)
            let head = try await server.head(0).rawHead
            #expect(server.received(on: 0) == head, "sent before the response (RFC 6455, section 4.1)")
            #expect(sent.all.isEmpty)
            server.open("answer")
            #expect(try await sent.value)
            try await settle(session)
            let frames = ClientFrame.all(Array(server.received(on: 0).dropFirst(head.count)))
            #expect(frames.map(\.opcode).prefix(2) == [1, 1])
            #expect(frames.map(\.payload).prefix(2) == [Array("early".utf8), Array("while it waits".utf8)])
        }
    }

    @Test func `every message is one frame, masked with its own key`() async throws {
        try await withScenario(
            reply: { request in
                ScriptedReply(
                    ScriptedReply.webSocket(request).effects
                        + [.awaitBytes(request.rawHead.count + 40 * 11 + 4 + 4 + 300 + 10 + 4 + 70_000), .reach("all"), .stall])
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            for number in 0..<40 { try await task.send(.string("abcd\(number % 10)")) }
            try await task.send(.data(Data(count: 300)))
            try await task.send(.data(Data(count: 70_000)))
            try await server.reached("all")
            let head = try await server.head(0).rawHead
            let frames = ClientFrame.all(Array(server.received(on: 0).dropFirst(head.count)))
            #expect(frames.count == 42)
            #expect(frames.map(\.first) == [UInt8](repeating: 0x81, count: 40) + [0x82, 0x82])
            // Each frame has the shortest encoding of its length (RFC 6455, section 5.2).
            #expect(frames.map(\.shortLength) == [UInt8](repeating: 5, count: 40) + [126, 127])
            let keys = frames.compactMap(\.key)
            #expect(keys.count == 42 && Set(keys).count == 42)
            #expect(frames.prefix(40).map(\.payload) == (0..<40).map { Array("abcd\($0 % 10)".utf8) })
            #expect(frames.suffix(2).map(\.payload) == [[UInt8](repeating: 0, count: 300), [UInt8](repeating: 0, count: 70_000)])
        }
    }

    @Test func `fragments form one message, with control frames in between`() async throws {
        let pongs = Delivered<[UInt8]>()
        try await withWebSocket { connection in
            try connection.accept()
            let text = Array("a\u{20AC}b\u{1F600}c".utf8)
            // The text is cut within characters, and some fragments are empty.
            try connection.send(1, Array(text[..<2]), isFinal: false)
            try connection.send(9, [1])
            try connection.send(0, [], isFinal: false)
            try connection.send(0, Array(text[2..<6]), isFinal: false)
            try connection.send(10, [7, 7])
            try connection.send(9, [2])
            try connection.send(0, Array(text[6...]), isFinal: false)
            try connection.send(0, [])
            try connection.send(2, [1, 2, 3], isFinal: false)
            try connection.send(0, [4])
            try connection.send(2, [], isFinal: false)
            try connection.send(0, [])
            for _ in 0..<2 {
                guard let frame = try connection.readFrame(), frame.opcode == 10 else { return }
                pongs(frame.payload)
            }
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            #expect(try await task.next() == .text("a\u{20AC}b\u{1F600}c"))
            #expect(try await task.next() == .binary([1, 2, 3, 4]))
            #expect(try await task.next() == .binary([]))
            try await pongs.count(reaches: 2)
            #expect(pongs.all == [[1], [2]])
        }
    }

    @Test func `a ping between fragments is answered before the message is complete`() async throws {
        try await withWebSocket { connection in
            try connection.accept()
            try connection.send(1, Array("be".utf8), isFinal: false)
            try connection.send(9, [5, 5])
            let frame = try connection.readFrame()
            guard frame?.opcode == 10, frame?.payload == [5, 5] else { return }
            try connection.send(0, Array("fore".utf8))
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            #expect(try await task.nextText() == "before")
        }
    }

    @Test func `frames are parsed the same byte by byte and all at once`() async throws {
        let expected: [WireMessage] = [.text("\u{E4}\u{1F600}"), .binary([UInt8](repeating: 9, count: 200)), .text("")]
        let bytes = expected.flatMap { WebSocketPeer.frame($0.opcode, $0.payload) }
        for isSlow in [true, false] {
            try await withScenario(
                reply: { request in
                    let reply = ScriptedReply.webSocket(request, then: isSlow ? [] : bytes)
                    return isSlow ? reply.then(.writeSlowly(bytes), .stall) : reply.then(.stall)
                }
            ) { (server, session) async throws in
                let task = session.webSocketTask(with: server.socketURL())
                task.resume()
                for message in expected { #expect(try await task.next() == message) }
            }
        }
    }

    @Test func `handlers are called on the delegate queue`() async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let peer = try WebSocketPeer(echoing)
        defer { peer.stop() }
        let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: peer.url())
        let calls = Delivered<String>()
        let note: @Sendable (String) -> Void = { [weak queue] name in
            calls("\(name) \(queue != nil && OperationQueue.current === queue)")
        }
        task.resume()
        task.send(.string("a")) { _ in note("send") }
        task.receive { _ in note("receive") }
        try await calls.count(reaches: 2)
        task.sendPing { _ in note("ping") }
        try await calls.count(reaches: 3)
        // The remaining calls are one for a message that has arrived, and calls that fail at once.
        try await task.send(.string("b"))
        try await task.ping()
        task.receive { _ in note("receive") }
        try await calls.count(reaches: 4)
        task.receive { _ in note("failed receive") }
        task.cancel(with: .normalClosure, reason: nil)
        try await calls.count(reaches: 5)
        task.send(.string("c")) { _ in note("failed send") }
        task.receive { _ in note("failed receive") }
        task.sendPing { _ in note("failed ping") }
        try await calls.count(reaches: 8)
        #expect(
            calls.all.sorted() == [
                "failed ping true", "failed receive true", "failed receive true", "failed send true", "ping true",
                "receive true", "receive true", "send true",
            ])
    }

    @Test func `cancelling the Swift task of a receive ends that receive, and the next one gets the message`() async throws {
        let mayTalk = ThreadGate()
        try await withWebSocket { connection in
            try connection.accept()
            mayTalk.wait()
            for number in 0..<2 { try connection.sendText("\(number)") }
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let received = Delivered<String>()
            let note: @Sendable (Result<URLSessionWebSocketTask.Message, any Error>) -> Void = { result in
                received((try? result.get()).map { String(decoding: $0.wire.payload, as: UTF8.self) } ?? "failed")
            }
            task.receive(completionHandler: note)
            for _ in 0..<20 {
                let waiting = Task { try await task.receive() }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await waiting.value }
            }
            task.receive(completionHandler: note)
            mayTalk.open()
            try await received.count(reaches: 2)
            #expect(received.all == ["0", "1"])
            // A message that has arrived is not lost either: it is received, or left for the next call.
            for round in 0..<50 {
                try await task.send(.string("round \(round)"))
                let waiting = Task { try await task.nextText() }
                waiting.cancel()
                let text: String
                do { text = try await waiting.value } catch is CancellationError { text = try await task.nextText() }
                #expect(text == "round \(round)")
            }
            #expect(task.state == .running)
        }
    }

    @Test func `connections of one session do not mix their messages`() async throws {
        try await withWebSocket(echoing) { (peer, session) async throws in
            let tasks = (0..<20).map { session.webSocketTask(with: peer.url("/\($0)")) }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for (number, task) in tasks.enumerated() {
                    task.resume()
                    group.addTask {
                        for round in 0..<20 {
                            try await task.send(.string("\(number) \(round)"))
                            guard try await task.nextText() == "\(number) \(round)" else { return false }
                        }
                        return true
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }
}
