// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Pings and pongs of the app and of the server (RFC 6455, sections 5.5.2 and 5.5.3).
@Suite(.timeLimit(.minutes(1)))
struct WebSocketPingTests {
    @Test func `pong handlers are called in the order of the pings`() async throws {
        try await withWebSocket(echoing) { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let calls = Delivered<Int>()
            for number in 0..<20 { task.sendPing { calls($0 == nil ? number : -1) } }
            try await calls.count(reaches: 20)
            #expect(calls.all == Array(0..<20))
        }
    }

    @Test func `a ping is a masked control frame of at most 125 bytes`() async throws {
        let seen = Delivered<WebSocketPeer.Frame>()
        try await withWebSocket { connection in
            try connection.accept()
            guard let frame = try connection.readFrame() else { return }
            seen(frame)
            try connection.send(10, frame.payload)
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await task.ping()
            let frame = try await seen.value
            #expect(frame.opcode == 9 && frame.isFinal && frame.wasMasked && frame.payload.count <= 125)
        }
    }

    @Test func `a pong for the latest ping answers the earlier ones too`() async throws {
        // "MAY elect to send a Pong frame for only the most recently processed Ping frame" (RFC 6455, section 5.5.3).
        let payloads = Delivered<[UInt8]>()
        try await withWebSocket { connection in
            try connection.accept()
            for _ in 0..<3 { if let frame = try connection.readFrame() { payloads(frame.payload) } }
            try connection.send(10, payloads.all.last ?? [])
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let calls = Delivered<Int>()
            for number in 0..<3 { task.sendPing { calls($0 == nil ? number : -1) } }
            try await calls.count(reaches: 3)
            #expect(calls.all == [0, 1, 2])
        }
    }

    @Test func `the server's pings are answered with their payload`() async throws {
        let payloads: [[UInt8]] = [[], [0], Array("hello".utf8), [UInt8](repeating: 0xFF, count: 125)]
        let pongs = Delivered<WebSocketPeer.Frame>()
        try await withWebSocket { connection in
            try connection.accept()
            for payload in payloads {
                try connection.send(9, payload)
                if let frame = try connection.readFrame() { pongs(frame) }
            }
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await pongs.count(reaches: payloads.count)
            #expect(pongs.all.map(\.opcode) == [10, 10, 10, 10])
            #expect(pongs.all.map(\.payload) == payloads)
            #expect(pongs.all.allSatisfy { $0.wasMasked && $0.isFinal })
        }
    }

    @Test func `every ping of a batch is answered`() async throws {
        let pongs = Delivered<[UInt8]>()
        try await withWebSocket { connection in
            try connection.accept()
            try connection.write((0..<20).flatMap { WebSocketPeer.frame(9, [UInt8($0)]) })
            for _ in 0..<20 { if let frame = try connection.readFrame() { pongs(frame.payload) } }
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await pongs.count(reaches: 20)
            #expect(pongs.all == (0..<20).map { [UInt8($0)] })
        }
    }

    @Test func `a ping interval that is not a positive number means no pings`() async throws {
        try await withWebSocket(echoing) { (peer, session) async throws in
            for interval in [Double.nan, .infinity, -.infinity, 0, -1] {
                let task = session.webSocketTask(with: peer.url())
                task.pingInterval = interval
                #expect(task.pingInterval == nil)
                task.resume()
                try await task.send(.string("a"))
                #expect(try await task.nextText() == "a")
                task.cancel()
            }
        }
    }

    @Test func `pings are answered while the app does not receive`() async throws {
        let pongs = Delivered<[UInt8]>()
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            for number in 0..<10 {
                try connection.sendText("message \(number)")
                try connection.send(9, [UInt8(number)])
                if let frame = try connection.readFrame() { pongs(frame.payload) }
            }
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await pongs.count(reaches: 10)
            #expect(pongs.all == (0..<10).map { [UInt8($0)] })
            for number in 0..<10 { #expect(try await task.nextText() == "message \(number)") }
        }
    }

    @Test func `an unsolicited pong is ignored`() async throws {
        let mayAnswer = ThreadGate()
        try await withWebSocket { connection in
            try connection.accept()
            try connection.send(10, [9, 9, 9])
            try connection.send(10, [])
            guard let ping = try connection.readFrame() else { return }
            try connection.send(10, [9, 9, 9])
            try connection.sendText("said")
            mayAnswer.wait()
            try connection.send(10, ping.payload)
            try connection.send(10, ping.payload)
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let calls = Delivered<String>()
            task.sendPing { calls("pong \($0 == nil)") }
            task.receive { _ in calls("message") }
            try await calls.count(reaches: 1)
            #expect(calls.all == ["message"], "a pong with another payload answered the ping")
            mayAnswer.open()
            try await calls.count(reaches: 2)
            #expect(calls.all == ["message", "pong true"])
            try await task.ping()
            #expect(calls.all.count == 2)
        }
    }

    @Test func `a ping without a pong fails when the connection ends`() async throws {
        let mayEnd = ThreadGate()
        try await withWebSocket { connection in
            try connection.accept()
            _ = try connection.readFrame()
            mayEnd.wait()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let calls = Delivered<URLError.Code?>()
            task.sendPing { calls(($0 as? URLError)?.code) }
            mayEnd.open()
            #expect(try await calls.value == .networkConnectionLost)
            task.sendPing { calls(($0 as? URLError)?.code) }
            try await calls.count(reaches: 2)
            #expect(calls.all == [.networkConnectionLost, .networkConnectionLost])
        }
    }

    // MARK: Automatic pings

    @Test func `a server that does not answer the task's own pings times out`() async throws {
        let recorder = WebSocketRecorder()
        let count = Delivered<Int>()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.accept()
            while let frame = try connection.readFrame() { if frame.opcode == 9 { count(frame.payload.count) } }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.pingInterval = 0.05
            task.resume()
            await expectFailure(.timedOut) { try await task.receive() }
            let record = try await recorder.completion(of: task)
            #expect(record.code == .timedOut)
            #expect(record.letters == "coME")
            #expect(task.closeCode == .abnormalClosure)
            #expect(!count.all.isEmpty)
            try await peer.waitForEnds()
        }
    }

    @Test func `a server that answers stays connected, and the app's pings are separate`() async throws {
        let pings = Delivered<Int>()
        try await withWebSocket { connection in
            try connection.accept()
            while let frame = try connection.readFrame() {
                switch frame.opcode {
                case 9:
                    pings(1)
                    try connection.send(10, frame.payload)
                case 8: return try connection.send(8, frame.payload)
                default: try connection.send(frame.opcode, frame.payload)
                }
            }
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.pingInterval = 0.5
            task.resume()
            let calls = Delivered<Int>()
            for number in 0..<10 { task.sendPing { calls($0 == nil ? number : -1) } }
            // Ten pings are the app's, and three the task's own.
            try await pings.count(reaches: 13)
            try await task.send(.string("alive"))
            #expect(try await task.nextText() == "alive")
            try await calls.count(reaches: 10)
            #expect(calls.all == Array(0..<10))
            #expect(task.state == .running && task.error == nil)
        }
    }

    @Test func `a pong behind unread messages does not time out`() async throws {
        // The time that the task waits for the app to receive does not count toward the ping timeout.
        try await withWebSocket { connection in
            try connection.accept()
            let chunk = [UInt8](repeating: 1, count: 65_536)
            for _ in 0..<64 { try connection.send(2, chunk) }
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.pingInterval = 0.25
            task.resume()
            try await waitOut(0.3, times: 4)
            #expect(task.state == .running)
            for number in 0..<64 {
                let count = try await task.next().payload.count
                try #require(count == 65_536, "message \(number)")
            }
            try await task.send(.string("alive"))
            #expect(try await task.nextText() == "alive")
        }
    }
}
