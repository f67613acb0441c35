// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// GOAWAY and refused streams: an unprocessed request is retried, whatever its method (RFC 9113, sections 6.8 and 8.7).
@Suite(.timeLimit(.minutes(1)))
struct HTTP2GoAwayTests {
    private static let content = ScriptedFile.pattern(200_000)

    @Test func `after GOAWAY the load in flight finishes, and later loads use another connection`() async throws {
        try await withHTTP2Scenario(
            reply: { ($0.path == "/first" ? [.gate("first")] : []) + .ok($0.path) }
        ) { (server, session) async throws in
            let url = server.url("/first")
            async let first = session.text(url)
            let stream = try await server.head(0).stream
            // The server sends GOAWAY twice, as for a graceful shutdown.
            server.run(.goAway(last: 0x7FFF_FFFF), on: 0)
            try await server.settle()
            #expect(try await session.text(server.url("/second")) == "/second")
            server.run(.goAway(last: UInt32(stream)), on: 0)
            try await server.settle()
            #expect(try await session.text(server.url("/third")) == "/third")
            server.open("first")
            #expect(try await first == "/first")
            #expect(server.requests.map(\.connection) == [0, 1, 1])
            // The first connection has no open stream, and gets no new one, so the client closes it.
            try await server.waitForEnd(of: 0)
        }
    }

    @Test func `requests above the last stream are retried on another connection, including POST and bodies`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.content)) }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: {
                $0.connection == 0 && $0.path == "/first"
                    ? [.gate("first")] + .ok("/first") : $0.connection == 0 ? [] : .ok($0.path)
            }
        ) { (server, session) async throws in
            let urls = ["/first", "/get", "/data", "/file", "/stream"].map { server.url($0) }
            async let first = session.text(urls[0])
            let stream = try await server.head(0).stream
            async let get = session.text(urls[1])
            async let data = session.upload(for: URLRequest(urls[2], method: "POST"), from: Data(Self.content)).0
            async let ofFile = session.upload(for: URLRequest(urls[3], method: "POST"), fromFile: file).0
            let streamed = session.uploadTask(withStreamedRequest: URLRequest(urls[4], method: "POST"))
            streamed.resume()
            for number in 1...4 { _ = try await server.request(number) }
            server.run(.goAway(last: UInt32(stream)), on: 0)
            #expect(try await get == "/get")
            #expect(try await data == Data("/data".utf8))
            #expect(try await ofFile == Data("/file".utf8))
            #expect(try await recorder.completion(of: streamed).body == Data("/stream".utf8))
            server.open("first")
            #expect(try await first == "/first")
            let again = server.requests.filter { $0.connection > 0 }
            #expect(Set(again.map(\.connection)) == [1] && again.count == 4)
            #expect(again.filter { $0.method == "POST" }.allSatisfy { $0.bodyHash == HTTP2Request.hash(of: Self.content) })
            #expect(recorder.letters(of: streamed).count { $0 == "n" } == 2)
            // The refused loads do not keep the connection open: it closes after the remaining response.
            try await server.waitForEnd(of: 0)
        }
    }

    /// The client stops sending the bodies of refused streams, even when the server opens the windows again.
    @Test func `a body being sent above the last stream stops, and is sent again on another connection`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        try await withHTTP2Scenario(
            greeting: { $0 == 0 ? [.policy(.credit, false), .settings()] : [.settings()] },
            reply: { $0.connection == 0 ? ($0.order == 0 ? [.gate("first")] : []) + .ok($0.path) : .ok($0.path) }
        ) { (server, session) async throws in
            let urls = ["/first", "/data", "/file"].map { server.url($0) }
            async let first = session.text(urls[0])
            let stream = try await server.head(0).stream
            async let data = session.upload(for: URLRequest(urls[1], method: "POST"), from: Data(Self.content)).0
            let second = try await server.head(1).stream
            // The connection's window is exhausted.
            _ = try await server.frame(.data) { $0.stream == second }
            async let ofFile = session.upload(for: URLRequest(urls[2], method: "POST"), fromFile: file).0
            _ = try await server.head(2)
            server.run(.goAway(last: UInt32(stream)), on: 0)
            try await server.settle()
            let before = server.frames(.data, on: 0).count
            server.run(.windowUpdate(1_000_000, stream: 0), on: 0)
            server.run(.windowUpdate(1_000_000, stream: second), on: 0)
            try await server.settle()
            #expect(server.frames(.data, on: 0).count == before)
            #expect(try await data == Data("/data".utf8))
            #expect(try await ofFile == Data("/file".utf8))
            server.open("first")
            #expect(try await first == "/first")
            try await server.waitForEnd(of: 0)
            let again = server.requests.filter { $0.connection == 1 }
            #expect(again.count == 2 && again.allSatisfy { $0.bodyHash == HTTP2Request.hash(of: Self.content) })
        }
    }

    @Test func `a request that the server may have processed is not retried after GOAWAY with an error`() async throws {
        try await withHTTP2Scenario(
            reply: { $0.connection == 0 ? [] : .ok($0.path) }
        ) { (server, session) async throws in
            let urls = ["/processed", "/not"].map { server.url($0) }
            async let processed: URLError? = expectFailure(in: brokenProtocol) {
                try await session.upload(for: URLRequest(urls[0], method: "POST"), from: Data("once".utf8))
            }
            let stream = try await server.request(0).stream
            async let not = session.upload(for: URLRequest(urls[1], method: "POST"), from: Data("twice".utf8)).0
            _ = try await server.request(1)
            server.run(.goAway(last: UInt32(stream), .internalError, "it broke"), .close, on: 0)
            #expect(try await not == Data("/not".utf8))
            _ = await processed
            #expect(server.requests.map(\.path) == ["/processed", "/not", "/not"])
        }
    }

    @Test func `a load whose stream was accepted fails if the connection closes before the response is complete`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                let partly: [HTTP2Step] = [.head(200, [("content-length", "10")]), .data("hello", ends: false)]
                return [.awaitRequestEnd] + partly + [.goAway(last: UInt32(request.stream)), .close]
            }
        ) { (server, session) async throws in
            await expectFailure(.networkConnectionLost) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data("once".utf8))
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `GOAWAY before the first request makes the load use another connection`() async throws {
        try await withHTTP2Scenario(
            greeting: { $0 < 2 ? [.settings(), .goAway(last: 0)] : [.settings()] },
            reply: { $0.connection < 2 ? [] : .ok($0.path) }
        ) { (server, session) async throws in
            let answer = try await session.upload(for: URLRequest(server.url("/a"), method: "POST"), from: Data("body".utf8)).0
            #expect(answer == Data("/a".utf8))
            #expect(server.connectionCount == 3)
        }
    }

    /// The next queued load already has a stream when GOAWAY arrives, but has not written to it yet.
    @Test(arguments: [false, true])
    func `a connection that gets GOAWAY as its stream becomes free is not used again, including for POST`(
        isStreamed: Bool
    ) async throws {
        let settings = HTTP2Step.settings([.maxConcurrentStreams: 1])
        try await withHTTP2Scenario(
            greeting: { $0 == 0 ? [settings] : [.settings()] },
            reply: { request in
                guard request.connection == 0 else { return .ok(request.path) }
                let head = HPACKBytes.literals([(":status", "204")])
                let end = HTTP2Step.bytes(of: .headers, flags: [.endHeaders, .endStream], stream: request.stream, head)
                let away = HTTP2Step.bytes(of: .goAway, HTTP2Step.bytes(of: UInt32(request.stream)) + [0, 0, 0, 0])
                return [.awaitRequestEnd, .gate("leave"), .write(end + away)]
            }
        ) { (server, session) async throws in
            let first = server.url("/first")
            let status = Task { try await session.text(URLRequest(first)).response.statusCode }
            _ = try await server.request(0)
            try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<20 {
                    var request = URLRequest(server.url("/\(number)"), method: "POST", body: Data("body".utf8))
                    // There is no delegate that could supply another body stream.
                    if isStreamed { request.httpBodyStream = InputStream(data: Data("body".utf8)) }
                    group.addTask { [request] in try await session.text(request).text }
                }
                // When this load has finished, the tasks that were resumed before it are queued.
                while await session.allTasks.count < 21 { await Task.yield() }
                if let url = URL(string: "data:,there") { _ = try await session.data(from: url) }
                server.open("leave")
                #expect(try await status.value == 204)
                var answers: Set<String> = []
                for try await answer in group { answers.insert(answer) }
                #expect(answers.count == 20)
            }
            #expect(server.requests.count == 21 && server.connectionCount == 2)
        }
    }

    @Test func `an idle connection that gets GOAWAY is closed and not reused`() async throws {
        try await withHTTP2Scenario(reply: { .ok($0.path) }) { (server, session) async throws in
            for number in 0..<3 {
                #expect(try await session.text(server.url("/\(number)")) == "/\(number)")
                server.run(.goAway(last: UInt32(server.requests[number].stream)), on: number)
                try await server.waitForEnd(of: number)
            }
            #expect(server.requests.map(\.connection) == [0, 1, 2])
        }
    }

    @Test func `a thousand GOAWAYs have the effect of one`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                let away = HTTP2Step.goAway(last: UInt32(request.stream))
                return (request.connection == 0 ? [.repeating(1000, away)] : []) + .ok(request.path)
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "/a")
            #expect(try await session.text(server.url("/b")) == "/b")
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `a server that always sends GOAWAY fails the load after five connections`() async throws {
        try await withHTTP2Scenario(
            reply: { _ in [.goAway(last: 0), .close] }
        ) { (server, session) async throws in
            await expectFailure(.networkConnectionLost) { try await session.text(server.url()) }
            #expect(server.connectionCount == 5)
        }
    }

    /// GOAWAY for all streams, GOAWAY after an interim response, or a close without a frame.
    private static let departures: [[HTTP2Step]] = [
        [.goAway(last: 0), .close], [.headers([(":status", "103")]), .goAway(last: 0), .close], [.close],
    ]

    @Test(arguments: departures)
    func `all loads fail after the same five connections if the server leaves each time`(departure: [HTTP2Step]) async throws {
        let isHealthy = Watched(false)
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 1])] },
            reply: { isHealthy.change({ $0 }) ? .ok($0.path) : departure }
        ) { (server, session) async throws in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<40 {
                    let url = server.url("/\(number)")
                    group.addTask { await expectFailure(.networkConnectionLost) { try await session.text(url) } }
                }
            }
            #expect(server.connectionCount == 5)
            isHealthy.change { $0 = true }
            #expect(try await session.text(server.url("/later")) == "/later")
            #expect(server.connectionCount == 6)
        }
    }

    /// The server behaves like one with a limit of requests per connection.
    @Test func `requests refused by connections that served others are retried until they succeed`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 100])] },
            reply: { request in
                switch request.stream {
                case 1: .ok(request.path)
                case 3: .ok(request.path) + [.goAway(last: 3)]
                default: []
                }
            }
        ) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<60 {
                    let request = URLRequest(server.url("/\(number)"), method: "POST", body: Data("once".utf8))
                    group.addTask { try await session.text(request).text == "/\(number)" }
                }
                for try await isAnswered in group { #expect(isAnswered) }
            }
            let paths = server.requests.filter { $0.stream <= 3 }.map(\.path)
            #expect(paths.count == 60 && Set(paths).count == 60)
        }
    }

    // MARK: Streams that are reset

    @Test func `a refused request is retried, including POST and bodies`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.content)) }
        let recorder = EventRecorder(answers)
        let seen = Watched<Set<String>>([])
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { request in
                let isFirst = seen.change { $0.insert(request.path).inserted }
                return isFirst ? [.resetStream(.refusedStream)] : .ok(request.path)
            }
        ) { (server, session) async throws in
            let request = { (path: String) in URLRequest(server.url(path), method: "POST") }
            #expect(try await session.text(server.url("/get")) == "/get")
            #expect(try await session.upload(for: request("/data"), from: Data(Self.content)).0 == Data("/data".utf8))
            #expect(try await session.upload(for: request("/file"), fromFile: file).0 == Data("/file".utf8))
            let task = session.uploadTask(withStreamedRequest: request("/stream"))
            task.resume()
            #expect(try await recorder.completion(of: task).body == Data("/stream".utf8))
            for path in ["/data", "/file", "/stream"] {
                let last = try #require(server.requests.last { $0.path == path })
                #expect(last.bodyHash == HTTP2Request.hash(of: Self.content), "\(path)")
            }
            #expect(server.requests.count == 8)
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test(arguments: [true, false])
    func `a body stream that is not supplied again fails the load with the original error`(isRefused: Bool) async throws {
        try await withHTTP2Scenario(
            reply: { _ in [.awaitRequestEnd, isRefused ? .resetStream(.refusedStream) : .goAway(last: 0)] }
        ) { (server, session) async throws in
            var request = URLRequest(server.url(), method: "POST")
            request.httpBodyStream = InputStream(data: Data("body".utf8))
            await expectFailure(.networkConnectionLost) { [request] in try await session.text(request) }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a server that always refuses streams fails the load after a few retries`() async throws {
        try await withHTTP2Scenario(
            reply: { _ in [.resetStream(.refusedStream)] }
        ) { (server, session) async throws in
            await expectFailure(in: brokenProtocol.union([.cannotConnectToHost])) { try await session.text(server.url()) }
            #expect((2...20).contains(server.requests.count))
        }
    }

    private static let otherCodes: [HTTP2Frame.ErrorCode] = [
        .noError, .protocolError, .internalError, .flowControlError, .settingsTimeout, .streamClosed, .frameSizeError, .cancel,
        .compressionError, .connectError, .enhanceYourCalm, .inadequateSecurity,
    ]

    @Test func `any other reset fails the load without a retry, and other streams continue`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                guard let code = UInt32(request.path.dropFirst()).flatMap(HTTP2Frame.ErrorCode.init) else {
                    return [.gate("beside")] + .ok("beside")
                }
                return [.awaitRequestEnd, .resetStream(code)]
            }
        ) { (server, session) async throws in
            let url = server.url("/beside")
            async let beside = session.text(url)
            try await server.reached("beside")
            for code in Self.otherCodes {
                let request = URLRequest(server.url("/\(code.rawValue)"), method: "POST", body: Data("body".utf8))
                await expectFailure(in: brokenProtocol, "\(code)") { try await session.text(request) }
                #expect(server.requests.count { $0.path == "/\(code.rawValue)" } == 1, "\(code)")
            }
            server.open("beside")
            #expect(try await beside == "beside")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a reset with an unknown error code fails the load like any other`() async throws {
        try await withHTTP2Scenario(
            reply: { $0.path == "/odd" ? [.frame(.resetStream, [0xDE, 0xAD, 0xBE, 0xEF])] : .ok($0.path) }
        ) { (server, session) async throws in
            await expectFailure(in: brokenProtocol) {
                try await session.upload(for: URLRequest(server.url("/odd"), method: "POST"), from: Data("body".utf8))
            }
            #expect(try await session.text(server.url("/good")) == "/good")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a reset during a response fails the load, whatever its code`() async throws {
        let recorder = EventRecorder()
        let codes = Self.otherCodes + [.refusedStream, .http11Required]
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { request in
                let code = UInt32(request.path.dropFirst()).flatMap(HTTP2Frame.ErrorCode.init) ?? .noError
                return [.awaitRequestEnd, .head(200), .data("hello", ends: false), .gate(request.path), .resetStream(code)]
            }
        ) { (server, session) async throws in
            for code in codes {
                let task = session.dataTask(with: server.url("/\(code.rawValue)"))
                task.resume()
                try await recorder.wait(for: task) { $0.body == Data("hello".utf8) }
                server.open("/\(code.rawValue)")
                let record = try await recorder.completion(of: task)
                #expect((record.error as? URLError).map { brokenProtocol.contains($0.code) } == true, "\(code)")
                #expect(record.body == Data("hello".utf8), "\(code)")
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a reset after the complete response has no effect`() async throws {
        try await withHTTP2Scenario(
            reply: { .ok($0.path) + [.resetStream(.cancel), .windowUpdate(1), .frame(.priority, [0, 0, 0, 0, 1])] }
        ) { (server, session) async throws in
            for number in 0..<20 { #expect(try await session.text(server.url("/\(number)")) == "/\(number)") }
            #expect(server.connectionCount == 1 && server.frames(.goAway).isEmpty)
        }
    }

    @Test func `two thousand concurrent requests that are reset all fail, in bounded memory`() async throws {
        try await withHTTP2Scenario(
            reply: { $0.path == "/good" ? .ok("good") : [.resetStream(.cancel)] }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/good")) == "good")
            let before = try ProcessProbe.residentBytes()
            let url = server.url("/bad")
            let codes = await withTaskGroup(of: URLError.Code?.self) { group in
                for _ in 0..<2000 {
                    group.addTask {
                        do {
                            _ = try await session.upload(for: URLRequest(url, method: "POST"), from: Data("body".utf8))
                            return nil
                        } catch { return (error as? URLError)?.code }
                    }
                }
                return await group.reduce(into: [URLError.Code?]()) { $0.append($1) }
            }
            #expect(codes.count == 2000 && codes.allSatisfy { $0.map(brokenProtocol.contains) == true })
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }
}
