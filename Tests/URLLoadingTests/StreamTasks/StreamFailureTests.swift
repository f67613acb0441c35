// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Connections that cannot be made, and connections that break.
@Suite(.timeLimit(.minutes(1)))
struct StreamFailureTests {
    /// Makes two reads and two writes.
    private func calls(_ task: URLSessionStreamTask) -> StreamCalls {
        let calls = StreamCalls()
        for _ in 0..<2 {
            calls.read(task, 10, 10)
            calls.write(task, "abc")
        }
        return calls
    }

    /// Expects that pending and later calls fail with the task's error.
    private func expectFailure(
        of task: URLSessionStreamTask, _ calls: StreamCalls, _ recorder: StreamRecorder, _ codes: [URLError.Code],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let record = try await recorder.completion(of: task)
        let code = try #require(record.code, "\(String(describing: record.error))", sourceLocation: sourceLocation)
        #expect(codes.contains(code), "\(code.rawValue)", sourceLocation: sourceLocation)
        #expect(record.stateAtEnd == .completed && task.state == .completed, sourceLocation: sourceLocation)
        #expect((task.error as? URLError)?.code == code, sourceLocation: sourceLocation)
        let ends = try await calls.ends()
        #expect(ends.map(\.code) == ends.map { _ in code }, sourceLocation: sourceLocation)
        calls.expectOnce(sourceLocation: sourceLocation)
        for _ in 0..<2 {
            await URLLoadingTests.expectFailure(code, sourceLocation: sourceLocation) { try await task.piece() }
            await URLLoadingTests.expectFailure(code, sourceLocation: sourceLocation) { try await task.send("late") }
        }
        // These calls have no effect on a task that has failed.
        task.closeRead()
        task.closeWrite()
        task.startSecureConnection()
        task.captureStreams()
        #expect(recorder.faults.isEmpty, sourceLocation: sourceLocation)
    }

    @Test func `a refused port fails the task`() async throws {
        let port = try RefusingPort()
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.stream(to: port.number)
            let calls = calls(task)
            task.resume()
            try await expectFailure(of: task, calls, recorder, [.cannotConnectToHost])
            #expect(recorder.record(of: task).letters == "cME")
        }
    }

    @Test func `an unknown host name fails the task`() async throws {
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.stream(to: 7, host: "name.invalid")
            let calls = calls(task)
            task.resume()
            try await expectFailure(of: task, calls, recorder, [.cannotFindHost, .dnsLookupFailed])
        }
    }

    @Test(arguments: ["", " ", "a b", "a/b", "a\r\nb", "user@host", "[::1", "\0", String(repeating: "a", count: 70_000)])
    func `an invalid host name fails the task`(host: String) async throws {
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.stream(to: 7, host: host)
            let calls = calls(task)
            task.resume()
            let codes: [URLError.Code] = [.cannotFindHost, .dnsLookupFailed, .badURL, .cannotConnectToHost]
            try await expectFailure(of: task, calls, recorder, codes)
        }
    }

    @Test(arguments: [0, -1, 65_536, Int.max, Int.min]) func `an invalid port fails the task`(port: Int) async throws {
        let recorder = StreamRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let task = session.stream(to: port)
            let calls = calls(task)
            task.resume()
            try await expectFailure(of: task, calls, recorder, [.cannotConnectToHost, .badURL])
        }
    }

    @Test func `a task connects to a host by name, by IPv4 address and by IPv6 address`() async throws {
        try await withStreamPeer(streamEcho) { (peer, session) async throws in
            for host in ["localhost", "127.0.0.1", "LOCALHOST"] {
                let task = session.stream(to: peer.port, host: host)
                task.resume()
                try await task.send("hello")
                #expect(try await task.text(5) == "hello", "\(host)")
            }
        }
        let server = try await ScriptedServer.start(address: "::1", greeting: { _ in [.write("six")] }, reply: { _ in [] })
        try await withSession { (session) async throws in
            for host in ["::1", "[::1]"] {
                let task = session.stream(to: server.port, host: host)
                task.resume()
                #expect(try await task.text(3) == "six", "\(host)")
            }
        }
        try await server.close()
    }

    @Test func `a reset fails the task and all pending calls`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            connection.limitReceiveBuffer()
            try connection.write("abc")
            mayEnd.wait()
            connection.reset()
        } test: { (task, _, session) async throws in
            #expect(try await task.text(3) == "abc")
            let calls = StreamCalls()
            calls.read(task, 10, 10)
            calls.read(task, 10, 10)
            calls.write(task, [UInt8](repeating: 1, count: 32 << 20))
            calls.write(task, "behind")
            try await settle(session, times: 5)
            mayEnd.open()
            try await expectFailure(of: task, calls, recorder, [.networkConnectionLost])
        }
    }

    @Test func `bytes received before a reset are still readable`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            try connection.write("hello")
            mayEnd.wait()
            connection.reset()
        } test: { (task, peer, session) async throws in
            #expect(try await task.text(1) == "h")
            mayEnd.open()
            try await peer.waitForEnds()
            // When a second task of the session has finished, the reset has been processed.
            let other = session.stream(to: peer.port)
            other.resume()
            _ = try? await other.rest()
            #expect(try await task.text(2) == "el")
            #expect(try await task.text(2) == "lo")
            #expect(try await recorder.completion(of: task).code == .networkConnectionLost)
        }
    }

    @Test func `a reset fails a task without pending calls`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { connection in
            mayEnd.wait()
            connection.reset()
        } test: { (task, peer, _) async throws in
            try await peer.waitForConnections(1)
            mayEnd.open()
            // The reset may arrive before the task has its connection.
            try await expectFailure(of: task, StreamCalls(), recorder, [.networkConnectionLost, .cannotConnectToHost])
        }
    }

    @Test func `writing to a peer that closed fails the task`() async throws {
        let recorder = StreamRecorder()
        try await withStream(delegate: recorder) { _ in
        } test: { (task, peer, _) async throws in
            try await recorder.waitForCallback("r", of: task)
            #expect(try await task.piece() == .end)
            var count = 0
            do {
                while count < 10_000 {
                    try await task.send("anybody there?")
                    count += 1
                }
                Issue.record("the writes never fail")
            } catch {
                #expect((error as? URLError)?.code == .networkConnectionLost, "\(error)")
            }
            #expect(try await recorder.completion(of: task).code == .networkConnectionLost)
        }
    }

    @Test func `a completion handler called with a failure may make another call`() async throws {
        let port = try RefusingPort()
        try await withSession { (session) async throws in
            let task = session.stream(to: port.number)
            let codes = Delivered<URLError.Code?>()
            @Sendable func again(_ times: Int) {
                task.write(Data("a".utf8), timeout: 0) { error in
                    codes((error as? URLError)?.code)
                    if times > 1 { again(times - 1) }
                }
            }
            again(5)
            task.resume()
            try await codes.count(reaches: 5)
            #expect(codes.all == [URLError.Code?](repeating: .cannotConnectToHost, count: 5))
        }
    }
}
