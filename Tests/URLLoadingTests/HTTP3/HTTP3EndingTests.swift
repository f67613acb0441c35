// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Connections over QUIC that end, and which of their requests are repeated (RFC 9114, sections 4.1.1 and 5).
@Suite(.timeLimit(.minutes(2)))
struct HTTP3EndingTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private static let content = ScriptedFile.pattern(200_000)

    // MARK: GOAWAY

    @Test func `after GOAWAY the load in flight finishes, and later loads use another connection`() async throws {
        try await withHTTP3Scenario(
            reply: { ($0.path == "/first" ? [.gate("first")] : []) + .ok($0.path) }
        ) { (server, session) async throws in
            let url = server.url("/first")
            async let first = session.text(url)
            let stream = try await server.head(0).stream
            // The server sends GOAWAY twice, as for a graceful shutdown (section 5.2).
            server.run(.goAway(1 << 60), .awaitDelivery(13, on: .control), .reach("away"), on: 0)
            try await server.reached("away")
            #expect(try await session.text(server.url("/second")) == "/second")
            #expect(server.connectionCount == 2)
            server.run(.goAway(UInt64(stream) + 4), on: 0)
            #expect(try await session.text(server.url("/third")) == "/third")
            server.open("first")
            #expect(try await first == "/first")
            #expect(server.requests.last?.connection == 1)
            // The first connection has no open stream, and gets no new one, so the client closes it.
            let end = try await server.waitForEnd(of: 0)
            #expect(end?.errorCode == .noError, "\(String(describing: end))")
        }
    }

    @Test func `requests at or above the ID of GOAWAY are repeated, including POST and bodies`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(Self.content)) }
        let recorder = EventRecorder(answers)
        try await withHTTP3Scenario(
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
            server.run(.goAway(UInt64(stream) + 4), on: 0)
            #expect(try await get == "/get")
            #expect(try await data == Data("/data".utf8))
            #expect(try await ofFile == Data("/file".utf8))
            #expect(try await recorder.completion(of: streamed).body == Data("/stream".utf8))
            server.open("first")
            #expect(try await first == "/first")
            let again = server.requests.filter { $0.connection > 0 }
            #expect(Set(again.map(\.connection)) == [1] && again.count == 4)
            #expect(again.filter { $0.method == "POST" }.allSatisfy { $0.bodyLength == Self.content.count })
            #expect(recorder.letters(of: streamed).count { $0 == "n" } == 2)
            try await server.waitForEnd(of: 0)
        }
    }

    @Test func `a request that the server may have processed is not repeated after GOAWAY`() async throws {
        try await withHTTP3Scenario(reply: { $0.connection == 0 ? [] : .ok($0.path) }) { (server, session) async throws in
            let urls = ["/processed", "/not"].map { server.url($0) }
            async let processed: URLError? = expectFailure(in: brokenProtocol) {
                try await session.upload(for: URLRequest(urls[0], method: "POST"), from: Data("once".utf8))
            }
            let stream = try await server.request(0).stream
            async let not = session.upload(for: URLRequest(urls[1], method: "POST"), from: Data("twice".utf8)).0
            _ = try await server.request(1)
            server.run(.goAway(UInt64(stream) + 4), .close(.internalError), on: 0)
            #expect(try await not == Data("/not".utf8))
            _ = await processed
            #expect(server.requests.map(\.path) == ["/processed", "/not", "/not"])
        }
    }

    @Test func `an idle connection that gets GOAWAY is closed and not reused`() async throws {
        try await withHTTP3Scenario(reply: { .ok($0.path) }) { (server, session) async throws in
            for number in 0..<3 {
                #expect(try await session.text(server.url("/\(number)")) == "/\(number)")
                server.run(.goAway(UInt64(server.requests[number].stream) + 4), on: number)
                try await server.waitForEnd(of: number)
            }
            #expect(server.requests.map(\.connection) == [0, 1, 2])
        }
    }

    @Test func `GOAWAY before the first request makes the load use another connection`() async throws {
        try await withHTTP3Scenario(
            greeting: { $0 < 2 ? [.settings(), .goAway(0)] : [.settings()] }, reply: { $0.connection < 2 ? [] : .ok($0.path) }
        ) { (server, session) async throws in
            let answer = try await session.upload(for: URLRequest(server.url("/a"), method: "POST"), from: Data("body".utf8)).0
            #expect(answer == Data("/a".utf8))
            #expect(server.connectionCount == 3)
        }
    }

    // MARK: Refused streams

    @Test func `a rejected request is repeated, including POST`() async throws {
        try await withHTTP3Scenario(
            reply: { request in
                request.order < 2
                    ? [.awaitRequestEnd, .stopSending(.requestRejected), .reset(.requestRejected)] : .ok(request.path)
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/post"), method: "POST")
            #expect(try await session.upload(for: request, from: Data(Self.content)).0 == Data("/post".utf8))
            #expect(server.requests.count == 3 && server.requests.last?.bodyLength == Self.content.count)
        }
    }

    @Test func `a request that is always rejected fails`() async throws {
        try await withHTTP3Scenario(reply: { _ in [.awaitRequestEnd, .reset(.requestRejected)] }) {
            (server, session) async throws in
            await expectFailure(.networkConnectionLost, .badServerResponse) { try await session.data(from: server.url()) }
            #expect(server.requests.count < 50)
        }
    }

    @Test func `a stream that is reset with another error is not repeated for POST`() async throws {
        try await withHTTP3Scenario(reply: { _ in [.awaitRequestEnd, .reset(.internalError)] }) {
            (server, session) async throws in
            await expectFailure(.networkConnectionLost, .badServerResponse) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data("once".utf8))
            }
            #expect(server.requests.count == 1 && server.connectionCount == 1)
        }
    }

    @Test(arguments: ["GET", "POST"])
    func `a request that needs HTTP 1 is repeated over it`(method: String) async throws {
        try await HTTP3Origin.withTries {
            var isRight = false
            try await withHTTP3Origin(tcp: { _ in closing("tcp") }, quic: { _ in [.awaitRequestEnd, .reset(.versionFallback)] }) {
                (origin, session) async throws in
                let body = method == "POST" ? Data("body".utf8) : nil
                let outcome = try await session.outcome(.assuming(origin.url(), method: method, body: body))
                #expect(outcome.text == "tcp")
                guard origin.quic.requests.count > 0 else { return }
                #expect(origin.quic.requests.count == 1 && origin.tcp.requests.count == 1)
                #expect(outcome.last == "http/1.1")
                isRight = true
            }
            return isRight
        }
    }

    // MARK: Death

    /// RFC 9000, section 10.3; as over HTTP/2, a safe request on a reused connection is repeated once.
    @Test func `after a stateless reset a GET is repeated, and a POST is not`() async throws {
        try await withHTTP3Scenario(
            reply: { request in
                request.connection == 0 && request.path == "/get"
                    ? [.awaitRequestEnd, .forge(.reset(isValid: true)), .forget] : .ok(request.path)
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/first")) == "/first")
            #expect(try await session.text(server.url("/get")) == "/get")
            #expect(server.connectionCount == 2)
        }
        try await withHTTP3Scenario(
            reply: { _ in [.awaitRequestEnd, .forge(.reset(isValid: true)), .forget] }
        ) { (server, session) async throws in
            await expectFailure(.networkConnectionLost) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data("once".utf8))
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a stateless reset with a wrong token has no effect, nor have other forged datagrams`() async throws {
        let forgeries: [HTTP3Step] = [
            .forge(.reset(isValid: false)), .forge(.raw([])), .forge(.raw([0x40])),
            .forge(.raw(Array(repeating: 0xFF, count: 1_200))),
            .forge(.versions([0x1A2A_3A4A])), .forge(.retry(isValid: false)), .forge(.replay),
            .forge(.reset(isValid: true).fromElsewhere),
        ]
        try await withHTTP3Scenario(reply: { [.awaitRequestEnd] + forgeries + .ok($0.path) }) { (server, session) async throws in
            for number in 0..<5 { #expect(try await session.text(server.url("/\(number)")) == "/\(number)") }
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: [HTTP3Code.noError, .internalError])
    func `a connection that closes before the response repeats only safe requests`(
        code: HTTP3Code
    ) async throws {
        try await withHTTP3Scenario(
            reply: { $0.connection == 0 && $0.path == "/get" ? [.awaitRequestEnd, .close(code)] : .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/first")) == "/first")
            #expect(try await session.text(server.url("/get")) == "/get")
        }
        try await withHTTP3Scenario(reply: { _ in [.awaitRequestEnd, .close(code)] }) { (server, session) async throws in
            await expectFailure(.networkConnectionLost, .badServerResponse) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data("once".utf8))
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a server that was restarted while idle is reached by the next GET`() async throws {
        try await withHTTP3Scenario(isMortal: true, reply: { .ok("\($0.connection)") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            try await server.restart()
            #expect(try await session.text(server.url()) == "1")
            #expect(try await session.text(server.url()) == "1")
        }
    }

    @Test func `a server that was killed while idle is replaced by TCP`() async throws {
        try await HTTP3Origin.withTries {
            var isRight = false
            try await withHTTP3Origin(isMortal: true) { (origin, session) async throws in
                isRight = try await session.outcome(.assuming(origin.url())).last == "h3"
                guard isRight else { return }
                origin.quic.kill()
                #expect(try await session.text(.assuming(origin.url())).text == "tcp")
                #expect(try await session.text(.assuming(origin.url())).text == "tcp")
            }
            return isRight
        }
    }

    @Test func `a server that falls silent is replaced by TCP for a GET`() async throws {
        try await HTTP3Origin.withTries {
            var isRight = false
            try await withHTTP3Origin { (origin, session) async throws in
                isRight = try await session.outcome(.assuming(origin.url())).last == "h3"
                guard isRight else { return }
                origin.quic.run(.mute(true), .reach("mute"))
                try await origin.quic.reached("mute")
                let text = try await session.text(.assuming(origin.url())).text
                #expect(["tcp", "quic"].contains(text))
            }
            return isRight
        }
    }

    /// The client closes a connection before the server forgets it (RFC 9000, section 10.1).
    @Test func `a connection that the server forgets is not used for a POST`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.idle = 3 } }, reply: { .ok("\($0.connection)") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            _ = try #require(try await server.waitForEnd())
            let request = URLRequest(server.url(), method: "POST")
            #expect(try await session.upload(for: request, from: Data("body".utf8)).0 == Data("1".utf8))
        }
    }

    @Test func `a response that takes longer than the idle timeout arrives`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.idle = 2 } },
            reply: { _ in [.awaitRequestEnd, .pause(milliseconds: 5_000)] + .ok("late") }
        ) { (server, session) async throws in
            #expect(try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data()).0 == Data("late".utf8))
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the keys of a connection may change`() async throws {
        try await withHTTP3Scenario(
            reply: { [.awaitRequestEnd, .head(), .data("a", ends: false), .awaitDelivery(3), .updateKey] + [.data($0.path)] }
        ) { (server, session) async throws in
            for number in 0..<3 { #expect(try await session.text(server.url("/\(number)")) == "a/\(number)") }
            #expect(server.connectionCount == 1)
        }
    }
}
