// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Uploads whose body the app writes to a bound stream while it is sent.
@Suite(.timeLimit(.minutes(1)))
struct BoundUploadTests {
    private static let content = ScriptedFile.pattern(1_000_000)

    private static func recorder(_ streams: BoundStreams) -> EventRecorder {
        var answers = EventRecorder.Answers()
        answers.bodyStream = { streams.input }
        return EventRecorder(answers)
    }

    @Test(arguments: [1, 4096, 2_000_000]) func `the body is what a thread writes`(bufferSize: Int) async throws {
        let content = Array(Self.content.prefix(bufferSize * 2000))
        let streams = try BoundStreams(bufferSize: bufferSize, isOpen: false)
        streams.output.open()
        let recorder = Self.recorder(streams)
        try await withScenario(delegate: recorder, reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            let written = onThread {
                defer { streams.output.close() }
                return streams.writeAll(content)
            }
            #expect(try await written.value > 0)
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.body == Data("\(content.count)".utf8))
            #expect(server.requests[0].body == content)
            #expect(server.requests[0].isChunked)
            #expect([.atEnd, .closed].contains(streams.input.streamStatus))
        }
    }

    /// As in Apple's article "Uploading streams of data".
    @Test func `the body is what a delegate writes in a run loop`() async throws {
        let thread = try await RunLoopThread.start()
        let streams = try BoundStreams(bufferSize: 4096, isOpen: false)
        let sent = Watched(0)
        let writer = StreamEventRecorder { stream, event in
            guard event == .hasSpaceAvailable, let stream = stream as? OutputStream else { return }
            let piece = Array(Self.content.dropFirst(sent.read { $0 }).prefix(10_000))
            guard !piece.isEmpty else { return stream.close() }
            let written = stream.write(piece, maxLength: piece.count)
            sent.change { $0 += written }
        }
        streams.output.delegate = writer
        streams.output.schedule(in: thread.runLoop, forMode: .default)
        streams.output.open()
        let recorder = Self.recorder(streams)
        try await withScenario(delegate: recorder, reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            #expect(try await recorder.completion(of: task).error == nil)
            #expect(server.requests[0].body == Self.content)
        }
        #expect(writer.runLoops == [ObjectIdentifier(thread.runLoop)])
        try await thread.end()
    }

    @Test func `a request's body stream may be a bound stream`() async throws {
        try await withScenario(reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let streams = try BoundStreams(bufferSize: 4096, isOpen: false)
            streams.output.open()
            var request = URLRequest(server.url(), method: "POST")
            request.httpBodyStream = streams.input
            Thread.detachNewThread {
                streams.writeAll(Self.content)
                streams.output.close()
            }
            #expect(try await session.text(request).text == "1000000")
            #expect(server.requests[0].body == Self.content)
        }
    }

    @Test func `bytes are sent when they are written, not at the end`() async throws {
        let streams = try BoundStreams(bufferSize: 4096, isOpen: false)
        streams.output.open()
        let recorder = Self.recorder(streams)
        try await withScenario(
            delegate: recorder,
            early: { _ in
                [
                    .awaitBody(5), .gate("first"), .awaitBody(11), .gate("second"), .awaitRequestEnd,
                    .write(ScriptedReply.head(200, [("Content-Length", "4")]) + "done"),
                ]
            },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            #expect(streams.write("hello") == 5)
            try await server.reached("first")
            server.open("first")
            #expect(streams.write(" world") == 6)
            try await server.reached("second")
            server.open("second")
            streams.output.close()
            #expect(try await recorder.completion(of: task).body == Data("done".utf8))
            #expect(server.requests[0].body == Array("hello world".utf8))
        }
    }

    @Test func `idle upload streams block no other task, and end when they are cancelled`() async throws {
        // There are more uploads than threads for blocking work.
        let count = 300
        let pairs = try (0..<count).map { _ in try BoundStreams(bufferSize: 4096, isOpen: false) }
        for pair in pairs { pair.output.open() }
        try await withScenario(
            configure: {
                $0.httpMaximumConnectionsPerHost = count + 1
                $0.timeoutIntervalForRequest = 60
            },
            reply: { .ok("\($0.bodyLength)") }
        ) { (server, session) async throws in
            let ends = Delivered<URLError.Code?>()
            let tasks = pairs.map { pair in
                var request = URLRequest(server.url("/silent"), method: "POST")
                request.httpBodyStream = pair.input
                return session.dataTask(with: request) { ends(($2 as? URLError)?.code) }
            }
            for task in tasks { task.resume() }
            _ = try await server.head(count - 1)
            let done = Delivered<Data?>()
            session.dataTask(with: server.url("/other")) { data, _, _ in done(data) }.resume()
            #expect(try await done.value == Data("0".utf8))
            #expect(try await session.text(server.url("/third")) == "0")
            // The app writes to one of the streams.
            #expect(pairs[0].write("late") == 4)
            pairs[0].output.close()
            #expect(try await ends.value == nil)
            let thread = try await RunLoopThread.start()
            let recorder = StreamEventRecorder()
            pairs[1].output.delegate = recorder
            pairs[1].output.schedule(in: thread.runLoop, forMode: .default)
            try await recorder.waitForEvents(["open", "space"])
            for task in tasks { task.cancel() }
            try await ends.count(reaches: count)
            #expect(ends.all.dropFirst().allSatisfy { $0 == .cancelled })
            try await recorder.waitForEvents(["open", "space", "error"])
            pairs[1].output.close()
            try await thread.end()
        }
    }

    @Test func `cancelling the upload ends a pending write`() async throws {
        let streams = try BoundStreams(bufferSize: 4096, isOpen: false)
        streams.output.open()
        let recorder = Self.recorder(streams)
        try await withScenario(
            delegate: recorder, early: { _ in [.awaitBody(100_000), .stopReading, .gate("taken"), .startReading, .stall] },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            // The stream is never closed: only an error ends the loop.
            let last = onThread {
                var last = 1
                while last > 0 { last = streams.writeAll(Self.content) }
                return last
            }
            try await server.reached("taken")
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            #expect(try await last.value == -1)
            #expect(streams.output.streamStatus == .error)
            server.open("taken")
        }
    }

    @Test func `a response that ends the upload ends a pending write`() async throws {
        let streams = try BoundStreams(bufferSize: 4096, isOpen: false)
        streams.output.open()
        let recorder = Self.recorder(streams)
        try await withScenario(
            delegate: recorder,
            early: { _ in
                [
                    .awaitBody(1000),
                    .write(ScriptedReply.head(400, [("Content-Length", "5"), ("Connection", "close")]) + "early"),
                ]
            },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            let last = onThread {
                var last = 1
                while last > 0 { last = streams.writeAll(Self.content) }
                return last
            }
            let record = try await recorder.completion(of: task)
            #expect((record.response as? HTTPURLResponse)?.statusCode == 400 && record.body == Data("early".utf8))
            #expect(try await last.value == -1)
        }
    }
}
