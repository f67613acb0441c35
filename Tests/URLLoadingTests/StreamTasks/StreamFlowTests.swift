// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let chunk = [UInt8](repeating: 0x61, count: 65_536)
/// An upper limit, in bytes, for what socket buffers and windows hold; far less than the tests send.
private let windows = 32 << 20

/// Back-pressure in both directions, and suspension.
@Suite(.timeLimit(.minutes(1)))
struct StreamFlowTests {
    @Test(arguments: [false, true]) func `back-pressure reaches the peer if the app does not read`(isSecure: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        let server = try await ScriptedServer.start(
            identity: isSecure ? certificates.valid : nil, sendBuffer: 262_144,
            greeting: { _ in [.repeat(chunk, count: 2_048), .shutdownOutput] }, reply: { _ in [] })
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            let task = session.stream(to: server.port)
            if isSecure { task.startSecureConnection() }
            task.resume()
            #expect(try await task.bytes(chunk.count) == chunk)
            try await settle(session)
            #expect(server.bytesWritten(on: 0) < windows)
            // Each byte that the app reads lets one more byte arrive.
            for _ in 0..<160 { _ = try await task.piece(chunk.count, chunk.count) }
            try await settle(session)
            let written = server.bytesWritten(on: 0)
            #expect(written >= 161 * chunk.count && written < windows + 161 * chunk.count)
            var count = 161 * chunk.count
            while true {
                let piece = try await task.piece(1, 1 << 20)
                count += piece.bytes?.count ?? 0
                if piece.isEnd { break }
            }
            #expect(count == 2_048 * chunk.count)
        }
        try await server.close()
    }

    @Test func `small reads of a large buffer lose no bytes and hold no extra memory`() async throws {
        try await withStream { connection in
            for _ in 0..<16 { try connection.write(chunk) }
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, _) async throws in
            let before = try ProcessProbe.residentBytes()
            var count = 0
            while count < 200_000 {
                let piece = try await task.piece(1, 100)
                count += piece.bytes?.count ?? 0
                try #require(!piece.isEnd)
            }
            count += try await task.rest().count
            #expect(count == 16 * chunk.count)
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
        }
    }

    @Test func `writes wait for a peer that does not read, and continue once it does`() async throws {
        let mayRead = ThreadGate()
        defer { mayRead.open() }
        let count = Delivered<Int>()
        try await withStream { connection in
            connection.limitReceiveBuffer()
            mayRead.wait()
            count(connection.drain())
        } test: { (task, _, session) async throws in
            let sent = Delivered<Bool>()
            let writer = Task {
                for _ in 0..<64 {
                    try await task.write(Data(count: 1 << 20), timeout: 0)
                    sent(true)
                }
            }
            try await sent.count(reaches: 1)
            try await settle(session)
            #expect(sent.all.count < 32, "writes complete although the peer does not read")
            mayRead.open()
            try await writer.value
            task.closeWrite()
            #expect(try await count.value == 64 << 20)
        }
    }

    @Test func `a read larger than every buffer completes`() async throws {
        // The buffer for a read must grow to its minimum.
        try await withStream { connection in
            for _ in 0..<512 { try connection.write(chunk) }
            connection.drain()
        } test: { (task, _, _) async throws in
            #expect(try await task.piece(512 * chunk.count, 512 * chunk.count).bytes?.count == 512 * chunk.count)
        }
    }

    // MARK: Suspension

    @Test func `a suspended task neither reads nor writes until it is resumed`() async throws {
        let seen = Delivered<String>()
        try await withStream { connection in
            for _ in 0..<2 {
                seen(try connection.line())
                try connection.write("answer\n")
            }
            connection.drain()
        } test: { (task, _, session) async throws in
            try await task.send("one\r\n")
            #expect(try await task.line() == "answer\n")
            task.suspend()
            #expect(task.state == .suspended)
            let calls = StreamCalls()
            calls.write(task, "two\r\n")
            calls.read(task, 7, 7)
            try await settle(session)
            #expect(calls.all.isEmpty && seen.all == ["one"])
            task.resume()
            #expect(task.state == .running)
            #expect(try await calls.ends().map(\.piece) == [nil, StreamPiece("answer\n")])
            #expect(seen.all == ["one", "two"])
        }
    }

    @Test func `bytes and the end that arrive during suspension are delivered after it`() async throws {
        let recorder = StreamRecorder()
        let isSuspended = ThreadGate()
        defer { isSuspended.open() }
        try await withStream(delegate: recorder) { connection in
            _ = try connection.read(1)
            isSuspended.wait()
            try connection.write("late")
            connection.shutdownOutput()
            connection.drain()
        } test: { (task, _, session) async throws in
            let calls = StreamCalls()
            calls.read(task, 4, 4)
            calls.read(task, 4, 4)
            try await task.send("a")
            task.suspend()
            try await session.synchronize()
            isSuspended.open()
            try await settle(session)
            #expect(calls.all.isEmpty)
            task.resume()
            #expect(try await calls.ends().compactMap(\.piece?.bytes) == [Array("late".utf8)])
            #expect(try await task.piece() == .end)
        }
    }

    @Test func `back-pressure reaches an endless sender while the task is suspended`() async throws {
        let server = try await ScriptedServer.start(
            sendBuffer: 262_144, greeting: { _ in [.gate("talk"), .repeat(chunk, count: 1_024), .shutdownOutput] },
            reply: { _ in [] })
        try await withSession { (session) async throws in
            let task = session.stream(to: server.port)
            task.resume()
            try await server.reached("talk")
            task.suspend()
            let calls = StreamCalls()
            for _ in 0..<1_024 { calls.read(task, chunk.count, chunk.count) }
            try await session.synchronize()
            server.open("talk")
            try await settle(session)
            #expect(server.bytesWritten(on: 0) < windows && calls.all.isEmpty)
            task.resume()
            #expect(try await calls.ends().allSatisfy { $0.piece?.bytes == chunk })
        }
        try await server.close()
    }

    @Test func `repeated suspending and resuming loses no bytes`() async throws {
        try await withStream(streamEcho) { (task, _, _) async throws in
            let bytes = ScriptedFile.pattern(2_000_000)
            let calls = StreamCalls()
            for start in stride(from: 0, to: bytes.count, by: 10_000) {
                calls.write(task, Array(bytes[start..<(start + 10_000)]))
                if start % 70_000 == 0 { task.suspend() }
                calls.read(task, 10_000, 10_000)
                if start % 70_000 == 0 { task.resume() }
            }
            let ends = try await calls.ends()
            #expect(ends.compactMap(\.piece?.bytes).flatMap { $0 } == bytes)
            #expect(ends.allSatisfy { $0.error == nil })
        }
    }

    @Test func `a task suspended and resumed right after its first resume still connects`() async throws {
        // A lost connection would show as a request timeout.
        try await withStreamPeer(configure: { $0.timeoutIntervalForRequest = 5 }, streamEcho) { (peer, session) async throws in
            for number in 0..<300 {
                let task = session.stream(to: peer.port)
                let calls = StreamCalls()
                calls.write(task, "hello")
                calls.read(task, 5, 5)
                task.resume()
                for _ in 0..<(number % 3 + 1) {
                    task.suspend()
                    task.resume()
                }
                let ends = try await calls.ends()
                try #require(ends.last?.piece == StreamPiece("hello"), "task \(number): \(ends)")
                task.cancel()
            }
            #expect(peer.connectionCount == 300, "a task made more than one connection")
        }
    }

    @Test func `a task suspended and resumed while it connects gets its connection`() async throws {
        let asked = Delivered<Bool>()
        let mayAnswer = ThreadGate()
        defer { mayAnswer.open() }
        try await withStreamPeer { connection in
            while try connection.line() != "" {}
            asked(true)
            mayAnswer.wait()
            try connection.write("HTTP/1.1 200 OK\r\n\r\n")
            try connection.echo()
        } test: { (proxy, direct) async throws in
            try await withSession {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
            } test: { (session) async throws in
                let task = session.stream(to: 7)
                let calls = StreamCalls()
                calls.write(task, "hello")
                calls.read(task, 5, 5)
                task.resume()
                _ = try await asked.value
                task.suspend()
                try await session.synchronize()
                mayAnswer.open()
                try await settle(direct)
                #expect(calls.all.isEmpty)
                task.resume()
                #expect(try await calls.ends().last?.piece == StreamPiece("hello"))
            }
        }
    }
}
