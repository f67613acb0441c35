// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What reads of a stream task deliver: lengths, order, the peer's end.
@Suite(.timeLimit(.minutes(1)))
struct StreamReadTests {
    @Test func `a new task is suspended and has neither request nor response`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            #expect(task.state == .suspended)
            #expect(task.originalRequest == nil && task.currentRequest == nil && task.response == nil && task.error == nil)
            try await settle(session)
            #expect(peer.connectionCount == 0)
            task.resume()
            #expect(task.state == .running)
            try await task.send("hello")
            #expect(try await task.text(5) == "hello")
            #expect(task.originalRequest == nil && task.currentRequest == nil && task.response == nil)
        }
    }

    @Test func `calls made before resume run after it`() async throws {
        try await withStreamPeer { connection in
            try connection.write("welcome")
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = StreamCalls()
            calls.read(task, 7, 7)
            calls.write(task, "one")
            calls.write(task, "two")
            calls.read(task, 6, 6)
            try await settle(session)
            #expect(calls.all.isEmpty && peer.connectionCount == 0)
            task.resume()
            let ends = try await calls.ends()
            #expect(ends.map { $0.piece?.text } == ["welcome", nil, nil, "onetwo"])
            #expect(ends.allSatisfy { $0.error == nil })
        }
    }

    @Test func `a read completes with the first available bytes`() async throws {
        let mayContinue = ThreadGate()
        defer { mayContinue.open() }
        try await withStream { connection in
            try connection.write("ab")
            mayContinue.wait()
            try connection.write("cd")
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.bytes(2) == Array("ab".utf8))
            mayContinue.open()
            #expect(try await task.bytes(2) == Array("cd".utf8))
        }
    }

    @Test(arguments: [0, 1]) func `a minimum of zero or one waits for one byte`(least: Int) async throws {
        let mayContinue = ThreadGate()
        defer { mayContinue.open() }
        try await withStream { connection in
            mayContinue.wait()
            try connection.write("a")
            connection.drain()
        } test: { (task, _, session) async throws in
            let calls = StreamCalls()
            calls.read(task, least, 10)
            try await settle(session)
            #expect(calls.all.isEmpty)
            mayContinue.open()
            #expect(try await calls.ends().map(\.piece) == [StreamPiece("a")])
        }
    }

    @Test func `a read waits for its minimum, however the bytes are split`() async throws {
        let gates = (0..<3).map { _ in ThreadGate() }
        defer { for gate in gates { gate.open() } }
        try await withStream { connection in
            for (gate, text) in zip(gates, ["ab", "cd", "ef"]) {
                gate.wait()
                try connection.write(text)
            }
            connection.drain()
        } test: { (task, _, session) async throws in
            let calls = StreamCalls()
            calls.read(task, 5, 5)
            for gate in gates[..<2] {
                gate.open()
                try await settle(session, times: 5)
                #expect(calls.all.isEmpty)
            }
            gates[2].open()
            #expect(try await calls.ends().map(\.piece) == [StreamPiece("abcde")])
            #expect(try await task.text(1) == "f")
        }
    }

    @Test func `a read returns at most its maximum, and the rest goes to the next read`() async throws {
        try await withStream { connection in
            try connection.write("0123456789")
            connection.drain()
        } test: { (task, _, _) async throws in
            var texts: [String] = []
            for most in [1, 2, 3, 4] { texts.append(try await task.piece(most, most).text) }
            #expect(texts == ["0", "12", "345", "6789"])
        }
    }

    @Test func `a read may be larger than the receive buffer`() async throws {
        let bytes = ScriptedFile.pattern(3_000_000)
        try await withStream { connection in
            try connection.write(bytes)
            connection.drain()
        } test: { (task, _, _) async throws in
            let piece = try await task.piece(3_000_000, 3_000_000)
            #expect(piece.bytes == bytes)
        }
    }

    @Test(arguments: [Int.max, 1 << 40]) func `a read accepts any maximum`(most: Int) async throws {
        try await withStream { connection in
            try connection.write("all")
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.piece(3, most) == StreamPiece("all"))
        }
    }

    @Test func `the peer's end completes a read below its minimum`() async throws {
        try await withStream { connection in
            try connection.write("all")
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.piece(Int.max, Int.max) == StreamPiece("all", isEnd: true))
        }
    }

    @Test func `reads complete in order, each with its own bytes`() async throws {
        try await withStreamPeer { connection in
            for number in 0..<100 { try connection.write([UInt8(number), UInt8(number)]) }
            connection.drain()
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = StreamCalls()
            for _ in 0..<100 { calls.read(task, 2, 2) }
            task.resume()
            let ends = try await calls.ends()
            #expect(ends.map { $0.piece?.bytes } == (0..<100).map { [UInt8($0), UInt8($0)] })
            #expect(calls.answered == Array(0..<100))
        }
    }

    @Test func `handlers are called on the delegate queue`() async throws {
        try await withStream(streamEcho) { (task, _, session) async throws in
            let onQueue = Delivered<Bool>()
            let queue = session.delegateQueue
            task.write(Data("a".utf8), timeout: 0) { _ in onQueue(OperationQueue.current === queue) }
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, _ in onQueue(OperationQueue.current === queue) }
            task.readData(ofMinLength: 2, maxLength: 1, timeout: 0) { _, _, _ in onQueue(OperationQueue.current === queue) }
            try await onQueue.count(reaches: 3)
            #expect(onQueue.all == [true, true, true])
        }
    }

    @Test func `a handler may request the next bytes`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            let all = Delivered<UInt8>()
            @Sendable func next() {
                task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { data, _, error in
                    if let byte = data?.first, error == nil {
                        all(byte)
                        next()
                    }
                }
            }
            next()
            try await task.send("abcdef")
            try await all.count(reaches: 6)
            #expect(all.all == Array("abcdef".utf8))
        }
    }

    // MARK: The peer's end

    @Test func `the last bytes are delivered with the end, and later reads report only the end`() async throws {
        try await withStream { connection in
            try connection.write("abc")
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.piece(10, 20) == StreamPiece("abc", isEnd: true))
            for _ in 0..<3 { #expect(try await task.piece(1, 20) == .end) }
            #expect(try await task.piece(0, 1) == .end)
        }
    }

    @Test func `a read that has its minimum does not wait for the end`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withStream { connection in
            try connection.write("abc")
            mayEnd.wait()
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.piece(3, 100) == StreamPiece("abc"))
            mayEnd.open()
            #expect(try await task.piece(3, 100) == .end)
        }
    }

    @Test func `the end completes all pending reads`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withStream { connection in
            mayEnd.wait()
            try connection.write("abcd")
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            for _ in 0..<4 { calls.read(task, 3, 3) }
            mayEnd.open()
            let ends = try await calls.ends()
            #expect(ends.map(\.piece) == [StreamPiece("abc"), StreamPiece("d", isEnd: true), .end, .end])
        }
    }

    // MARK: Invalid lengths

    @Test(arguments: [(5, 4), (1, 0), (0, 0), (-1, 4), (0, -1), (-5, -4), (Int.min, Int.max), (Int.max, Int.min)])
    func `invalid lengths fail only their own read`(least: Int, most: Int) async throws {
        try await withStreamPeer { connection in
            try connection.write("abcd")
            connection.drain()
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = StreamCalls()
            calls.read(task, 2, 2)
            calls.read(task, least, most)
            calls.read(task, 2, 2)
            task.resume()
            let ends = try await calls.ends()
            #expect(ends.map(\.piece) == [StreamPiece("ab"), nil, StreamPiece("cd")])
            #expect(ends[1].code == .dataLengthExceedsMaximum, "\(String(describing: ends[1].error))")
            await expectFailure(.dataLengthExceedsMaximum) { try await task.piece(least, most) }
            #expect(task.state == .running)
            calls.expectOnce()
        }
    }
}
