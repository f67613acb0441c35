// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `cancel()` at each stage of a stream task: every completion handler is called exactly once.
@Suite(.timeLimit(.minutes(1)))
struct StreamCancellationTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Cancels the task, and expects that it and all its calls fail as cancelled.
    private func expectCancelled(
        _ task: URLSessionStreamTask, _ calls: StreamCalls, _ recorder: StreamRecorder, letters: String? = "cME",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let before = calls.all.count
        task.cancel()
        let record = try await recorder.completion(of: task)
        #expect(record.code == .cancelled && task.state == .completed, sourceLocation: sourceLocation)
        if let letters { #expect(record.letters == letters, "\(record.letters)", sourceLocation: sourceLocation) }
        _ = try await calls.ends()
        #expect(calls.all.dropFirst(before).allSatisfy { $0.code == .cancelled }, sourceLocation: sourceLocation)
        calls.expectOnce(sourceLocation: sourceLocation)
        await expectFailure(.cancelled, sourceLocation: sourceLocation) { try await task.piece() }
        await expectFailure(.cancelled, sourceLocation: sourceLocation) { try await task.send("late") }
        task.cancel()
        #expect(recorder.faults.isEmpty, sourceLocation: sourceLocation)
    }

    private func waiting(_ task: URLSessionStreamTask) -> StreamCalls {
        let calls = StreamCalls()
        for _ in 0..<3 {
            calls.read(task, 1_000, 1_000, timeout: 50)
            calls.write(task, "abc")
        }
        return calls
    }

    @Test func `a task that is cancelled before it is resumed never connects`() async throws {
        let recorder = StreamRecorder()
        try await withStreamPeer(delegate: recorder, streamEcho) { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = waiting(task)
            task.startSecureConnection()
            calls.read(task)
            task.closeWrite()
            try await expectCancelled(task, calls, recorder)
            try await settle(session)
            #expect(peer.connectionCount == 0)
        }
    }

    @Test func `cancelling while the connection is being made fails all calls`() async throws {
        // The proxy never responds.
        let recorder = StreamRecorder()
        let asked = Delivered<Bool>()
        try await withStreamPeer { connection in
            _ = try connection.line()
            asked(true)
            connection.drain()
        } test: { (proxy, _) async throws in
            try await withSession(delegate: recorder) {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
            } test: { (session) async throws in
                let task = session.stream(to: 7)
                let calls = waiting(task)
                task.resume()
                _ = try await asked.value
                try await expectCancelled(task, calls, recorder)
                try await proxy.waitForEnds()
            }
        }
    }

    @Test func `cancelling right after resuming fails all calls`() async throws {
        let recorder = StreamRecorder()
        try await withStreamPeer(delegate: recorder, streamEcho) { (peer, session) async throws in
            for _ in 0..<50 {
                let task = session.stream(to: peer.port)
                let calls = waiting(task)
                task.resume()
                try await expectCancelled(task, calls, recorder)
            }
        }
    }

    @Test func `cancelling fails all pending reads`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder, streamEcho) { (task, peer, _) async throws in
            try await task.send("hello")
            #expect(try await task.text(5) == "hello")
            let calls = StreamCalls()
            for _ in 0..<5 { calls.read(task, 10, 10) }
            try await expectCancelled(task, calls, recorder)
            try await peer.waitForEnds()
        }
    }

    @Test func `cancelling fails all pending writes`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            connection.limitReceiveBuffer()
            mayEnd.wait()
        } test: { (task, _, session) async throws in
            let calls = StreamCalls()
            for _ in 0..<5 { calls.write(task, [UInt8](repeating: 1, count: 16 << 20)) }
            task.closeWrite()
            try await settle(session)
            #expect(calls.all.count < 5)
            try await expectCancelled(task, calls, recorder)
        }
    }

    @Test func `cancelling in the TLS handshake fails all calls`() async throws {
        let recorder = StreamRecorder()
        let greeted = Delivered<UInt8?>()
        try await withStream(delegate: recorder) { connection in
            greeted(try connection.read(1).first)
            connection.drain()
        } test: { (task, peer, _) async throws in
            task.startSecureConnection()
            let calls = waiting(task)
            #expect(try await greeted.value == 0x16)
            #expect(calls.all.isEmpty)
            try await expectCancelled(task, calls, recorder)
            try await peer.waitForEnds()
        }
    }

    @Test func `cancelling while the delegate handles a server-trust challenge fails all calls`() async throws {
        let recorder = StreamRecorder(answer: { _ in nil })
        let server = try await ScriptedServer.start(identity: certificates.valid, reply: { _ in .ok() })
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.stream(to: server.port)
            task.startSecureConnection()
            let calls = waiting(task)
            task.resume()
            try await recorder.waitForCallback("C", of: task)
            #expect(calls.all.isEmpty)
            try await expectCancelled(task, calls, recorder, letters: "cCME")
        }
        try await server.close()
    }

    @Test func `cancelling a suspended task fails all calls`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder, streamEcho) { (task, peer, _) async throws in
            try await task.send("hello")
            #expect(try await task.text(5) == "hello")
            task.suspend()
            let calls = waiting(task)
            try await expectCancelled(task, calls, recorder)
            try await peer.waitForEnds()
        }
    }

    @Test func `cancelling a task with unread bytes closes its connection`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            try connection.write([UInt8](repeating: 1, count: 10_000))
            connection.drain()
        } test: { (task, peer, _) async throws in
            _ = try await task.bytes(1)
            try await expectCancelled(task, StreamCalls(), recorder)
            try await peer.waitForEnds()
        }
    }

    @Test func `a task can be cancelled after either side was closed`() async throws {
        for isWriting in [false, true] {
            let recorder = StreamRecorder()
            try await withStream(delegate: recorder) {
                $0.drain()
                $0.drain()
            } test: { (task, _, _) async throws in
                let calls = StreamCalls()
                if isWriting { task.closeRead() } else { task.closeWrite() }
                try await recorder.waitForCallback(isWriting ? "r" : "w", of: task)
                // The peer may close its side first.
                task.cancel()
                let record = try await recorder.completion(of: task)
                #expect(record.error == nil || record.code == .cancelled)
                calls.expectOnce()
            }
        }
    }

    @Test func `cancelling in a completion handler fails the other calls`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder, streamEcho) { (task, _, _) async throws in
            let calls = StreamCalls()
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, _ in task.cancel() }
            for _ in 0..<3 { calls.read(task, 10, 10) }
            try await task.send("a")
            #expect(try await recorder.completion(of: task).code == .cancelled)
            #expect(try await calls.ends().map(\.code) == [.cancelled, .cancelled, .cancelled])
        }
    }

    @Test func `cancelling a Swift task that awaits bytes never leaves it waiting`() async throws {
        // Either the cancellation of the Swift task ends the wait, or that of the stream task does.
        try await withStream(streamEcho) { (task, _, _) async throws in
            let reader = Task { try await task.piece() }
            reader.cancel()
            task.cancel()
            await #expect(throws: (any Error).self) { try await reader.value }
        }
    }

    @Test func `a task that is cancelled while many threads use it calls each handler once`() async throws {
        let recorder = StreamRecorder()
        try await withStreamPeer(delegate: recorder, streamEcho) { (peer, session) async throws in
            for _ in 0..<20 {
                let task = session.stream(to: peer.port)
                let calls = StreamCalls()
                task.resume()
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<40 {
                        group.addTask {
                            switch number {
                            case 20: task.cancel()
                            case let number where number & 1 == 0: calls.read(task, 3, 3, timeout: 0.001 * Double(number))
                            default: calls.write(task, "abc")
                            }
                        }
                    }
                }
                try await recorder.completion(of: task)
                _ = try await calls.ends()
                calls.expectOnce()
            }
            #expect(recorder.faults.isEmpty)
        }
    }
}
