// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Request bodies on streams: sent whole, held back by `Expect`, and ended early by a response.
@Suite(.timeLimit(.minutes(1)))
struct HTTP2UploadTests {
    private static let content = ScriptedFile.pattern(3_000_000)

    @Test(arguments: HTTP2Start.allCases) func `a body from data, file or stream arrives complete`(way: HTTP2Start) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.content)) }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(way, delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
            let request = { (path: String) in URLRequest(server.url(path), method: "PUT") }
            _ = try await session.upload(for: request("/data"), from: Data(Self.content))
            _ = try await session.upload(for: request("/file"), fromFile: file)
            let task = session.uploadTask(withStreamedRequest: request("/stream"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("/stream".utf8))
            #expect(record.events.contains(.sent(total: 3_000_000, expected: NSURLSessionTransferSizeUnknown)))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            for request in server.requests {
                #expect(
                    request.bodyLength == 3_000_000 && request.bodyHash == HTTP2Request.hash(of: Self.content), "\(request.path)")
                #expect(request.header("content-length") == (request.path == "/stream" ? nil : "3000000"))
                #expect(request.header("transfer-encoding") == nil)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `an empty body declares its length, and a request without a body ends with its head`() async throws {
        try await withHTTP2Scenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data())
            _ = try await session.text(server.url())
            #expect(server.requests.map { $0.header("content-length") } == ["0", nil])
            let stream = server.requests[1].stream
            let head = try await server.frame(.headers) { $0.stream == stream }
            #expect(head.flags.contains(.endStream))
        }
    }

    @Test func `progress counts the bytes sent, up to the last one`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), from: Data(Self.content))
            task.resume()
            let record = try await recorder.completion(of: task)
            let totals = record.events.compactMap { if case .sent(let total, _) = $0 { total } else { nil } }
            #expect(totals == totals.sorted() && totals.last == 3_000_000)
            #expect(task.countOfBytesSent == 3_000_000)
            #expect(record.metrics?.transactionMetrics.first?.countOfRequestBodyBytesSent == 3_000_000)
        }
    }

    @Test func `progress does not run ahead of the window`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: { _ in [.policy(.credit, false), .settings()] },
            reply: { _ in
                [
                    .awaitBody(65_535), .gate("full"), .policy(.credit, true), .windowUpdate(3_000_000, stream: 0),
                    .windowUpdate(3_000_000),
                ] + .ok()
            }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url(), method: "PUT"), from: Data(Self.content))
            task.resume()
            try await server.reached("full")
            try await server.settle()
            // Bytes still queued for the socket may count, but not those beyond the window.
            #expect(task.countOfBytesSent <= 65_535)
            server.open("full")
            #expect(try await recorder.completion(of: task).error == nil)
        }
    }

    @Test func `with Expect the body is sent after 100`() async throws {
        try await withHTTP2Scenario(
            reply: { _ in [.gate("continue"), .head(100)] + .ok("there") }
        ) { (server, session) async throws in
            let content = ScriptedFile.pattern(8 << 20)
            let request = URLRequest(server.url(), method: "PUT", headers: ["Expect": "100-continue"])
            async let answer = session.upload(for: request, from: Data(content)).0
            #expect(try await server.head(0).header("expect") == "100-continue")
            try await server.settle()
            #expect(server.frames(.data).isEmpty)
            server.open("continue")
            #expect(try await answer == Data("there".utf8))
            #expect(try await server.request(0).bodyHash == HTTP2Request.hash(of: content))
        }
    }

    @Test func `a body whose expectation is rejected is not sent`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                guard request.path == "/up" else { return .ok("next") }
                return [.head(413), .data("too large")]
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT", headers: ["Expect": "100-continue"])
            let (data, response) = try await session.upload(for: request, from: Data(count: 8 << 20))
            #expect((response as? HTTPURLResponse)?.statusCode == 413 && data == Data("too large".utf8))
            #expect(try await server.head(0).header("expect") == "100-continue")
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.frames(.data).map(\.length).reduce(0, +) < 1 << 20)
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9113, section 8.1: RST_STREAM with NO_ERROR after a complete response asks the client to stop the upload; the response is valid.
    @Test func `an upload that an early response stops delivers that response`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        try await withHTTP2Scenario(
            greeting: { _ in [.policy(.credit, false), .settings()] },
            reply: { request in
                guard request.method == "PUT" else { return .ok("next") }
                return [
                    .awaitBody(16_384), .head(413), .data("too large"), .resetStream(.noError), .windowUpdate(100_000, stream: 0),
                ]
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
        }
    }

    /// The windows are open, so that the body is still being read and written when the server resets the stream.
    @Test func `a response that stops an upload in progress is delivered, from data, file and stream`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write([], to: "large")
        try FileHandle(forWritingTo: file).truncate(atOffset: 1 << 30)
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(fileAtPath: "/dev/zero") }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(
            delegate: recorder, greeting: { _ in [.settings([.initialWindowSize: 0x7FFF_FFFF]), .windowUpdate(0x7FFF_0000)] },
            reply: { request in
                guard request.method == "PUT" else { return .ok("next") }
                return [.awaitBody(16_384), .head(200), .data("enough"), .resetStream(.noError)]
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT")
            let large = Data(count: 8 << 20)
            for _ in 0..<2 {
                let tasks = [
                    session.uploadTask(with: request, from: large), session.uploadTask(with: request, fromFile: file),
                    session.uploadTask(withStreamedRequest: request),
                ]
                for task in tasks { task.resume() }
                for task in tasks {
                    let record = try await recorder.completion(of: task)
                    #expect(record.error == nil && record.body == Data("enough".utf8))
                }
            }
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: HTTP2Start.allCases) func `a file may be the first upload on a connection`(way: HTTP2Start) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        try await withHTTP2Scenario(way, reply: { .ok($0.path) }) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url("/file"), method: "PUT"), fromFile: file)
            #expect(data == Data("/file".utf8))
            #expect(try await server.request(0).bodyHash == HTTP2Request.hash(of: Self.content))
        }
    }

    @Test func `an early error response leaves the connection usable`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                guard request.method == "PUT" else { return .ok("next") }
                return [.awaitBody(16_384), .head(400), .data("no")]
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT")
            let (data, response) = try await session.upload(for: request, from: Data(Self.content))
            #expect((response as? HTTPURLResponse)?.statusCode == 400 && data == Data("no".utf8))
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.connectionCount == 1)
            // The body is sent completely, or the stream is reset (RFC 9113, section 8.1).
            if !server.requests[0].isComplete {
                let reset = try await server.frame(.resetStream)
                #expect([.cancel, .noError].contains(reset.errorCode))
            }
        }
    }

    @Test(arguments: [HTTP2Frame.ErrorCode.noError, .cancel, .internalError])
    func `an upload that is reset without a response fails`(code: HTTP2Frame.ErrorCode) async throws {
        try await withHTTP2Scenario(
            reply: { $0.method == "PUT" ? [.awaitBody(16_384), .resetStream(code)] : .ok("next") }
        ) { (server, session) async throws in
            await expectFailure(in: brokenProtocol) {
                try await session.upload(for: URLRequest(server.url("/up"), method: "PUT"), from: Data(Self.content))
            }
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.requests.count == 2 && server.connectionCount == 1)
        }
    }

    @Test func `an upload that is cancelled resets its stream`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: { _ in [.policy(.credit, false), .settings()] },
            reply: { $0.method == "PUT" ? [.awaitBody(65_535), .reach("full")] : .ok("next") }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url("/up"), method: "PUT"), from: Data(Self.content))
            task.resume()
            try await server.reached("full")
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            #expect(try await server.verdict(on: server.requests[0].stream, of: 0)?.errorCode == .cancel)
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a file that shrinks during its upload resets the stream instead of ending it`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(ScriptedFile.pattern(8_000_000), to: "body")
        try await withHTTP2Scenario(
            greeting: { _ in [.policy(.credit, false), .settings()] },
            reply: { _ in
                [.awaitBody(65_535), .gate("full"), .windowUpdate(10_000_000, stream: 0), .windowUpdate(10_000_000), .stall]
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT")
            async let error: URLError? = {
                do {
                    _ = try await session.upload(for: request, fromFile: file)
                    return nil
                } catch { return error as? URLError }
            }()
            try await server.reached("full")
            try FileHandle(forWritingTo: file).truncate(atOffset: 100_000)
            server.open("full")
            #expect(await error != nil)
            let verdict = try await server.verdict(on: server.requests[0].stream, of: 0)
            #expect(verdict?.kind == .resetStream && !server.requests[0].isComplete)
        }
    }
}
