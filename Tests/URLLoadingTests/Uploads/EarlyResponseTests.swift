// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Complete final responses that arrive before the server has read the request's body.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct EarlyResponseTests {
    private static let content = ScriptedFile.pattern(6_000_000)
    private static let early = SocketEffect.head(200, [("Content-Length", "5")], "early", ends: true)

    /// Header fields without and with an expectation of 100; an early success has the same effect as the 100.
    private static let fields: [[String: String]] = [[:], ["Expect": "100-continue"]]

    private func request(_ url: URL, _ fields: [String: String]) -> URLRequest {
        URLRequest(url, method: "POST", headers: fields)
    }

    @Test(arguments: fields) func `an early success does not stop the upload of the body`(
        fields: [String: String]
    ) async throws {
        try await withScenario(
            early: {
                $0.method == "GET" ? nil : [.stopReading, Self.early, .gate("read"), .startReading, .awaitRequestEnd]
            },
            reply: { _ in .ok("next") }
        ) { (server, session) async throws in
            async let answer = session.upload(for: request(server.url(), fields), from: Data(Self.content))
            try await server.reached("read")
            server.open("read")
            let (data, response) = try await answer
            #expect((response as? HTTPURLResponse)?.statusCode == 200 && data == Data("early".utf8))
            let request = try await server.request(0)
            #expect(request.bodyLength == Self.content.count && Self.content.starts(with: request.body))
            #expect(try await session.text(server.url()) == "next")
            #expect(server.connectionCount == 1)
        }
    }

    @Test(.over(.http1, .http1OverTLS), arguments: fields) func `an early success with Connection close ends the upload`(
        fields: [String: String]
    ) async throws {
        try await withScenario(
            early: {
                let closing = SocketEffect.head(200, [("Content-Length", "5"), ("Connection", "close")], "early")
                return $0.method == "GET" ? nil : [.stopReading, closing, .gate("over"), .startReading]
            },
            reply: { _ in .ok("next") }
        ) { (server, session) async throws in
            let (data, _) = try await session.upload(for: request(server.url(), fields), from: Data(Self.content))
            #expect(data == Data("early".utf8))
            server.open("over")
            try await server.waitForClose(0)
            #expect(try await session.text(server.url()) == "next")
        }
    }

    @Test(.over(.http1, .http2, .http3), arguments: fields)
    func `an early success is the result even if the server closes instead of reading`(
        fields: [String: String]
    ) async throws {
        for end in [SocketEffect.close, .reset] {
            try await withScenario(
                early: { $0.method == "GET" ? nil : [.stopReading, Self.early, .gate("seen"), end] },
                reply: { _ in .ok("next") }
            ) { (server, session) async throws in
                let recorder = EventRecorder()
                try await withSession(delegate: recorder) { session in
                    let task = session.uploadTask(with: request(server.url(), fields), from: Data(Self.content))
                    task.resume()
                    try await recorder.wait(for: task) { $0.body == Data("early".utf8) }
                    server.open("seen")
                    let record = try await recorder.completion(of: task)
                    #expect(record.error == nil && record.body == Data("early".utf8))
                }
                #expect(try await session.text(server.url()) == "next")
            }
        }
    }

    @Test(.over(.http1, .http1OverTLS), arguments: [300, 403, 500])
    func `an early response that is not a success ends the upload`(status: Int) async throws {
        for fields in Self.fields {
            try await withScenario(
                early: { request in
                    let answer = ScriptedReply.status(status, body: "no").effects
                    return request.method == "GET"
                        ? nil : ScriptedReply([.stopReading] + answer + [.gate("over"), .startReading])
                },
                reply: { _ in .ok("next") }
            ) { (server, session) async throws in
                let (data, response) = try await session.upload(for: request(server.url(), fields), from: Data(Self.content))
                #expect((response as? HTTPURLResponse)?.statusCode == status && data == Data("no".utf8))
                #expect(try await session.text(server.url()) == "next")
                #expect(server.connectionCount == 2)
                server.open("over")
            }
        }
    }

    @Test(.over(.http1, .http1OverTLS)) func `bytes after the early response are not taken for another response`() async throws {
        try await withScenario(
            early: {
                $0.method == "GET"
                    ? nil : [.stopReading, Self.early, .gate("more"), .write("HTTP/1.1 200 OK\r\n\r\n"), .stall]
            },
            reply: { _ in .ok("next") }
        ) { (server, session) async throws in
            let recorder = EventRecorder()
            try await withSession(delegate: recorder) { session in
                let task = session.uploadTask(with: request(server.url(), [:]), from: Data(Self.content))
                task.resume()
                try await recorder.wait(for: task) { $0.body == Data("early".utf8) }
                server.open("more")
                #expect(try await recorder.completion(of: task).body == Data("early".utf8))
            }
            #expect(try await session.text(server.url()) == "next")
        }
    }

    @Test func `a server that neither reads nor closes after its response times out`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 1 },
            early: { _ in [.stopReading, Self.early, .gate("never")] }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) {
                try await session.upload(for: request(server.url(), [:]), from: Data(count: 64 << 20))
            }
            server.open("never")
        }
    }

    @Test func `a connection lost after the complete response does not affect it`() async throws {
        for end in [HTTP2Step.goAway(last: 0), .closeAbruptly, .resetStream(.noError), .resetStream(.cancel)] {
            try await withHTTP2Scenario(
                .clear,
                greeting: { _ in [.policy(.credit, false), .settings()] },
                reply: { request in
                    guard request.method == "POST" else { return .ok("next") }
                    return [.head(200), .data("early", ends: true), .gate("over"), end]
                }
            ) { (server, session) async throws in
                let recorder = EventRecorder()
                try await withSession(delegate: recorder, { $0.connectionOptions.httpVersions = .http2PriorKnowledge }) {
                    session in
                    let task = session.uploadTask(with: request(server.url(), [:]), from: Data(Self.content))
                    task.resume()
                    try await recorder.wait(for: task) { $0.body == Data("early".utf8) }
                    server.open("over")
                    let record = try await recorder.completion(of: task)
                    #expect(record.error == nil && record.body == Data("early".utf8), "\(end)")
                }
            }
        }
    }
}
