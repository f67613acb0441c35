// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Timeouts of reads and writes.
@Suite(.timeLimit(.minutes(2)))
struct StreamTimeoutTests {
    @Test func `a read that times out loses no bytes`() async throws {
        try await withStream { connection in
            try connection.write("abc")
            _ = try connection.read(1)
            try connection.write("def")
            connection.drain()
        } test: { (task, _, _) async throws in
            await expectFailure(.timedOut) { try await task.piece(5, 10, timeout: 0.3) }
            await expectFailure(.timedOut) { try await task.piece(4, 10, timeout: 0.1) }
            #expect(task.state == .running)
            try await task.send("!")
            #expect(try await task.text(6) == "abcdef")
        }
    }

    @Test func `a queued read times out on its own, and leaves the bytes to the others`() async throws {
        let mayWrite = ThreadGate()
        defer { mayWrite.open() }
        try await withStream { connection in
            mayWrite.wait()
            try connection.write("abcdef")
            connection.drain()
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.read(task, 3, 3)
            let late = calls.read(task, 3, 3, timeout: 0.3)
            calls.read(task, 3, 3)
            #expect(try await calls.outcome(of: late).code == .timedOut)
            #expect(calls.answered == [late])
            mayWrite.open()
            #expect(try await calls.ends().map(\.piece) == [StreamPiece("abc"), nil, StreamPiece("def")])
            calls.expectOnce()
        }
    }

    @Test func `the next read continues when the first of several times out`() async throws {
        let mayWrite = ThreadGate()
        defer { mayWrite.open() }
        try await withStream { connection in
            try connection.write("ab")
            mayWrite.wait()
            try connection.write("cd")
            connection.drain()
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            let late = calls.read(task, 3, 3, timeout: 0.3)
            calls.read(task, 2, 2)
            calls.read(task, 2, 2)
            #expect(try await calls.outcome(of: late).code == .timedOut)
            try await calls.answers(reach: 2)
            mayWrite.open()
            #expect(try await calls.ends().map(\.piece) == [nil, StreamPiece("ab"), StreamPiece("cd")])
        }
    }

    @Test(arguments: [0, -1, -Double.infinity, .nan]) func `only a positive timeout counts`(timeout: TimeInterval) async throws {
        let mayWrite = ThreadGate()
        defer { mayWrite.open() }
        try await withStream { connection in
            mayWrite.wait()
            try connection.write("abc")
            try connection.write(connection.read(3))
            connection.drain()
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.read(task, 3, 3, timeout: timeout)
            calls.write(task, Array("def".utf8), timeout: timeout)
            try await waitOut(0.3, times: 2)
            #expect(calls.all.allSatisfy { $0.error == nil })
            mayWrite.open()
            #expect(try await calls.ends().first?.piece == StreamPiece("abc"))
            #expect(try await task.text(3) == "def")
        }
    }

    @Test(arguments: [Double.infinity, .greatestFiniteMagnitude, 1e12]) func `an infinite or huge timeout means no timeout`(
        timeout: TimeInterval
    ) async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.read(task, 3, 3, timeout: timeout)
            calls.write(task, Array("abc".utf8), timeout: timeout)
            let ends = try await calls.ends()
            #expect(ends.first?.piece == StreamPiece("abc") && ends.allSatisfy { $0.error == nil })
        }
    }

    @Test func `a timeout that did not fire has no effect later`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.write(task, Array("abc".utf8), timeout: 0.5)
            calls.read(task, 3, 3, timeout: 0.5)
            let ends = try await calls.ends()
            guard ends.allSatisfy({ $0.error == nil }) else { return }
            try await waitOut(0.4, times: 2)
            calls.expectOnce()
            #expect(task.state == .running)
            try await task.send("still")
            #expect(try await task.text(5) == "still")
        }
    }

    @Test func `a write that times out halfway breaks the stream`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            connection.limitReceiveBuffer()
            mayEnd.wait()
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.read(task)
            calls.write(task, [UInt8](repeating: 1, count: 32 << 20), timeout: 0.5)
            calls.write(task, "behind")
            let record = try await recorder.completion(of: task)
            #expect(record.code == .timedOut)
            #expect(try await calls.ends().map(\.code) == [.timedOut, .timedOut, .timedOut])
            calls.expectOnce()
            await expectFailure(.timedOut) { try await task.send("late") }
        }
    }

    @Test func `a write that times out before it started sends nothing, and the stream keeps working`() async throws {
        let mayRead = ThreadGate()
        defer { mayRead.open() }
        let seen = Delivered<[UInt8]>()
        try await withStream { connection in
            connection.limitReceiveBuffer()
            mayRead.wait()
            seen(connection.rest())
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.write(task, [UInt8](repeating: 1, count: 32 << 20))
            let late = calls.write(task, Array("late".utf8), timeout: 0.3)
            calls.write(task, "behind")
            #expect(try await calls.outcome(of: late).code == .timedOut)
            #expect(calls.answered == [late] && task.state == .running)
            mayRead.open()
            #expect(try await calls.ends().map(\.code) == [nil, .timedOut, nil])
            task.closeWrite()
            let bytes = try await seen.value
            #expect(bytes.count == 32 << 20 + 6 && bytes.suffix(6) == Array("behind".utf8)[...])
        }
    }

    @Test func `calls that wait for a connection time out, and the task continues`() async throws {
        // The proxy delays its response, so the connection is still being made.
        let mayAnswer = ThreadGate()
        defer { mayAnswer.open() }
        try await withStreamPeer { connection in
            while try connection.line() != "" {}
            mayAnswer.wait()
            try connection.write("HTTP/1.1 200 OK\r\n\r\n")
            try connection.echo()
        } test: { (peer, _) async throws in
            try await withSession {
                $0.connectionProxyDictionary = proxyDictionary(http: peer.port, https: peer.port)
            } test: { (session) async throws in
                let task = session.stream(to: 7)
                let calls = StreamCalls()
                task.resume()
                let read = calls.read(task, 1, 10, timeout: 0.3)
                let write = calls.write(task, Array("lost".utf8), timeout: 0.3)
                calls.write(task, "sent")
                #expect(try await calls.outcome(of: read).code == .timedOut)
                #expect(try await calls.outcome(of: write).code == .timedOut)
                #expect(task.state == .running)
                mayAnswer.open()
                #expect(try await task.text(4) == "sent")
            }
        }
    }

    @Test func `a stream may be idle for longer than the request timeout`() async throws {
        try await withStream(configure: { $0.timeoutIntervalForRequest = 0.5 }, streamEcho) { (task, _, _) async throws in
            try await task.send("hello")
            #expect(try await task.text(5) == "hello")
            let calls = StreamCalls()
            calls.read(task, 5, 5)
            try await waitOut(0.5, times: 3)
            #expect(task.state == .running && calls.all.isEmpty)
            try await task.send("again")
            #expect(try await calls.ends().map(\.piece) == [StreamPiece("again")])
        }
    }

    @Test func `timeouts run neither before resume nor while the task is suspended`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = StreamCalls()
            calls.read(task, 5, 5, timeout: 0.5)
            calls.write(task, Array("ab".utf8), timeout: 0.5)
            try await waitOut(0.5, times: 2)
            #expect(calls.all.isEmpty)
            task.resume()
            let ends = try await calls.ends()
            #expect(ends.map(\.code) == [.timedOut, nil])
            #expect(try await task.text(2) == "ab")

            let more = StreamCalls()
            more.read(task, 5, 5, timeout: 1)
            task.suspend()
            try await waitOut(0.5, times: 4)
            #expect(more.all.isEmpty)
            task.resume()
            #expect(try await more.ends().map(\.code) == [.timedOut])
        }
    }
}
