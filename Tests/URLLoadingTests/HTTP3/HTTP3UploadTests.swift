// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Request bodies over HTTP/3: sent whole, held back by flow control and `Expect`, and ended early by a response.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3UploadTests {
    private static let content = ScriptedFile.pattern(3_000_000)

    @Test func `a body from data, file or stream arrives complete`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.content)) }
        let recorder = EventRecorder(answers)
        try await withNeutralHTTP3(delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
            let request = { (path: String) in URLRequest(server.url(path), method: "PUT") }
            _ = try await session.upload(for: request("/data"), from: Data(Self.content))
            _ = try await session.upload(for: request("/file"), fromFile: file)
            let task = session.uploadTask(withStreamedRequest: request("/stream"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("/stream".utf8))
            #expect(record.events.contains(.sent(total: 3_000_000, expected: NSURLSessionTransferSizeUnknown)))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            for number in 0..<3 {
                let request = try await server.request(number)
                #expect(request.bodyLength == 3_000_000 && request.body == Self.content, "\(request.path)")
                #expect(request.header("Content-Length") == (request.path == "/stream" ? nil : "3000000"))
                #expect(request.header("Transfer-Encoding") == nil)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `an empty body declares its length, and a request without a body ends with its head`() async throws {
        try await withHTTP3Scenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data())
            _ = try await session.text(server.url())
            #expect(server.requests.map { $0.header("content-length") } == ["0", nil])
            #expect(server.requests.map(\.bodyLength) == [0, 0])
        }
    }

    @Test func `progress counts the bytes sent, up to the last one`() async throws {
        let recorder = EventRecorder()
        try await withNeutralHTTP3(delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), from: Data(Self.content))
            task.resume()
            let record = try await recorder.completion(of: task)
            let totals = record.events.compactMap { if case .sent(let total, _) = $0 { total } else { nil } }
            #expect(totals == totals.sorted() && totals.last == 3_000_000)
            #expect(task.countOfBytesSent == 3_000_000)
            #expect(record.metrics?.transactionMetrics.first?.countOfRequestBodyBytesSent == 3_000_000)
        }
    }

    @Test func `uploads from all sources at once are not mixed up`() async throws {
        let directory = try TemporaryDirectory()
        try await withNeutralHTTP3(reply: { .ok("\($0.bodyLength)") }) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<12 {
                    let content = ScriptedFile.pattern(100_000 + number, seed: UInt8(number))
                    let file = try directory.write(content, to: "\(number)")
                    let request = URLRequest(server.url("/\(number)"), method: "PUT")
                    group.addTask {
                        let data =
                            number % 2 == 0
                            ? try await session.upload(for: request, from: Data(content)).0
                            : try await session.upload(for: request, fromFile: file).0
                        #expect(data == Data("\(content.count)".utf8))
                    }
                }
                try await group.waitForAll()
            }
            for request in server.requests {
                let number = try #require(Int(request.path.dropFirst()))
                #expect(request.body == ScriptedFile.pattern(100_000 + number, seed: UInt8(number)))
            }
        }
    }

    // MARK: Flow control

    @Test(arguments: [true, false]) func `progress does not run ahead of the window`(isStream: Bool) async throws {
        let recorder = EventRecorder()
        let window = 65_536
        try await withHTTP3Scenario(
            delegate: recorder,
            opening: { _ in HTTP3Opening { if isStream { $0.maxStreamData = window } else { $0.maxData = window } } },
            greeting: { _ in [.deaf(true), .settings()] },
            reply: { _ in [.awaitBody(60_000), .gate("full"), .deaf(false)] + .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), from: Data(Self.content))
            task.resume()
            try await server.reached("full")
            #expect(task.countOfBytesSent <= window)
            server.open("full")
            #expect(try await recorder.completion(of: task).error == nil)
            #expect(try await server.request(0).bodyLength == Self.content.count)
        }
    }

    @Test func `a stream is read no faster than the server takes it`() async throws {
        let read = Watched(0)
        var answers = EventRecorder.Answers()
        answers.bodyStream = { CountingStream(total: 32 << 20) { count in read.change { $0 += count } } }
        let recorder = EventRecorder(answers)
        try await withHTTP3Scenario(
            delegate: recorder, opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } },
            greeting: { _ in [.deaf(true), .settings()] },
            reply: { $0.method == "GET" ? .ok() : [.awaitBody(60_000), .gate("full"), .deaf(false)] + .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "PUT"))
            task.resume()
            try await server.reached("full")
            // The connection's window is open, so that other requests pass.
            for _ in 0..<20 { _ = try await session.text(server.url()) }
            #expect(read.read { $0 } <= 8 << 20)
            server.open("full")
            #expect(try await recorder.completion(of: task).error == nil)
            #expect(try await server.request(0).bodyLength == 32 << 20)
        }
    }

    @Test func `an upload that the server does not read times out`() async throws {
        try await withHTTP3Scenario(
            configure: { $0.timeoutIntervalForRequest = 1 }, opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } },
            greeting: { _ in [.deaf(true), .settings()] }, reply: { _ in [] }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data(count: 4 << 20))
            }
            _ = try await server.waitForReset()
        }
    }

    // MARK: Expect

    @Test func `with Expect the body is sent after 100`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.method == "GET" ? .ok() : [.gate("continue"), .head(100)] + .ok("there") }
        ) { (server, session) async throws in
            let request = URLRequest(server.url(), method: "PUT", headers: ["Expect": "100-continue"])
            async let answer = session.upload(for: request, from: Data(Self.content)).0
            #expect(try await server.head(0).header("expect") == "100-continue")
            let other = server.url("/other")
            for _ in 0..<5 { _ = try await session.text(other) }
            #expect(server.requests.first?.bodyLength == 0)
            server.open("continue")
            #expect(try await answer == Data("there".utf8))
            #expect(try await server.request(0).bodyLength == Self.content.count)
        }
    }

    @Test func `a body whose expectation is rejected is not sent`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.method == "GET" ? .ok("next") : [.head(413), .data("too large")] }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT", headers: ["Expect": "100-continue"])
            let (data, response) = try await session.upload(for: request, from: Data(count: 8 << 20))
            #expect((response as? HTTPURLResponse)?.statusCode == 413 && data == Data("too large".utf8))
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.requests.first.map { $0.bodyLength < 1 << 20 } == true)
            #expect(server.connectionCount == 1)
        }
    }

    // MARK: Early responses

    /// RFC 9114, section 4.1: the server can stop a request with H3_NO_ERROR after a complete response, which is then valid.
    @Test(arguments: [true, false]) func `an upload that an early response stops delivers that response`(
        stops: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } }, greeting: { _ in [.deaf(true), .settings()] },
            reply: { request in
                guard request.method == "PUT" else { return .ok("next") }
                return [.awaitBody(16_384), .head(413), .data("too large")] + (stops ? [.stopSending(.noError)] : [])
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT")
            for isFile in [false, true] {
                let (data, response) =
                    isFile
                    ? try await session.upload(for: request, fromFile: file)
                    : try await session.upload(for: request, from: Data(Self.content))
                #expect((response as? HTTPURLResponse)?.statusCode == 413 && data == Data("too large".utf8))
            }
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.connectionCount == 1)
            #expect(server.requests.prefix(2).allSatisfy { $0.bodyLength < Self.content.count })
            // The client ends its side, so that the stream does not stay open.
            #expect(try await server.waitForReset(of: 0) != nil)
        }
    }

    @Test func `a success that stops an upload in progress is delivered, from data, file and stream`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write([], to: "large")
        try FileHandle(forWritingTo: file).truncate(atOffset: 1 << 30)
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(fileAtPath: "/dev/zero") }
        let recorder = EventRecorder(answers)
        try await withHTTP3Scenario(
            delegate: recorder,
            reply: { request in
                guard request.method == "PUT" else { return .ok("next") }
                return [.awaitBody(16_384), .head(200), .data("enough"), .stopSending(.noError)]
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT")
            let tasks = [
                session.uploadTask(with: request, from: Data(count: 8 << 20)), session.uploadTask(with: request, fromFile: file),
                session.uploadTask(withStreamedRequest: request),
            ]
            for task in tasks { task.resume() }
            for task in tasks {
                let record = try await recorder.completion(of: task)
                #expect(record.error == nil && record.body == Data("enough".utf8))
            }
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `an early success does not stop the upload of the body`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } }, greeting: { _ in [.deaf(true), .settings()] },
            reply: { request in
                guard request.method == "POST" else { return .ok("next") }
                return [.awaitBody(16_384), .head(200), .data("early"), .gate("read"), .deaf(false)]
            }
        ) { (server, session) async throws in
            async let answer = session.upload(for: URLRequest(server.url(), method: "POST"), from: Data(Self.content)).0
            try await server.reached("read")
            server.open("read")
            #expect(try await answer == Data("early".utf8))
            #expect(try await server.request(0).bodyLength == Self.content.count)
            #expect(try await session.text(server.url()) == "next")
        }
    }

    @Test func `a request that is stopped without a response fails`() async throws {
        try await withHTTP3Scenario(
            reply: {
                $0.method == "GET" ? .ok("next") : [.awaitBody(16_384), .stopSending(.internalError), .reset(.internalError)]
            }
        ) { (server, session) async throws in
            await expectFailure(.networkConnectionLost, .badServerResponse) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data(Self.content))
            }
            #expect(try await session.text(server.url()) == "next")
            #expect(server.connectionCount == 1 && server.requests.count == 2)
        }
    }

    @Test func `an upload that is cancelled resets its stream`() async throws {
        let recorder = EventRecorder()
        try await withHTTP3Scenario(
            delegate: recorder, opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } },
            greeting: { _ in [.deaf(true), .settings()] }, reply: { $0.method == "GET" ? .ok("next") : [.stall] }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), from: Data(Self.content))
            task.resume()
            _ = try await server.head(0)
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            #expect(try await server.waitForReset() == HTTP3Code.requestCancelled.rawValue)
            #expect(try await session.text(server.url()) == "next")
            #expect(server.connectionCount == 1)
        }
    }
}

/// A stream of zeros that reports how many of them were read.
private final class CountingStream: InputStream {
    private var left: Int
    private let count: @Sendable (Int) -> Void
    private var status = Stream.Status.notOpen

    init(total: Int, count: @escaping @Sendable (Int) -> Void) {
        left = total
        self.count = count
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { nil }
    override var hasBytesAvailable: Bool { left > 0 }
    override func open() { status = .open }
    override func close() { status = .closed }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let taken = min(left, maxLength)
        buffer.initialize(repeating: 0, count: taken)
        left -= taken
        if left == 0 { status = .atEnd }
        count(taken)
        return taken
    }
}
