// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `maximumMessageSize`: which messages are received, and how larger ones fail.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketLimitTests {
    @Test(arguments: [(nil, 1_048_576), (10, 10), (0, 0), (70_000, 70_000)] as [(Int?, Int)])
    func `a message of the maximum size is received, and a larger one fails`(set: Int?, maximum: Int) async throws {
        for opcode in [1, 2] as [UInt8] {
            for pieces in [1, 3] {
                let seen = Delivered<WebSocketPeer.Frame?>()
                let recorder = WebSocketRecorder()
                try await withWebSocket(delegate: recorder) { connection in
                    try connection.accept()
                    try Self.send(maximum, in: pieces, opcode, to: connection)
                    try Self.send(maximum + 1, in: pieces, opcode, to: connection)
                    seen(try connection.readFrame())
                    try connection.drain()
                } test: { (peer, session) async throws in
                    let task = session.webSocketTask(with: peer.url())
                    if let set { task.maximumMessageSize = set }
                    task.resume()
                    #expect(try await task.next() == WireMessage(opcode: opcode, payload: [UInt8](repeating: 97, count: maximum)))
                    await expectFailure(.dataLengthExceedsMaximum) { try await task.receive() }
                    let frame = try #require(try await seen.value)
                    #expect(frame.opcode == 8 && frame.code == 1009 && frame.wasMasked)
                    let record = try await recorder.completion(of: task)
                    #expect(record.code == .dataLengthExceedsMaximum && record.letters == "coME")
                    try await peer.waitForEnds()
                }
            }
        }
    }

    private static func send(_ count: Int, in pieces: Int, _ opcode: UInt8, to connection: WebSocketPeer.Connection) throws {
        let payload = [UInt8](repeating: 97, count: count)
        let cuts = (0...pieces).map { count * $0 / pieces }
        for piece in 0..<pieces {
            try connection.send(
                piece == 0 ? opcode : 0, Array(payload[cuts[piece]..<cuts[piece + 1]]), isFinal: piece == pieces - 1)
        }
    }

    @Test func `a message that is too large fails all pending and later calls`() async throws {
        let mayTalk = ThreadGate()
        try await withWebSocket { connection in
            try connection.accept()
            mayTalk.wait()
            try connection.send(2, [UInt8](repeating: 0, count: 101))
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 100
            task.resume()
            let failed = Delivered<URLError.Code?>()
            for _ in 0..<3 { task.receive { if case .failure(let error) = $0 { failed((error as? URLError)?.code) } } }
            task.sendPing { failed(($0 as? URLError)?.code) }
            mayTalk.open()
            try await failed.count(reaches: 4)
            task.receive { if case .failure(let error) = $0 { failed((error as? URLError)?.code) } }
            task.send(.string("late")) { failed(($0 as? URLError)?.code) }
            task.sendPing { failed(($0 as? URLError)?.code) }
            try await failed.count(reaches: 7)
            #expect(failed.all == [URLError.Code?](repeating: .dataLengthExceedsMaximum, count: 7))
        }
    }

    @Test func `a frame that announces too much fails before its payload arrives`() async throws {
        let lengths: [[UInt8]] = [
            [126, 0x00, 0x80], [127, 0, 0, 0, 0, 0, 1, 0, 0], [127, 0, 0, 0, 0x10, 0, 0, 0, 0],
            [127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        ]
        for length in lengths {
            let seen = Delivered<Int?>()
            // The 101 first, then the header of a frame without its payload.
            try await withWebSocket { connection in
                try connection.accept()
                try connection.write([0x82] + length)
                seen(try connection.readFrame()?.code)
                try connection.drain()
            } test: { (peer, session) async throws in
                let task = session.webSocketTask(with: peer.url())
                task.maximumMessageSize = 100
                task.resume()
                await expectFailure(.dataLengthExceedsMaximum, in: "\(length)") { try await task.receive() }
                #expect(try await seen.value == 1009, "\(length)")
            }
        }
    }

    @Test func `fragments that exceed the maximum together fail before the last one`() async throws {
        let seen = Delivered<Int?>()
        try await withWebSocket { connection in
            try connection.accept()
            try connection.send(2, [UInt8](repeating: 0, count: 60), isFinal: false)
            try connection.send(0, [UInt8](repeating: 0, count: 41), isFinal: false)
            seen(try connection.readFrame()?.code)
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 100
            task.resume()
            await expectFailure(.dataLengthExceedsMaximum) { try await task.receive() }
            #expect(try await seen.value == 1009)
        }
    }

    @Test func `messages before one that is too large are received`() async throws {
        try await withWebSocket { connection in
            try connection.accept()
            for number in 0..<3 { try connection.sendText("\(number)") }
            try connection.send(2, [UInt8](repeating: 0, count: 101))
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 100
            task.resume()
            for number in 0..<3 { #expect(try await task.nextText() == "\(number)") }
            await expectFailure(.dataLengthExceedsMaximum) { try await task.receive() }
        }
    }

    @Test func `control frames do not count toward the maximum`() async throws {
        try await withWebSocket { connection in
            try connection.accept()
            try connection.send(9, [UInt8](repeating: 1, count: 125))
            _ = try connection.readFrame()
            try connection.send(10, [UInt8](repeating: 1, count: 125))
            try connection.send(1, Array("12345".utf8), isFinal: false)
            try connection.send(9, [UInt8](repeating: 1, count: 125))
            try connection.send(0, Array("67890".utf8))
            try connection.drain()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 10
            task.resume()
            #expect(try await task.nextText() == "1234567890")
        }
    }

    @Test func `the maximum can be set while the task runs, and applies only to received messages`() async throws {
        try await withWebSocket { connection in
            try connection.accept()
            while let frame = try connection.readFrame() {
                // Sends `n` bytes in response to the text n; ignores other messages.
                if frame.opcode == 1, let count = Int(frame.text) { try connection.send(2, [UInt8](repeating: 0, count: count)) }
            }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.maximumMessageSize = 2
            task.resume()
            try await task.send(.string("2"))
            #expect(try await task.next().payload.count == 2)
            try await task.send(.data(Data(count: 5_000)))
            task.maximumMessageSize = 5_000
            #expect(task.maximumMessageSize == 5_000)
            try await task.send(.string("5000"))
            #expect(try await task.next().payload.count == 5_000)
            try await task.send(.string("5001"))
            await expectFailure(.dataLengthExceedsMaximum) { try await task.receive() }
        }
    }
}
