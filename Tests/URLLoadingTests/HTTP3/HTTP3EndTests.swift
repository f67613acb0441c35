// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The ends of streams and connections, before and within a response.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3EndTests {
    // MARK: Unprocessed requests

    @Test func `a request that the server rejects is repeated, whatever its method`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.order % 2 == 0 ? [.awaitRequestEnd, .reset(.requestRejected)] : .ok($0.method) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "GET")
            let request = URLRequest(server.url("/post"), method: "POST", body: Data("body".utf8))
            #expect(try await session.text(request).text == "POST")
            #expect(server.requests.map(\.bodyText) == ["", "", "body", "body"])
        }
    }

    @Test func `a server that rejects all requests fails the load after a few`() async throws {
        try await withHTTP3Scenario(reply: { _ in [.reset(.requestRejected)] }) { (server, session) async throws in
            await expectFailure(.networkConnectionLost) { try await session.text(server.url()) }
            #expect(server.requests.count <= 12)
        }
    }

    @Test func `after GOAWAY the load in flight finishes, and later loads use another connection`() async throws {
        try await withHTTP3Scenario(
            reply: { ($0.path == "/first" ? [.gate("first")] : []) + .ok($0.path) }
        ) { (server, session) async throws in
            let url = server.url("/first")
            async let first = session.text(url)
            _ = try await server.head(0)
            // The server sends GOAWAY twice, as for a graceful shutdown.
            server.run(.goAway((1 << 62) - 4), .awaitDelivery(9, on: .control), .reach("told"))
            try await server.reached("told")
            #expect(try await session.text(server.url("/second")) == "/second")
            server.run(.goAway(4))
            #expect(try await session.text(server.url("/third")) == "/third")
            server.open("first")
            #expect(try await first == "/first")
            #expect(server.requests.map(\.connection) == [0, 1, 1])
            // The first connection has no open stream, and gets no new one, so the client closes it.
            #expect(try await server.waitForEnd(of: 0)?.errorCode == .noError)
        }
    }

    @Test func `requests at or above the ID of GOAWAY are repeated on another connection, including POST`() async throws {
        let content = ScriptedFile.pattern(50_000)
        try await withHTTP3Scenario(
            reply: {
                $0.connection == 0 && $0.path == "/first"
                    ? [.gate("first")] + .ok("/first") : $0.connection == 0 ? [] : .ok($0.path)
            }
        ) { (server, session) async throws in
            let urls = ["/first", "/get", "/post"].map { server.url($0) }
            async let first = session.text(urls[0])
            let stream = try await server.head(0).stream
            async let get = session.text(urls[1])
            async let post = session.upload(for: URLRequest(urls[2], method: "POST"), from: Data(content)).0
            for number in 1...2 { _ = try await server.request(number) }
            server.run(.goAway(UInt64(stream) + 4))
            #expect(try await get == "/get")
            #expect(try await post == Data("/post".utf8))
            server.open("first")
            #expect(try await first == "/first")
            #expect(server.requests.filter { $0.connection == 1 }.map(\.bodyLength).sorted() == [0, content.count])
        }
    }

    // MARK: Requests that may have been processed

    /// Ends of a stream or a connection after a request, each with the steps.
    private static let ends: [(name: String, steps: [HTTP3Step])] = [
        ("a reset with H3_INTERNAL_ERROR", [.reset(.internalError)]),
        ("a reset with H3_REQUEST_CANCELLED", [.reset(.requestCancelled)]),
        ("a reset with H3_NO_ERROR", [.reset(.noError)]),
        ("a reset with an unknown code", [.reset(0x1234_5678)]),
        ("the end of the connection with H3_NO_ERROR", [.close(.noError)]),
        ("the end of the connection with H3_INTERNAL_ERROR", [.close(.internalError)]),
        ("the end of the connection with H3_EXCESSIVE_LOAD", [.close(.excessiveLoad)]),
        ("the end of the connection with an error of QUIC", [.close(1, frame: 0)]),
        ("a stateless reset", [.forge(.reset(isValid: true)), .forget]),
    ]

    @Test(arguments: ends.indices) func `a POST that may have been processed is not repeated`(row: Int) async throws {
        let (name, steps) = Self.ends[row]
        try await withHTTP3Scenario(
            reply: { $0.method == "POST" ? [.awaitRequestEnd] + steps : .ok("good") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/good")) == "good")
            let request = URLRequest(server.url("/post"), method: "POST", body: Data("body".utf8))
            await expectFailure(.networkConnectionLost, in: name) { try await session.text(request) }
            #expect(server.requests.count { $0.path == "/post" } == 1)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    @Test(arguments: ends.indices) func `a response that is cut off keeps its bytes, and is no complete download`(
        row: Int
    ) async throws {
        let (name, steps) = Self.ends[row]
        let recorder = EventRecorder()
        try await withHTTP3Scenario(
            delegate: recorder,
            reply: { request in
                let start = request.header("range") == nil ? 0 : 5
                guard start == 0 else {
                    return [
                        .awaitRequestEnd,
                        .head(206, [("content-range", "bytes 5-9/10"), ("content-length", "5"), ("etag", "\"a\"")]),
                        .data("world"),
                    ]
                }
                return [
                    .awaitRequestEnd, .head(200, [("content-length", "10"), ("etag", "\"a\""), ("accept-ranges", "bytes")]),
                    .data("hello", ends: false), .awaitDelivery(20), .gate("read \(request.path)"),
                ] + steps
            }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/data"))
            task.resume()
            try await recorder.wait(for: task) { $0.body.count == 5 }
            server.open("read /data")
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .networkConnectionLost, "\(name)")
            #expect(record.body == Data("hello".utf8), "\(name)")

            let download = session.downloadTask(with: server.url("/download"))
            download.resume()
            try await server.reached("read /download")
            try await recorder.wait(for: download) { $0.events.contains { $0.letter == "W" } }
            server.open("read /download")
            let failed = try await recorder.completion(of: download)
            #expect(failed.file == nil, "\(name)")
            let error = try #require(failed.error as? URLError, "\(name)")
            #expect(error.code == .networkConnectionLost, "\(name)")
            let point = try #require(error.downloadTaskResumeData, "\(name)")
            let resumed = session.downloadTask(withResumeData: point)
            resumed.resume()
            #expect(try await recorder.completion(of: resumed).file == Data("helloworld".utf8), "\(name)")
        }
    }

    @Test func `a reset fails no other load of the connection`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.path == "/beside" ? [.gate("beside")] + .ok("beside") : [.head(), .reset(.internalError)] }
        ) { (server, session) async throws in
            let url = server.url("/beside")
            async let beside = session.text(url)
            try await server.reached("beside")
            await expectFailure(.networkConnectionLost) { try await session.text(server.url("/reset")) }
            server.open("beside")
            #expect(try await beside == "beside")
            #expect(server.connectionCount == 1)
        }
    }

    // MARK: Early ends of requests

    /// RFC 9114, section 4.1: the server may respond without the whole request, and stop reading it.
    @Test(arguments: [HTTP3Code.noError, .requestCancelled])
    func `a complete response is the result although the server stops reading the request`(code: HTTP3Code) async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } },
            reply: {
                $0.method == "POST"
                    ? [.awaitBody(1), .deaf(true), .head(413), .data("too large"), .stopSending(code)] : .ok("good")
            }
        ) { (server, session) async throws in
            let large = Data(count: 4 << 20)
            let (data, response) = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: large)
            #expect(data == Data("too large".utf8) && (response as? HTTPURLResponse)?.statusCode == 413)
            let sent = server.requests[0]
            #expect(!sent.isComplete && sent.bodyLength < large.count)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    @Test func `a response that follows STOP_SENDING is the result`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.maxStreamData = 65_536 } },
            reply: { _ in [.awaitBody(1), .stopSending(.noError), .pause(milliseconds: 50), .head(202), .data("enough")] }
        ) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data(count: 4 << 20))
            #expect(data == Data("enough".utf8))
        }
    }

    @Test func `a load that is cancelled resets its stream, and the connection continues`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.path == "/good" ? .ok("good") : [.head(), .data("begin", ends: false), .reach("begun"), .stall] }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/cancelled"))
            task.resume()
            try await server.reached("begun")
            task.cancel()
            #expect(try await server.waitForReset() == HTTP3Code.requestCancelled.rawValue)
            #expect(try await session.text(server.url("/good")) == "good")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a response that stalls times out, and resets its stream`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.path == "/good" ? .ok("good") : [.head(), .data("begin", ends: false), .stall] }
        ) { (server, session) async throws in
            var request = URLRequest(server.url("/stalled"))
            request.timeoutInterval = 1
            await expectFailure(.timedOut) { try await session.text(request) }
            #expect(try await server.waitForReset() == HTTP3Code.requestCancelled.rawValue)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }
}
