// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `captureStreams`: hands the connection over as an input stream and an output stream.
@Suite(.timeLimit(.minutes(1)))
struct StreamCaptureTests {
    /// Sendable because the delegate hands the streams over before the test uses them, and then only one thread uses them.
    private final class Captured: @unchecked Sendable {
        let input: InputStream
        let output: OutputStream
        let inputStatus: Stream.Status
        let outputStatus: Stream.Status

        init(_ input: InputStream, _ output: OutputStream) {
            (self.input, self.output) = (input, output)
            (inputStatus, outputStatus) = (input.streamStatus, output.streamStatus)
        }

        func open() {
            input.open()
            output.open()
        }

        func close() {
            input.close()
            output.close()
        }

        /// Reads exactly `count` bytes, or fewer at the end; blocks.
        func read(_ count: Int, atMost most: Int = 65_536) -> [UInt8] {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: most)
            while bytes.count < count {
                let read = input.read(&buffer, maxLength: min(most, count - bytes.count))
                guard read > 0 else { break }
                bytes += buffer[..<read]
            }
            return bytes
        }

        /// Writes all bytes, or as many as the stream accepts; blocks.
        @discardableResult
        func write(_ bytes: [UInt8]) -> Int {
            var sent = 0
            while sent < bytes.count {
                let count = bytes[sent...].withUnsafeBufferPointer { buffer in
                    buffer.baseAddress.map { output.write($0, maxLength: buffer.count) } ?? 0
                }
                guard count > 0 else { break }
                sent += count
            }
            return sent
        }
    }

    private final class CapturingDelegate: NSObject, URLSessionStreamDelegate {
        let streams = Delivered<Captured>()
        let stateThen = Delivered<URLSessionTask.State>()
        let letters = Watched("")

        func urlSession(
            _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
            outputStream: OutputStream
        ) {
            letters.change { $0 += "S" }
            stateThen(streamTask.state)
            streams(Captured(inputStream, outputStream))
        }

        func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { letters.change { $0 += "r" } }

        func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { letters.change { $0 += "w" } }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            letters.change { $0 += "E" }
        }
    }

    /// Runs blocking work on its own thread.
    private func blocking<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async throws -> Result {
        let result = Delivered<Result>()
        Thread.detachNewThread { result(work()) }
        return try await result.value
    }

    private func withCaptured(
        _ script: @escaping @Sendable (StreamPeer.Connection) throws -> Void = streamEcho,
        before: (URLSessionStreamTask) async throws -> Void = { _ in },
        test: (Captured, CapturingDelegate, StreamPeer, URLSession) async throws -> Void
    ) async throws {
        let capturingDelegate = CapturingDelegate()
        try await withStream(delegate: capturingDelegate, script) { (task, peer, session) async throws in
            try await before(task)
            task.captureStreams()
            try await test(try await capturingDelegate.streams.value, capturingDelegate, peer, session)
        }
    }

    @Test func `the delegate receives unopened streams, and the task completes`() async throws {
        try await withCaptured { (streams, capturingDelegate, _, session) async throws in
            #expect(streams.inputStatus == .notOpen && streams.outputStatus == .notOpen)
            #expect(try await capturingDelegate.stateThen.value == .completed)
            try await settle(session, times: 5)
            #expect(capturingDelegate.letters.read { $0 } == "S")
            #expect(await session.allTasks.isEmpty)
        }
    }

    @Test func `opened streams exchange bytes with the peer`() async throws {
        try await withCaptured { (streams, _, _, _) async throws in
            let text = try await blocking {
                streams.open()
                streams.write(Array("hello".utf8))
                return String(decoding: streams.read(5), as: UTF8.self)
            }
            #expect(text == "hello")
            #expect(streams.input.streamStatus == .open && streams.output.streamStatus == .open)
            streams.close()
            #expect(streams.input.streamStatus == .closed && streams.output.streamStatus == .closed)
        }
    }

    @Test func `captureStreams waits for earlier calls, and bytes read ahead come first`() async throws {
        let capturingDelegate = CapturingDelegate()
        try await withStreamPeer(delegate: capturingDelegate) { connection in
            try connection.write("abcdefgh")
            #expect(try connection.read(3) == Array("one".utf8))
            try connection.write("ij")
            connection.drain()
        } test: { (peer, session) async throws in
            let task = session.stream(to: peer.port)
            let calls = StreamCalls()
            calls.read(task, 3, 3)
            calls.write(task, "one")
            task.captureStreams()
            task.resume()
            #expect(try await calls.ends().map { $0.piece?.text } == ["abc", nil])
            let streams = try await capturingDelegate.streams.value
            let text = try await blocking {
                streams.open()
                return String(decoding: streams.read(7), as: UTF8.self)
            }
            #expect(text == "defghij")
            streams.close()
        }
    }

    @Test func `calls after captureStreams fail`() async throws {
        let capturingDelegate = CapturingDelegate()
        try await withStream(delegate: capturingDelegate, streamEcho) { (task, _, _) async throws in
            task.captureStreams()
            let calls = StreamCalls()
            calls.read(task)
            calls.write(task, "late")
            #expect(try await calls.ends().allSatisfy { $0.error is URLError })
            _ = try await capturingDelegate.streams.value
            await #expect(throws: URLError.self) { try await task.piece() }
            await #expect(throws: URLError.self) { try await task.send("late") }
            // None of the failed writes was sent.
            let streams = try await capturingDelegate.streams.value
            let text = try await blocking {
                streams.open()
                streams.write(Array("hello".utf8))
                return String(decoding: streams.read(5), as: UTF8.self)
            }
            #expect(text == "hello")
            streams.close()
        }
    }

    @Test func `blocking threads send and receive large amounts at once`() async throws {
        let bytes = ScriptedFile.pattern(5_000_000)
        try await withCaptured { (streams, _, _, _) async throws in
            let input = Captured(streams.input, streams.output)
            streams.open()
            let written = Delivered<Int>()
            Thread.detachNewThread { written(streams.write(bytes)) }
            let isRight = try await blocking { input.read(bytes.count) == bytes }
            #expect(isRight)
            #expect(try await written.value == bytes.count)
            streams.close()
        }
    }

    @Test func `polling reports available bytes and space`() async throws {
        let mayWrite = ThreadGate()
        defer { mayWrite.open() }
        try await withCaptured { connection in
            mayWrite.wait()
            try connection.write("abc")
            connection.drain()
        } test: { (streams, _, _, _) async throws in
            let text = try await blocking {
                streams.open()
                guard !streams.input.hasBytesAvailable, streams.output.hasSpaceAvailable else { return "wrong" }
                mayWrite.open()
                while !streams.input.hasBytesAvailable { sched_yield() }
                return String(decoding: streams.read(3), as: UTF8.self)
            }
            #expect(text == "abc")
            streams.close()
        }
    }

    @Test func `the peer's end is the end of the input stream`() async throws {
        try await withCaptured { connection in
            try connection.write("bye")
            connection.shutdownOutput()
            connection.drain()
        } test: { (streams, _, _, _) async throws in
            let (text, after) = try await blocking {
                streams.open()
                let text = String(decoding: streams.read(100), as: UTF8.self)
                var byte: UInt8 = 0
                return (text, streams.input.read(&byte, maxLength: 1))
            }
            #expect(text == "bye" && after == 0)
            #expect(streams.input.streamStatus == .atEnd)
            streams.close()
        }
    }

    @Test func `closing the output stream ends the direction after all bytes are sent`() async throws {
        let seen = Delivered<Int>()
        try await withCaptured { connection in
            let count = connection.rest().count
            seen(count)
            try connection.write("got \(count)")
        } test: { (streams, _, _, _) async throws in
            let text = try await blocking {
                streams.open()
                streams.write([UInt8](repeating: 1, count: 1_000_000))
                streams.output.close()
                return String(decoding: streams.read(100), as: UTF8.self)
            }
            #expect(try await seen.value == 1_000_000)
            #expect(text == "got 1000000")
            streams.input.close()
        }
    }

    @Test func `closing both streams closes the connection`() async throws {
        for isOpened in [true, false] {
            try await withCaptured { (streams, _, peer, _) async throws in
                if isOpened { streams.open() }
                streams.close()
                try await peer.waitForEnds()
            }
        }
    }

    @Test func `captured streams outlive their session`() async throws {
        let capturingDelegate = CapturingDelegate()
        let peer = try StreamPeer(streamEcho)
        defer { peer.stop() }
        do {
            let session = URLSession(configuration: .ephemeral, delegate: capturingDelegate, delegateQueue: nil)
            let task = session.stream(to: peer.port)
            task.resume()
            task.captureStreams()
            _ = try await capturingDelegate.streams.value
            session.finishTasksAndInvalidate()
        }
        let streams = try await capturingDelegate.streams.value
        let text = try await blocking {
            streams.open()
            streams.write(Array("hello".utf8))
            return String(decoding: streams.read(5), as: UTF8.self)
        }
        #expect(text == "hello")
        streams.close()
        try await peer.waitForEnds()
    }

    @Test func `a connection reset is a stream error`() async throws {
        let mayEnd = ThreadGate()
        defer { mayEnd.open() }
        try await withCaptured { connection in
            mayEnd.wait()
            connection.reset()
        } test: { (streams, _, _, _) async throws in
            let result = try await blocking {
                streams.open()
                mayEnd.open()
                var byte: UInt8 = 0
                return streams.input.read(&byte, maxLength: 1)
            }
            #expect(result == -1)
            #expect(streams.input.streamStatus == .error && streams.input.streamError != nil)
            streams.close()
        }
    }

    @Test func `TLS streams can be captured`() async throws {
        let certificates = try TestCertificates.shared.get()
        let capturingDelegate = CapturingDelegate()
        try await withStreamSecurePeer(certificates.valid) { (peer) async throws in
            try await withSession(delegate: capturingDelegate) {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let task = session.stream(to: peer.echoPort)
                task.startSecureConnection()
                task.captureStreams()
                task.resume()
                let streams = try await capturingDelegate.streams.value
                let text = try await blocking {
                    streams.open()
                    streams.write(Array("hello".utf8))
                    let text = String(decoding: streams.read(5), as: UTF8.self)
                    streams.output.close()
                    return text + String(decoding: streams.read(100), as: UTF8.self)
                }
                #expect(text == "hello[clean]")
                streams.close()
            }
        }
    }

    // MARK: Run loops

    /// Records events, and responds to them.
    private final class Listener: NSObject, StreamDelegate, Sendable {
        let events = Delivered<Stream.Event>()
        let text = Watched("")

        func stream(_ stream: Stream, handle eventCode: Stream.Event) {
            if eventCode.contains(.hasBytesAvailable), let input = stream as? InputStream {
                var buffer = [UInt8](repeating: 0, count: 100)
                let count = input.read(&buffer, maxLength: 100)
                if count > 0 { text.change { $0 += String(decoding: buffer[..<count], as: UTF8.self) } }
            }
            events(eventCode)
        }
    }

    @Test func `a stream scheduled in a run loop notifies its delegate`() async throws {
        try await withCaptured { connection in
            try connection.write("hello")
            connection.shutdownOutput()
            connection.drain()
        } test: { (streams, _, _, _) async throws in
            let listener = Listener()
            try await blocking {
                streams.input.delegate = listener
                streams.input.schedule(in: .current, forMode: .default)
                streams.input.open()
                let limit = Date(timeIntervalSinceNow: 20)
                while !listener.events.all.contains(where: { $0.contains(.endEncountered) }), Date() < limit {
                    _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
                }
                streams.input.remove(from: .current, forMode: .default)
            }
            #expect(listener.text.read { $0 } == "hello")
            #expect(listener.events.all.first == .openCompleted && listener.events.all.last == .endEncountered)
            streams.close()
        }
    }
}
