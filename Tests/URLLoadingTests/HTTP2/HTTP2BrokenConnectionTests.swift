// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Silent servers and closed connections, in each state of a connection and of a stream.
@Suite(.timeLimit(.minutes(2)))
struct HTTP2BrokenConnectionTests {
    /// The states of a response in which the failure occurs, each with the steps that lead to the state.
    private static func states(_ stream: Int) -> [(name: String, isBetweenFrames: Bool, steps: [HTTP2Step])] {
        let head = HPACKBytes.literals([(":status", "200"), ("server", "a")])
        let headers = HTTP2Step.bytes(of: .headers, flags: .endHeaders, stream: stream, head)
        let data = HTTP2Step.bytes(of: .data, stream: stream, Array("hello".utf8))
        return [
            ("before the head", true, []),
            ("in the head of a frame", false, [.write(Array(headers.prefix(5)))]),
            ("in HEADERS", false, [.write(Array(headers.prefix(15)))]),
            ("before CONTINUATION", true, [.frame(.headers, Array(head.prefix(5)))]),
            ("after an interim response", true, [.headers([(":status", "103")])]),
            ("after the head", true, [.write(headers)]),
            ("in DATA", false, [.write(headers + data.dropLast(2))]),
            ("after part of the body", true, [.write(headers + data)]),
            ("before the end of the stream", true, [.write(headers + data + data)]),
            ("in the trailers", true, [.write(headers + data + data), .frame(.headers, flags: .endStream, [0x00])]),
        ]
    }

    private static func reply(_ end: HTTP2Step) -> HTTP2ScriptedServer.Reply {
        { request in
            guard let number = Int(request.path.dropFirst()) else { return .ok("good") }
            return [.awaitRequestEnd] + states(request.stream)[number].steps + [end]
        }
    }

    /// Requests the path of the state with this index, with a request timeout in seconds.
    private func load(
        _ number: Int, of server: HTTP2ScriptedServer, _ session: URLSession, timeout: TimeInterval = 20
    ) async throws {
        var request = URLRequest(server.url("/\(number)"))
        request.timeoutInterval = timeout
        _ = try await session.text(request)
    }

    enum End: String, CaseIterable, CustomTestStringConvertible {
        case close, closeAbruptly, reset, halfClose

        var step: HTTP2Step {
            switch self {
            case .close: .close
            case .closeAbruptly: .closeAbruptly
            case .reset: .resetConnection
            case .halfClose: .shutdownOutput
            }
        }

        var testDescription: String { rawValue }
    }

    @Test(arguments: HTTP2Start.allCases, End.allCases)
    func `a connection that ends fails its loads, and later loads open another`(way: HTTP2Start, end: End) async throws {
        try await withHTTP2Scenario(way, reply: Self.reply(end.step)) { (server, session) async throws in
            for (number, state) in Self.states(1).enumerated() {
                await expectFailure(.networkConnectionLost, in: state.name) { try await load(number, of: server, session) }
                let requests = server.requests.filter { $0.path == "/\(number)" }
                #expect((1...2).contains(requests.count), "\(state.name)")
                for request in requests { try await server.waitForEnd(of: request.connection) }
                #expect(try await session.text(server.url("/good")) == "good", "\(state.name)")
            }
        }
    }

    @Test(arguments: HTTP2Start.allCases) func `a POST is not retried when its connection ends`(way: HTTP2Start) async throws {
        try await withHTTP2Scenario(
            way, reply: { $0.method == "POST" ? [.awaitRequestEnd, .close] : .ok("good") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "good")
            let request = URLRequest(server.url("/once"), method: "POST", body: Data("body".utf8))
            await expectFailure(.networkConnectionLost) { try await session.text(request) }
            #expect(server.requests.count { $0.path == "/once" } == 1)
        }
    }

    @Test func `a GET on a reused connection that ends is retried once`() async throws {
        try await withHTTP2Scenario(
            reply: { $0.connection == 0 && $0.path == "/again" ? [.awaitRequestEnd, .close] : .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/first")) == "/first")
            #expect(try await session.text(server.url("/again")) == "/again")
            #expect(server.requests.map(\.connection) == [0, 0, 1])
        }
    }

    @Test func `an idle connection that ended is not reused`() async throws {
        try await withHTTP2Scenario(reply: { .ok($0.path) }) { (server, session) async throws in
            for (number, step) in [HTTP2Step.close, .closeAbruptly, .resetConnection, .shutdownOutput].enumerated() {
                #expect(try await session.text(server.url("/\(number)")) == "/\(number)")
                server.run(step, on: number)
                try await server.waitForEnd(of: number)
            }
            let request = URLRequest(server.url("/post"), method: "POST", body: Data("body".utf8))
            #expect(try await session.text(request).text == "/post")
        }
    }

    @Test func `a hundred loads on a connection that is reset all fail, each once`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                request.path == "/good" ? .ok("good") : [.awaitRequests(100), .awaitRequestEnd, .resetConnection]
            }
        ) { (server, session) async throws in
            let url = server.url("/lost")
            let codes = await withTaskGroup(of: URLError.Code?.self) { group in
                for _ in 0..<100 {
                    group.addTask {
                        do {
                            _ = try await session.upload(for: URLRequest(url, method: "POST"), from: Data("body".utf8))
                            return nil
                        } catch { return (error as? URLError)?.code }
                    }
                }
                return await group.reduce(into: [URLError.Code?]()) { $0.append($1) }
            }
            #expect(codes == Array(repeating: .networkConnectionLost, count: 100))
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    // MARK: Connection setup

    @Test(arguments: [HTTP2Step.close, .closeAbruptly, .shutdownOutput])
    func `a connection that ends before SETTINGS fails its load`(step: HTTP2Step) async throws {
        try await withHTTP2Scenario(greeting: { _ in [step] }, reply: { _ in [] }) { (server, session) async throws in
            // A reset may arrive during the TLS handshake.
            await expectFailure(in: [.networkConnectionLost, .secureConnectionFailed]) { try await session.text(server.url()) }
            #expect(server.connectionCount <= 2)
        }
    }

    @Test func `a server that sends nothing fails the load at the request timeout`() async throws {
        for way in HTTP2Start.allCases {
            for greeting in [[], [HTTP2Step.settings()], [.stopReading]] {
                try await withHTTP2Scenario(
                    way, configure: { $0.timeoutIntervalForRequest = 0.5 },
                    greeting: { _ in [.policy(.ackSettings, false)] + greeting }, reply: { _ in [] }
                ) { (server, session) async throws in
                    await expectFailure(.timedOut) { try await session.text(server.url()) }
                }
            }
        }
    }

    @Test func `unacknowledged SETTINGS do not delay loads`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.policy(.ackSettings, false), .settings()] }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            for number in 0..<5 { #expect(try await session.text(server.url("/\(number)")) == "/\(number)") }
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9113, section 3.4: the first frame of the server must be SETTINGS.
    @Test(arguments: [
        [HTTP2Step.ping()], [.frame(.settings, flags: .ack, stream: 0)], [.windowUpdate(1, stream: 0)], [.goAway(last: 0)],
        [.frame(.headers, flags: .endHeaders, stream: 1, HPACKBytes.index(8))], [.frame(0xEE, [1])],
    ])
    func `a connection that does not begin with SETTINGS is closed`(greeting: [HTTP2Step]) async throws {
        try await withHTTP2Scenario(greeting: { _ in greeting }, reply: { _ in [.stall] }) { (server, session) async throws in
            await expectFailure(in: brokenProtocol) { try await session.text(server.url()) }
            try await server.waitForEnd(of: 0)
            #expect(server.frames(.goAway).map(\.errorCode) == [.protocolError])
        }
    }

    /// The server does not speak HTTP/2, although ALPN selected it.
    @Test(arguments: ["an HTTP/1.1 response", "an HTTP/1.1 error", "text", "zeros", "much"])
    func `a server that agrees on HTTP/2 but speaks something else fails the load, and the error says so`(
        row: String
    ) async throws {
        let texts = [
            "an HTTP/1.1 response": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "an HTTP/1.1 error": "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "text": "hello", "zeros": "\0\0\0",
            "much": String(repeating: "x", count: 100_000),
        ]
        let text = try #require(texts[row])
        try await withHTTP2Scenario(
            greeting: { _ in [.awaitFrame(.settings), .write(text), .close] }, reply: { _ in [] }
        ) { (server, session) async throws in
            let error = await expectFailure(in: [.networkConnectionLost, .badServerResponse]) {
                try await session.text(server.url())
            }
            #expect(error?.localizedDescription.contains("HTTP/2") == true, "\(error?.localizedDescription ?? "")")
            #expect(server.connectionCount <= 2)
        }
    }

    @Test func `a load with prior knowledge of HTTP/2 fails on an HTTP/1.1 server`() async throws {
        let answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
        try await withHTTP2Scenario(
            .clear, greeting: { _ in [.policy(.ackSettings, false), .write(answer), .close] }, reply: { _ in [] }
        ) { (server, session) async throws in
            await expectFailure(in: [.networkConnectionLost, .badServerResponse]) { try await session.text(server.url()) }
        }
    }

    // MARK: Silence

    @Test func `a stream that falls silent times out and is reset, and other streams continue`() async throws {
        let states = Self.states(1)
        try await withHTTP2Scenario(
            reply: Self.reply(.stall)
        ) { (server, session) async throws in
            for (number, state) in states.enumerated() {
                // The connection is already open when the timeout begins.
                #expect(try await session.text(server.url("/good")) == "good", "\(state.name)")
                await expectFailure(.timedOut, in: state.name) { try await load(number, of: server, session, timeout: 0.5) }
                let request = try #require(server.requests.last { $0.path == "/\(number)" })
                let verdict = try await server.verdict(on: request.stream, of: request.connection)
                if state.isBetweenFrames && state.name != "before CONTINUATION" && state.name != "in the trailers" {
                    #expect(verdict?.kind == .resetStream && verdict?.errorCode == .cancel, "\(state.name)")
                    #expect(try await session.text(server.url("/good")) == "good", "\(state.name)")
                    #expect(server.requests.last?.connection == request.connection, "\(state.name)")
                }
                // A connection with an unfinished frame or field block cannot be reused.
                server.run(.close, on: request.connection)
                try await server.waitForEnd(of: request.connection)
            }
        }
    }

    @Test func `an upload to a server that does not read times out, in bounded memory`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write([], to: "large")
        try FileHandle(forWritingTo: file).truncate(atOffset: 1 << 30)
        try await withHTTP2Scenario(
            configure: { $0.timeoutIntervalForRequest = 1 },
            greeting: { _ in [.settings([.initialWindowSize: 0x7FFF_FFFF]), .windowUpdate(0x7FFF_0000)] },
            reply: { _ in [.stopReading] }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            await expectFailure(.timedOut) {
                try await session.upload(for: URLRequest(server.url(), method: "PUT"), fromFile: file)
            }
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
        }
    }

    @Test func `each byte of DATA restarts the request timeout`() async throws {
        try await withGrowingTimes { scale in
            var isRight = false
            let drip = (0..<8).flatMap { _ in [HTTP2Step.pause(milliseconds: Int(50 * scale)), .frame(.data, [0x78])] }
            try await withHTTP2Scenario(
                configure: { $0.timeoutIntervalForRequest = 0.3 * scale },
                reply: { _ in [.awaitRequestEnd, .head()] + drip + [.frame(.data, flags: .endStream)] }
            ) { (server, session) async throws in
                isRight = (try? await session.text(server.url())) == "xxxxxxxx"
            }
            return isRight
        }
    }

    @Test func `PING and SETTINGS do not restart the request timeout`() async throws {
        let drip = (0..<400).flatMap { _ in [HTTP2Step.pause(milliseconds: 50), .ping(), .settings()] }
        try await withHTTP2Scenario(
            configure: { $0.timeoutIntervalForRequest = 0.5 }, reply: { _ in [.awaitRequestEnd, .head()] + drip }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.text(server.url()) }
        }
    }

    @Test func `broken connections leave no file descriptor open`() async throws {
        try await withHTTP2Scenario(reply: { _ in [.awaitRequestEnd, .head(), .resetConnection] }) {
            (server, session) async throws in
            await expectFailure(.networkConnectionLost) { try await session.text(server.url()) }
            let before = try ProcessProbe.openDescriptors()
            for _ in 0..<50 { await expectFailure(.networkConnectionLost) { try await session.text(server.url()) } }
            try await server.waitForAllClosed()
            #expect(try ProcessProbe.openDescriptors() <= before + 2)
        }
    }
}
