// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The closing handshake, started by the app or by the server (RFC 6455, section 7).
@Suite(.timeLimit(.minutes(1)))
struct WebSocketClosingTests {
    /// Runs a test with an open task and a server that answers close frames.
    private func withOpenTask(
        _ recorder: WebSocketRecorder = WebSocketRecorder(),
        _ script: @escaping @Sendable (WebSocketPeer.Connection) throws -> Void,
        test: (URLSessionWebSocketTask, WebSocketRecorder, WebSocketPeer) async throws -> Void
    ) async throws {
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            try script(connection)
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            try await test(task, recorder, peer)
        }
    }

    // MARK: Started by the app

    @Test(arguments: [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4321, 4999])
    func `the app's code and reason are sent, and the server's answer is reported`(code: Int) async throws {
        let seen = Delivered<WebSocketPeer.Frame>()
        try await withOpenTask { connection in
            guard let frame = try connection.readFrame() else { return }
            seen(frame)
            try connection.send(8, frame.payload)
        } test: { task, recorder, peer in
            #expect(task.closeCode == .invalid && task.closeReason == nil)
            let closeCode = try #require(URLSessionWebSocketTask.CloseCode(rawValue: code))
            task.cancel(with: closeCode, reason: Data("gr\u{FC}n".utf8))
            let record = try await recorder.completion(of: task)
            let frame = try await seen.value
            #expect(frame.opcode == 8 && frame.wasMasked && frame.isFinal)
            #expect(frame.code == code && frame.reason == "gr\u{FC}n")
            #expect(record.closings == [WebSocketRecorder.Closing(code: code, reason: "gr\u{FC}n")])
            #expect(record.letters == "coxME" && record.error == nil)
            #expect(task.closeCode.rawValue == code && task.closeReason == Data("gr\u{FC}n".utf8))
            #expect(task.state == .completed && task.error == nil)
            try await peer.waitForEnds()
        }
    }

    @Test(arguments: [-1, 0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65_535, 65_536 + 1000])
    func `an invalid code is never sent`(code: Int) async throws {
        let seen = Delivered<WebSocketPeer.Frame>()
        try await withOpenTask { connection in
            while let frame = try connection.readFrame() {
                seen(frame)
                if frame.opcode == 8 { return try connection.send(8, frame.payload) }
            }
        } test: { task, recorder, peer in
            let closeCode = try #require(URLSessionWebSocketTask.CloseCode(rawValue: code))
            task.cancel(with: closeCode, reason: Data("because".utf8))
            try await recorder.completion(of: task)
            try await peer.waitForEnds()
            #expect(seen.all.map(\.opcode) == [8])
            // A reason requires a code (RFC 6455, section 5.5.1).
            #expect(seen.all.map(\.payload) == [[]])
        }
    }

    @Test func `a code without a reason takes two bytes`() async throws {
        for reason in [nil, Data()] {
            let seen = Delivered<WebSocketPeer.Frame>()
            try await withOpenTask { connection in
                guard let frame = try connection.readFrame() else { return }
                seen(frame)
                try connection.send(8, frame.payload)
            } test: { task, recorder, _ in
                task.cancel(with: .goingAway, reason: reason)
                let record = try await recorder.completion(of: task)
                #expect(try await seen.value.payload == [0x03, 0xE9])
                #expect(record.closings.map(\.code) == [1001])
                #expect(task.closeReason == nil || task.closeReason == Data())
            }
        }
    }

    @Test(
        arguments: [
            (Array(String(repeating: "r", count: 123).utf8), String(repeating: "r", count: 123)),
            (Array(String(repeating: "r", count: 124).utf8), String(repeating: "r", count: 123)),
            // The reason is not cut within a character.
            (Array((String(repeating: "r", count: 122) + "\u{E4}\u{E4}").utf8), String(repeating: "r", count: 122)),
            (Array((String(repeating: "r", count: 120) + "\u{1F600}").utf8), String(repeating: "r", count: 120)),
        ] as [([UInt8], String)])
    func `a reason is cut to 123 bytes of whole characters`(reason: [UInt8], sent: String) async throws {
        let seen = Delivered<WebSocketPeer.Frame>()
        try await withOpenTask { connection in
            guard let frame = try connection.readFrame() else { return }
            seen(frame)
            try connection.send(8, frame.payload)
        } test: { task, recorder, _ in
            task.cancel(with: .normalClosure, reason: Data(reason))
            try await recorder.completion(of: task)
            let frame = try await seen.value
            #expect(frame.code == 1000 && Array(frame.payload.dropFirst(2)) == Array(sent.utf8))
        }
    }

    @Test func `a reason that is not UTF-8 is not sent as it is`() async throws {
        let seen = Delivered<WebSocketPeer.Frame>()
        try await withOpenTask { connection in
            guard let frame = try connection.readFrame() else { return }
            seen(frame)
            try connection.send(8, frame.payload)
        } test: { task, recorder, _ in
            task.cancel(with: .normalClosure, reason: Data([0x61, 0xFF, 0xC3]))
            try await recorder.completion(of: task)
            let frame = try await seen.value
            #expect(frame.code == 1000)
            #expect(String(validating: frame.payload.dropFirst(2), as: UTF8.self) != nil, "\(frame.payload)")
        }
    }

    @Test func `a close frame is sent after pending messages, and nothing follows it`() async throws {
        let mayRead = ThreadGate()
        let seen = Delivered<WireMessage>()
        try await withOpenTask { connection in
            mayRead.wait()
            while let frame = try connection.readFrame() {
                seen(WireMessage(opcode: frame.opcode, payload: Array(frame.payload.prefix(2))))
                if frame.opcode == 8 { return try connection.send(8, frame.payload) }
            }
        } test: { task, recorder, peer in
            let sent = Delivered<Bool>()
            let large = Data(count: 1 << 20)
            for number in 0..<16 { task.send(.data(Data([UInt8(number), 0]) + large)) { sent($0 == nil) } }
            task.cancel(with: .goingAway, reason: nil)
            let late = Delivered<URLError.Code?>()
            task.send(.string("late")) { late(($0 as? URLError)?.code) }
            task.sendPing { late(($0 as? URLError)?.code) }
            mayRead.open()
            try await recorder.completion(of: task)
            try await peer.waitForEnds()
            #expect(
                seen.all == (0..<16).map { .binary([UInt8($0), 0]) } + [WireMessage(opcode: 8, payload: [0x03, 0xE9])])
            try await sent.count(reaches: 16)
            #expect(sent.all.allSatisfy { $0 })
            try await late.count(reaches: 2)
            #expect(late.all.allSatisfy { $0 != nil })
        }
    }

    @Test func `closing before the end of the handshake cancels the task and its messages`() async throws {
        let mayAnswer = ThreadGate()
        let isEnded = Delivered<Int>()
        let head = Delivered<Bool>()
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            head(true)
            mayAnswer.wait()
            isEnded(try connection.drain())
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            let sent = Delivered<URLError.Code?>()
            task.send(.string("never")) { sent(($0 as? URLError)?.code) }
            task.resume()
            _ = try await head.value
            task.cancel(with: .goingAway, reason: nil)
            let record = try await recorder.completion(of: task)
            #expect(record.code == .cancelled && record.letters == "cME")
            #expect(try await sent.value == .cancelled)
            mayAnswer.open()
            #expect(try await isEnded.value == 0)
            #expect(task.closeCode == .invalid || task.closeCode == .abnormalClosure)
        }
    }

    @Test func `messages that arrive before the server's close frame do no harm`() async throws {
        try await withOpenTask { connection in
            guard let frame = try connection.readFrame() else { return }
            for number in 0..<100 { try connection.sendText("\(number)") }
            try connection.send(9, [1])
            try connection.send(8, frame.payload)
        } test: { task, recorder, peer in
            task.cancel(with: .normalClosure, reason: nil)
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.closings.map(\.code) == [1000])
            try await peer.waitForEnds()
        }
    }

    @Test func `the server's close frame is processed despite unread messages before it`() async throws {
        try await withOpenTask { connection in
            guard let frame = try connection.readFrame() else { return }
            for _ in 0..<96 { try connection.send(2, [UInt8](repeating: 0, count: 65_536)) }
            try connection.send(8, frame.payload)
        } test: { task, recorder, peer in
            task.cancel(with: .normalClosure, reason: nil)
            let record = try await recorder.completion(of: task)
            #expect(record.closings.map(\.code) == [1000])
            try await peer.waitForEnds()
        }
    }

    // MARK: Started by the server

    @Test(arguments: [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])
    func `the server's code and reason are reported and echoed`(code: Int) async throws {
        let seen = Delivered<WebSocketPeer.Frame?>()
        try await withOpenTask { connection in
            try connection.sendClose(code, "gr\u{FC}n")
            seen(try connection.readFrame())
        } test: { task, recorder, peer in
            let record = try await recorder.completion(of: task)
            let frame = try #require(try await seen.value)
            #expect(frame.opcode == 8 && frame.wasMasked && frame.code == code)
            #expect(record.closings == [WebSocketRecorder.Closing(code: code, reason: "gr\u{FC}n")])
            #expect(record.letters == "coxME" && record.error == nil)
            #expect(task.closeCode.rawValue == code && task.closeReason == Data("gr\u{FC}n".utf8))
            #expect(task.state == .completed && task.error == nil)
            await expectFailure(.networkConnectionLost) { try await task.receive() }
            await expectFailure(.networkConnectionLost) { try await task.send(.string("late")) }
            try await peer.waitForEnds()
        }
    }

    @Test func `a close frame without a code is reported as 1005, which is not sent back`() async throws {
        let seen = Delivered<WebSocketPeer.Frame?>()
        try await withOpenTask { connection in
            try connection.sendClose(nil)
            seen(try connection.readFrame())
        } test: { task, recorder, _ in
            let record = try await recorder.completion(of: task)
            let frame = try #require(try await seen.value)
            #expect(frame.opcode == 8 && (frame.payload.isEmpty || frame.code == 1000))
            #expect(record.closings.map(\.code) == [1005])
            #expect(task.closeCode == .noStatusReceived && record.error == nil)
        }
    }

    @Test func `a connection that closes without a close frame fails the task with code 1006`() async throws {
        for isReset in [false, true] {
            let mayEnd = ThreadGate()
            try await withOpenTask { connection in
                mayEnd.wait()
                if isReset { connection.reset() }
            } test: { task, recorder, _ in
                let waiting = Delivered<URLError.Code?>()
                task.receive { if case .failure(let error) = $0 { waiting((error as? URLError)?.code) } }
                mayEnd.open()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .networkConnectionLost && record.letters == "coME")
                #expect((task.error as? URLError)?.code == .networkConnectionLost)
                #expect(try await waiting.value == .networkConnectionLost)
                #expect(task.closeCode == .abnormalClosure && task.closeReason == nil)
            }
        }
    }

    @Test func `messages received before the close frame can be read after it`() async throws {
        try await withOpenTask { connection in
            for number in 0..<3 { try connection.sendText("\(number)") }
            try connection.sendClose(1000)
            _ = try connection.readFrame()
        } test: { task, recorder, _ in
            try await recorder.completion(of: task)
            for number in 0..<3 { #expect(try await task.nextText() == "\(number)") }
            await expectFailure(.networkConnectionLost) { try await task.receive() }
        }
    }

    @Test func `the server's close fails each pending call once`() async throws {
        let mayClose = ThreadGate()
        try await withOpenTask { connection in
            mayClose.wait()
            try connection.sendClose(1001, "bye")
            while let frame = try connection.readFrame(), frame.opcode != 8 {}
        } test: { task, recorder, _ in
            let failed = Delivered<URLError.Code?>()
            for _ in 0..<10 { task.receive { if case .failure(let error) = $0 { failed((error as? URLError)?.code) } } }
            task.sendPing { failed(($0 as? URLError)?.code) }
            mayClose.open()
            try await recorder.completion(of: task)
            try await failed.count(reaches: 11)
            try await task.expectClosed()
            #expect(failed.all == [URLError.Code?](repeating: .networkConnectionLost, count: 11))
        }
    }

    @Test func `both sides close at the same time`() async throws {
        for _ in 0..<20 {
            try await withOpenTask { connection in
                try connection.sendClose(1001, "server")
                _ = try connection.readFrame()
            } test: { task, recorder, peer in
                task.cancel(with: .normalClosure, reason: Data("app".utf8))
                let record = try await recorder.completion(of: task)
                #expect(record.closings == [WebSocketRecorder.Closing(code: 1001, reason: "server")])
                #expect(record.error == nil && record.letters == "coxME")
                try await peer.waitForEnds()
            }
        }
    }

    @Test func `bytes after the server's close frame are ignored`()
        async throws
    {
        let recorder = WebSocketRecorder()
        let late = WebSocketPeer.frame(1, Array("late".utf8)) + WebSocketPeer.frame(9, [1]) + [0xFF, 0xFF]
        try await withScenario(
            delegate: recorder,
            reply: { request in
                .webSocket(request, then: WebSocketPeer.frame(8, [0x03, 0xE8]) + late)
                    .then(.awaitBytes(request.rawHead.count + 8), .shutdownOutput)
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.closings.map(\.code) == [1000])
            await expectFailure(.networkConnectionLost) { try await task.receive() }
            try await server.waitForClose(0)
            let head = try await server.head(0).rawHead
            let frames = ClientFrame.all(Array(server.received(on: 0).dropFirst(head.count)))
            #expect(frames.map { [$0.opcode] + $0.payload } == [[8, 0x03, 0xE8]])
        }
    }

    @Test func `closeCode is not set before the close frame is reported`() async throws {
        // "changed right before the call that reports the change" (docs/DELEGATE-ORDER.md).
        for _ in 0..<10 {
            let recorder = WebSocketRecorder()
            try await withWebSocket(delegate: recorder) { connection in
                try connection.accept(then: WebSocketPeer.frame(8, [0x03, 0xE9]))
                _ = try connection.readFrame()
            } test: { (peer, session) async throws in
                let task = session.webSocketTask(with: peer.url())
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.closeCodeAtOpening == 0 && record.stateAtOpening == .running)
            }
        }
    }
}

extension URLSessionWebSocketTask {
    /// Expects that a few calls fail; when they have failed, the handlers of earlier calls have been called.
    fileprivate func expectClosed() async throws {
        for _ in 0..<3 { await #expect(throws: (any Error).self) { _ = try await self.receive() } }
    }
}
