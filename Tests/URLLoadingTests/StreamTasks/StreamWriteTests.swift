// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What writes of a stream task send, and concurrent reads and writes.
@Suite(.timeLimit(.minutes(1)))
struct StreamWriteTests {
    @Test func `writes are sent in the order of their calls`() async throws {
        let seen = Delivered<[UInt8]>()
        try await withStream {
            seen($0.rest())
        } test: { (task, peer, _) async throws in
            let calls = StreamCalls()
            let texts = (0..<200).map { "line \($0)\r\n" }
            for text in texts { calls.write(task, text) }
            task.closeWrite()
            let ends = try await calls.ends()
            #expect(ends.allSatisfy { $0.error == nil })
            #expect(calls.answered == Array(0..<200))
            #expect(String(decoding: try await seen.value, as: UTF8.self) == texts.joined())
        }
    }

    @Test func `an empty write completes in order`() async throws {
        let seen = Delivered<[UInt8]>()
        try await withStreamPeer {
            seen($0.rest())
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = StreamCalls()
            for text in ["", "a", "", "", "b", ""] { calls.write(task, text) }
            try await settle(session, times: 5)
            #expect(calls.all.isEmpty)
            task.resume()
            #expect(try await calls.ends().allSatisfy { $0.error == nil })
            #expect(calls.answered == Array(0..<6))
            try await task.write(Data(), timeout: 0)
            task.closeWrite()
            #expect(try await seen.value == Array("ab".utf8))
        }
    }

    @Test func `a large write arrives complete`() async throws {
        let bytes = ScriptedFile.pattern(8_000_000)
        let isRight = Delivered<Bool>()
        try await withStream {
            isRight($0.rest() == bytes)
        } test: { (task, _, _) async throws in
            try await task.write(Data(bytes), timeout: 0)
            task.closeWrite()
            #expect(try await isRight.value)
        }
    }

    @Test func `a slice of data is sent as it was at the time of the call`() async throws {
        let seen = Delivered<[UInt8]>()
        try await withStreamPeer {
            seen($0.rest())
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            var data = Data("0123456789".utf8)
            task.write(data[3..<6], timeout: 0) { _ in }
            task.write(data, timeout: 0) { _ in }
            data.resetBytes(in: 0..<10)
            task.closeWrite()
            task.resume()
            #expect(try await seen.value == Array("3450123456789".utf8))
        }
    }

    @Test func `a pending read does not block writes`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.read(task, 9, 9)
            for text in ["abc", "def", "ghi"] { try await task.send(text) }
            #expect(try await calls.ends().map(\.piece) == [StreamPiece("abcdefghi")])
        }
    }

    @Test func `a pending write does not block reads`() async throws {
        let mayRead = ThreadGate()
        defer { mayRead.open() }
        let count = Delivered<Int>()
        try await withStream { connection in
            connection.limitReceiveBuffer()
            for number in 0..<50 { try connection.write("line \(number)\n") }
            mayRead.wait()
            count(connection.drain())
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.write(task, [UInt8](repeating: 7, count: 32 << 20))
            for number in 0..<50 { #expect(try await task.line() == "line \(number)\n") }
            #expect(calls.all.isEmpty)
            mayRead.open()
            #expect(try await calls.ends().allSatisfy { $0.error == nil })
            task.closeWrite()
            #expect(try await count.value == 32 << 20)
        }
    }

    @Test func `both sides send at once, more than the socket buffers hold`() async throws {
        let chunk = ScriptedFile.pattern(65_536)
        try await withStream(streamEcho) { (task, _, _) async throws in
            let writer = Task { for _ in 0..<400 { try await task.write(Data(chunk), timeout: 0) } }
            for number in 0..<400 {
                let isRight = try await task.piece(65_536, 65_536).bytes == chunk
                try #require(isRight, "chunk \(number)")
            }
            try await writer.value
        }
    }

    @Test func `calls from many threads each complete once`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            let calls = StreamCalls()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        calls.write(task, "0123456789")
                        calls.read(task, 10, 10)
                    }
                }
            }
            let ends = try await calls.ends()
            #expect(ends.allSatisfy { $0.error == nil })
            #expect(ends.compactMap(\.piece).allSatisfy { $0 == StreamPiece("0123456789") })
            #expect(ends.compactMap(\.piece).count == 200)
            calls.expectOnce()
        }
    }

    @Test func `bytes sent and received are counted`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            try await task.send("0123456789")
            _ = try await task.text(10)
            #expect(task.countOfBytesSent == 10 && task.countOfBytesReceived == 10)
        }
    }
}
