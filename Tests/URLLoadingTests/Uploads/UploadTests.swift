// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Request bodies from data, files and streams.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct UploadTests {
    private static let content = Data(ScriptedFile.pattern(1_000_000))

    @Test(arguments: [1, 1000, 1_000_000, 6_000_000]) func `data is sent with its length and progress`(count: Int) async throws {
        let content = Data(ScriptedFile.pattern(count))
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: content)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("\(count)".utf8))
            #expect(server.requests[0].body == Array(content))
            #expect(server.requests[0].values(of: "Content-Length") == ["\(count)"])
            let totals = record.events.compactMap { if case .sent(let total, _) = $0 { total } else { nil } }
            #expect(totals.last == Int64(count))
            #expect(totals == totals.sorted())
            #expect(record.events.contains(.sent(total: Int64(count), expected: Int64(count))))
            #expect(task.countOfBytesSent == Int64(count))
            #expect(task.countOfBytesExpectedToSend == Int64(count))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `a file is sent with its length`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body.bin")
        try await withScenario(reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "PUT"), fromFile: file)
            #expect(data == Data("1000000".utf8))
            #expect(server.requests[0].body == Array(Self.content))
            #expect(server.requests[0].values(of: "Content-Length") == ["1000000"])
        }
    }

    @Test func `an empty body is sent with a length of zero`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write([], to: "empty")
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data())
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), fromFile: file)
            #expect(server.requests.map { $0.values(of: "Content-Length") } == [["0"], ["0"]])
        }
    }

    @Test func `a stream is sent without a length`() async throws {
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Self.content) }
        let recorder = EventRecorder(answers)
        try await withScenario(delegate: recorder, reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            let request = server.requests[0]
            #expect(request.body == Array(Self.content))
            #expect(request.header("Content-Length") == nil)
            #expect(record.letters.hasPrefix("cn"))
            #expect(record.events.contains(.sent(total: 1_000_000, expected: NSURLSessionTransferSizeUnknown)))
            #expect(task.countOfBytesExpectedToSend == NSURLSessionTransferSizeUnknown)
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `a stream is closed after it was sent`() async throws {
        let closes = Delivered<Bool>()
        var answers = EventRecorder.Answers()
        answers.bodyStream = { TracedStream(Self.content, closes) }
        let recorder = EventRecorder(answers)
        try await withScenario(delegate: recorder, reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            #expect(try await recorder.completion(of: task).error == nil)
            #expect(try await closes.value)
            #expect(server.requests[0].body == Array(Self.content))
        }
    }

    @Test func `a request's body stream is sent`() async throws {
        try await withScenario(reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            var request = URLRequest(server.url(), method: "POST")
            request.httpBodyStream = InputStream(data: Self.content)
            #expect(try await session.text(request).text == "1000000")
            #expect(server.requests[0].body == Array(Self.content))
        }
    }

    @Test func `a missing file fails the task, and the error names it`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let file = URL(fileURLWithPath: "/nonexistent/body")
            await expectFailure(.fileDoesNotExist, .cannotOpenFile) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), fromFile: file)
            }
            #expect(try await session.text(server.url("/after")).isEmpty)
        }
    }

    @Test func `a directory is not a valid body`() async throws {
        let directory = try TemporaryDirectory()
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            await expectFailure(.fileIsDirectory, .cannotOpenFile, .noPermissionsToReadFile) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), fromFile: directory.url)
            }
        }
    }

    @Test func `a task that is given no stream fails`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .requestBodyStreamExhausted)
            #expect(server.requests.isEmpty)
        }
    }

    private static func asking(_ url: URL) -> URLRequest {
        URLRequest(url, method: "PUT", headers: ["Expect": "100-continue"])
    }

    @Test(.over(.http1, .http2, .http3)) func `an upload expects 100-continue only if the request says so`() async throws {
        try await withScenario(reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let large = Data(count: 8 << 20)
            #expect(try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: large).0 == Data("8388608".utf8))
            #expect(try await session.upload(for: Self.asking(server.url()), from: large).0 == Data("8388608".utf8))
            #expect(server.requests.map { $0.header("Expect") } == [nil, "100-continue"])
        }
    }

    @Test func `an expectation in the session's fields counts too`() async throws {
        try await withScenario(
            configure: { $0.httpAdditionalHeaders = ["Expect": "100-continue"] },
            early: { $0.header("Expect") == nil ? nil : .status(417) }, reply: { .ok("\($0.bodyLength)") }
        ) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "PUT"), from: Data(count: 4 << 20))
            #expect(data == Data("4194304".utf8))
        }
    }

    @Test func `a refused expectation prevents sending the body`() async throws {
        try await withScenario(
            early: { $0.header("Expect") == nil ? nil : .status(413, body: "too large").then(.gate("answered"), .close) },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let (data, response) = try await session.upload(
                for: Self.asking(server.url()), from: Data(count: 8 << 20))
            #expect((response as? HTTPURLResponse)?.statusCode == 413)
            #expect(data == Data("too large".utf8))
            #expect(server.bytesReceived(on: 0) < 1 << 20)
            server.open("answered")
        }
    }

    @Test func `a server that ignores the expectation gets the body after a while`() async throws {
        try await withScenario(
            early: { _ in .ok("late").after(.awaitRequestEnd) }, reply: { _ in [] }
        ) { (server, session) async throws in
            let (data, _) = try await session.upload(for: Self.asking(server.url()), from: Data(count: 4 << 20))
            #expect(data == Data("late".utf8))
            #expect(server.requests[0].bodyLength == 4 << 20)
        }
    }

    @Test func `a 417 retries the upload without the expectation`() async throws {
        try await withScenario(
            early: { $0.header("Expect") == nil ? nil : .status(417) }, reply: { .ok("\($0.bodyLength)") }
        ) { (server, session) async throws in
            let (data, response) = try await session.upload(
                for: Self.asking(server.url()), from: Data(count: 4 << 20))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(data == Data("4194304".utf8))
        }
    }

    @Test(.over(.http1, .http2, .http3)) func `a response that arrives before the whole body was sent is the result`()
        async throws
    {
        try await withScenario(
            early: { _ in
                [
                    .head(100), .awaitBody(1000), .stopReading,
                    .head(400, [("Content-Length", "5"), ("Connection", "close")], "early", ends: true),
                    .gate("answered"), .startReading,
                ]
            },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let (data, response) = try await session.upload(
                for: URLRequest(server.url(), method: "PUT"), from: Data(count: 16 << 20))
            #expect((response as? HTTPURLResponse)?.statusCode == 400)
            #expect(data == Data("early".utf8))
            server.open("answered")
            try await server.waitForAbandoning(0)
            #expect(server.requests[0].bodyLength < 16 << 20)
        }
    }

    @Test(.over(.http1, .http2, .http3)) func `progress continues after the response, up to the last byte`() async throws {
        let recorder = EventRecorder()
        let count = 16 << 20
        try await withScenario(
            delegate: recorder,
            early: { _ in
                [
                    .head(100), .awaitBody(1000), .stopReading,
                    .head(200, [("Content-Length", "4")]), .gate("answered"), .startReading,
                    .awaitRequestEnd,
                    .gate("sent"), .content("done"), .end(trailers: []),
                ]
            },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), from: Data(count: count))
            task.resume()
            try await recorder.wait(for: task) { $0.letters.contains("R") }
            server.open("answered")
            // None of the response's body has arrived yet.
            try await recorder.wait(for: task) { $0.events.last == .sent(total: Int64(count), expected: Int64(count)) }
            server.open("sent")
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.body == Data("done".utf8))
            #expect(record.letters.contains(/R.*s/))
            let totals = record.events.compactMap { if case .sent(let total, _) = $0 { total } else { nil } }
            #expect(totals == Array(Set(totals)).sorted())
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `an early response from a server that reads the rest keeps the connection usable`() async throws {
        try await withScenario(
            early: {
                $0.path == "/early"
                    ? [.awaitBody(1), .head(200, [("Content-Length", "5")], "early", ends: true), .awaitRequestEnd]
                    : nil
            },
            reply: { _ in .ok("next") }
        ) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url("/early"), method: "PUT"), from: Self.content)
            #expect(data == Data("early".utf8))
            #expect(try await session.text(server.url()) == "next")
        }
    }

    @Test func `a file that shrinks during the upload is never sent truncated as if complete`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data(count: 4 << 20), to: "body")
        try await withScenario(
            early: { _ in
                [
                    .head(100), .awaitBody(1), .stopReading, .gate("cut"), .startReading,
                    .awaitRequestEnd,
                    .head(200, [("Content-Length", "0")], ends: true),
                ]
            },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let done = Delivered<URLError.Code?>()
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), fromFile: file) {
                done(($2 as? URLError)?.code)
            }
            task.resume()
            try await server.reached("cut")
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: 10)
            try handle.close()
            server.open("cut")
            // Either the whole file had been read, or the task fails; a truncated request is never presented as complete.
            let code = try await done.value
            let request = try await server.request(0)
            #expect(code != .timedOut, "the load waits for bytes that will never come")
            #expect(request.isComplete == (code == nil))
            if code == nil { #expect(request.bodyLength == 4 << 20) }
        }
    }

    @Test func `an upload with a completion handler and nil data has an empty body`() async throws {
        try await withScenario(reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            let done = Delivered<Data?>()
            session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: nil) { data, _, _ in done(data) }.resume()
            #expect(try await done.value == Data("0".utf8))
        }
    }
}

/// Reports when it is closed.
private final class TracedStream: InputStream {
    private let stream: InputStream
    private let closes: Delivered<Bool>

    init(_ data: Data, _ closes: Delivered<Bool>) {
        stream = InputStream(data: data)
        self.closes = closes
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { stream.hasBytesAvailable }
    override var streamStatus: Stream.Status { stream.streamStatus }
    override var streamError: (any Error)? { stream.streamError }
    override func open() { stream.open() }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int { stream.read(buffer, maxLength: maxLength) }

    override func close() {
        stream.close()
        closes(stream.streamStatus == .closed)
    }
}
