// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How each direction of a stream task is closed, and when the task completes.
@Suite(.timeLimit(.minutes(1)))
struct StreamClosingTests {
    @Test func `closeWrite ends the direction after pending writes, and reads continue`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            let bytes = connection.rest()
            try connection.write("got \(bytes.count)")
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            for _ in 0..<10 { calls.write(task, [UInt8](repeating: 1, count: 100_000)) }
            task.closeWrite()
            #expect(try await task.piece(100, 100) == StreamPiece("got 1000000", isEnd: true))
            #expect(try await calls.ends().allSatisfy { $0.error == nil })
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.stateAtEnd == .completed)
            #expect(record.letters == "cwrME", "\(record.letters)")
        }
    }

    @Test func `handlers of pending calls are called before didCompleteWithError`() async throws {
        let recorder = StreamRecorder()
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withStream(delegate: recorder) { connection in
            mayEnd.wait()
            connection.reset()
        } test: { (task, _, _) async throws in
            let wasComplete = Delivered<Bool>()
            for _ in 0..<3 {
                task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, error in
                    wasComplete(error == nil || recorder.record(of: task).isComplete)
                }
            }
            mayEnd.open()
            try await recorder.completion(of: task)
            #expect(wasComplete.all == [false, false, false])
        }
    }

    @Test func `closeWrite works before resume, with and without a pending write`() async throws {
        for text in ["", "abc"] {
            let seen = Delivered<[UInt8]>()
            let recorder = StreamRecorder()
            try await withStreamPeer(delegate: recorder) {
                seen($0.rest())
            } test: { (peer, session) async throws in
                let task = session.stream(to: peer.port)
                if !text.isEmpty { task.write(Data(text.utf8), timeout: 0) { _ in } }
                task.closeWrite()
                task.resume()
                #expect(try await seen.value == Array(text.utf8))
                #expect(try await recorder.completion(of: task).error == nil)
            }
        }
    }

    @Test func `writes after closeWrite fail without failing the task`() async throws {
        let recorder = StreamRecorder()
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withStream(delegate: recorder) { connection in
            let bytes = connection.rest()
            mayEnd.wait()
            try connection.write(bytes)
        } test: { (task, _, _) async throws in
            let calls = StreamCalls()
            calls.write(task, "before")
            task.closeWrite()
            calls.write(task, "after")
            calls.write(task, "")
            let ends = try await calls.ends()
            #expect(ends.map { $0.error == nil } == [true, false, false])
            #expect(ends.dropFirst().allSatisfy { $0.error is URLError })
            try await recorder.waitForCallback("w", of: task)
            task.closeWrite()
            task.closeWrite()
            mayEnd.open()
            #expect(try await task.rest() == Array("before".utf8))
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.letters.count { $0 == "w" } == 1)
        }
    }

    @Test func `closeRead waits for earlier reads, and later reads fail`() async throws {
        let recorder = StreamRecorder()
        let mayWrite = ThreadGate()
        defer { mayWrite.open() }
        let seen = Delivered<[UInt8]>()
        try await withStream(delegate: recorder) { connection in
            mayWrite.wait()
            try connection.write("abcd")
            seen(connection.rest())
        } test: { (task, _, session) async throws in
            let calls = StreamCalls()
            calls.read(task, 2, 2)
            calls.read(task, 2, 2)
            task.closeRead()
            calls.read(task, 1, 1)
            try await settle(session, times: 5)
            #expect(!recorder.record(of: task).letters.contains("r"))
            mayWrite.open()
            let ends = try await calls.ends()
            #expect(ends[..<2].map(\.piece) == [StreamPiece("ab"), StreamPiece("cd")])
            #expect(ends[2].error is URLError)
            try await recorder.waitForCallback("r", of: task)
            task.closeRead()
            // Writes still work.
            try await task.send("still")
            task.closeWrite()
            #expect(try await seen.value == Array("still".utf8))
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.letters == "crwME", "\(record.letters)")
        }
    }

    @Test func `closing both sides completes the task, whatever the peer still sends`() async throws {
        for isReadFirst in [false, true] {
            let recorder = StreamRecorder()
            try await withStream(delegate: recorder) { connection in
                try? connection.write([UInt8](repeating: 1, count: 500_000))
                connection.drain()
            } test: { (task, peer, _) async throws in
                if isReadFirst { task.closeRead() }
                task.closeWrite()
                if !isReadFirst { task.closeRead() }
                let record = try await recorder.completion(of: task)
                #expect(record.error == nil && record.letters.sorted() == Array("EMcrw"), "\(record.letters)")
                try await peer.waitForEnds()
            }
        }
    }

    @Test func `the peer's end is reported once, even without a pending read`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, peer, _) async throws in
            try await recorder.waitForCallback("r", of: task)
            #expect(task.state == .running)
            #expect(try await task.piece() == .end)
            try await task.send("still")
            task.closeWrite()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.letters == "crwME", "\(record.letters)")
            try await peer.waitForEnds()
        }
    }

    @Test func `the peer's end is reported once with pending reads and unread bytes`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            try connection.write("abcdef")
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.text(3) == "abc")
            #expect(try await task.rest() == Array("def".utf8))
            #expect(try await task.piece() == .end)
            task.closeWrite()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.letters == "crwME", "\(record.letters)")
        }
    }

    @Test func `closeRead after the peer's end is not reported again`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            try await recorder.waitForCallback("r", of: task)
            task.closeRead()
            task.closeWrite()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.letters == "crwME", "\(record.letters)")
        }
    }

    @Test(arguments: [1, 50_000, 150_000, 400_000, 2_000_000]) func `bytes received before both sides closed are readable`(
        count: Int
    ) async throws {
        let recorder = StreamRecorder()
        let bytes = ScriptedFile.pattern(count + 1)
        try await withStream(delegate: recorder) { connection in
            try connection.write(bytes)
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, peer, session) async throws in
            #expect(try await task.bytes(1) == [bytes[0]])
            task.closeWrite()
            try await peer.waitForEnds()
            try await settle(session)
            #expect(!recorder.record(of: task).isComplete)
            #expect(try await task.rest() == Array(bytes.dropFirst()))
            #expect(try await recorder.completion(of: task).error == nil)
        }
    }

    @Test func `a read after the peer's end reports the end, even if the task is complete`() async throws {
        // Apps read until the end is reported; the task may already be complete by then.
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            try connection.write("abc")
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.text(3) == "abc")
            task.closeWrite()
            #expect(try await recorder.completion(of: task).error == nil)
            for _ in 0..<2 { #expect(try await task.piece() == .end) }
            await #expect(throws: URLError.self) { try await task.send("late") }
        }
    }

    @Test func `both ends closing at the same time loses no bytes`() async throws {
        // The kernel forgets the connection after both FINs have been exchanged.
        let bytes = ScriptedFile.pattern(200_000)
        let recorder = StreamRecorder()
        try await withStreamPeer(delegate: recorder) { connection in
            _ = connection.exchange([bytes])
        } test: { (peer, session) async throws in
            for number in 0..<200 {
                let task = session.stream(to: peer.port)
                let calls = StreamCalls()
                for _ in 0..<(number % 8) {
                    calls.read(task, 1, 10_000)
                    calls.write(task, [UInt8](repeating: 1, count: 1_000 * (number % 5)))
                }
                task.closeWrite()
                task.resume()
                if number % 3 == 0 { try await peer.waitForEnds(number + 1) }
                let read = try await calls.ends().compactMap(\.piece?.bytes).flatMap { $0 }
                let rest = try await task.rest()
                try #require(read.count + rest.count == bytes.count, "task \(number)")
                let record = try await recorder.completion(of: task)
                try #require(record.error == nil, "task \(number): \(String(describing: record.error))")
            }
        }
    }

    @Test func `a peer that closes its side first still receives later writes`() async throws {
        let seen = Delivered<[UInt8]>()
        try await withStream { connection in
            try connection.write("bye")
            connection.shutdownOutput()
            seen(connection.rest())
        } test: { (task, _, _) async throws in
            #expect(try await task.rest() == Array("bye".utf8))
            for _ in 0..<10 { try await task.write(Data(count: 100_000), timeout: 0) }
            task.closeWrite()
            #expect(try await seen.value.count == 1_000_000)
        }
    }

    @Test func `a stream works with a delegate without stream methods, and without a delegate`() async throws {
        for delegate in [nil, SilentDelegate()] as [(any URLSessionDelegate)?] {
            try await withStream(delegate: delegate) { connection in
                try connection.echo()
            } test: { (task, peer, _) async throws in
                try await task.send("hello")
                task.closeWrite()
                #expect(try await task.rest() == Array("hello".utf8))
                try await peer.waitForEnds()
            }
        }
    }

    @Test func `the task's own delegate is called instead of the session's`() async throws {
        let (shared, own) = (StreamRecorder(), StreamRecorder())
        try await withStreamPeer(delegate: shared, streamEcho) { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            task.delegate = own
            task.resume()
            try await task.send("hello")
            task.closeWrite()
            #expect(try await task.rest() == Array("hello".utf8))
            let record = try await own.completion(of: task)
            #expect(record.error == nil && record.letters.contains("w") && record.letters.contains("r"))
            let other = shared.record(of: task)
            #expect(!other.letters.contains("w") && !other.letters.contains("r") && !other.isComplete)
        }
    }
}
