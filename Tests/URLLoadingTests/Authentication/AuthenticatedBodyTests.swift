// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Bodies are sent again in full after a challenge, and tasks of every kind authenticate.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct AuthenticatedBodyTests {
    private static let ada = basic("ada", "lovelace")
    private let echo = BasicScript()({ .ok($0.body) })

    /// Answers challenges and supplies body streams.
    private final class Streamer: NSObject, URLSessionTaskDelegate, Sendable {
        let streams = Watched(0)
        let content: Data

        init(_ content: Data) { self.content = content }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.useCredential, .ada())
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            streams.change { $0 += 1 }
            completionHandler(InputStream(data: content))
        }
    }

    @Test(arguments: [0, 10, 70_000, 3_000_000])
    func `a body of data is sent again`(size: Int) async throws {
        let content = Data(ScriptedFile.pattern(size))
        try await withScenario(delegate: TaskInterviewer(Interview(.ada())), reply: echo) { (server, session) async throws in
            let (data, _) = try await session.data(for: URLRequest(server.url(), method: "POST", body: content))
            #expect(data == content)
            let (again, _) = try await session.upload(for: URLRequest(server.url("/up"), method: "PUT"), from: content)
            #expect(again == content)
            #expect(server.requests.map(\.method) == ["POST", "POST", "PUT"])
            #expect(server.requests.map(\.authorization) == [nil, Self.ada, Self.ada])
        }
    }

    @Test func `a body from a file is sent again`() async throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(300_000)
        let file = try directory.write(content, to: "body")
        try await withScenario(delegate: TaskInterviewer(Interview(.ada())), reply: echo) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url(), method: "POST"), fromFile: file)
            #expect(Array(data) == content)
            #expect(server.requests.map(\.bodyLength) == [content.count, content.count])
        }
    }

    // Over HTTP/3, the repeated request may be on its way when the connection ends.
    @Test(.over(.http1, .http2)) func `a large body that expects 100-continue is not sent before the challenge is answered`()
        async throws
    {
        let content = Data(ScriptedFile.pattern(2_000_000))
        try await withScenario(
            delegate: TaskInterviewer(Interview(.ada())),
            early: { $0.authorization == nil ? .unauthorized("Basic realm=\"tower\"").then(.close) : nil }, reply: echo
        ) { (server, session) async throws in
            let request = URLRequest(server.url(), method: "POST", headers: ["Expect": "100-continue"])
            let (data, _) = try await session.upload(for: request, from: content)
            #expect(data == content)
            #expect(server.requests[0].bodyLength == 0)
        }
    }

    @Test func `a new body stream is requested for the second request`() async throws {
        let content = Data(ScriptedFile.pattern(100_000))
        let streamer = Streamer(content)
        try await withScenario(delegate: streamer, reply: echo) { (server, session) async throws in
            var request = URLRequest(server.url(), method: "POST")
            request.httpBodyStream = InputStream(data: content)
            let (data, _) = try await session.data(for: request)
            #expect(data == content)
            // The first stream is the request's own.
            #expect(streamer.streams.read { $0 } == 1)
            #expect(server.requests.allSatisfy { $0.header("Content-Length") == nil })
        }
    }

    @Test func `a streamed upload requests a body stream for each attempt`() async throws {
        let content = Data(ScriptedFile.pattern(50_000))
        let streamer = Streamer(content)
        try await withScenario(delegate: streamer, reply: echo) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url(), method: "POST"))
            task.resume()
            try await server.waitForRequests(2)
            #expect(streamer.streams.read { $0 } == 2)
            #expect(server.requests.map { Data($0.body) } == [content, content])
        }
    }

    @Test func `a stream that cannot be supplied again fails the task once`() async throws {
        try await withScenario(delegate: TaskInterviewer(Interview(.ada())), reply: echo) { (server, session) async throws in
            var request = URLRequest(server.url(), method: "POST")
            request.httpBodyStream = InputStream(data: Data("once".utf8))
            await expectFailure(.requestBodyStreamExhausted) { try await session.data(for: request) }
            #expect(server.requests.filter { $0.authorization != nil && $0.bodyText != "once" }.isEmpty)
        }
    }

    @Test func `a 307 before or after the challenge keeps the body`() async throws {
        for isFirst in [true, false] {
            let script = BasicScript()({ $0.path == "/in/1" ? .redirect(307, to: "/in/2") : .ok($0.body) })
            try await withScenario(
                delegate: TaskInterviewer(Interview(.ada())),
                reply: { isFirst && $0.path == "/in/1" ? .redirect(307, to: "/in/2") : script($0) }
            ) { (server, session) async throws in
                let (text, _) = try await session.text(
                    URLRequest(server.url("/in/1"), method: "POST", body: Data("payload".utf8)))
                #expect(text == "payload")
                #expect(server.requests.map(\.method) == ["POST", "POST", "POST"])
                #expect(server.requests.map(\.bodyText) == ["payload", "payload", "payload"])
            }
        }
    }

    @Test func `tasks with completion handlers of each kind authenticate`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Array("from file".utf8), to: "body")
        for kind in ["data", "upload", "file", "download"] {
            try await withScenario(delegate: TaskInterviewer(Interview(.ada())), reply: echo) { (server, session) async throws in
                let got = Delivered<String>()
                let request = URLRequest(server.url(), method: "POST")
                let handler: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = { data, response, _ in
                    got("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data ?? Data(), as: UTF8.self))")
                }
                var body = request
                body.httpBody = Data("from data".utf8)
                let task: URLSessionTask =
                    switch kind {
                    case "data": session.dataTask(with: body, completionHandler: handler)
                    case "upload": session.uploadTask(with: request, from: Data("from data".utf8), completionHandler: handler)
                    case "file": session.uploadTask(with: request, fromFile: file, completionHandler: handler)
                    default:
                        session.downloadTask(with: body) { location, response, error in
                            handler(location.flatMap { try? Data(contentsOf: $0) }, response, error)
                        }
                    }
                task.resume()
                #expect(try await got.value == "200 from \(kind == "file" ? "file" : "data")")
            }
        }
    }

    @Test func `a download writes the final body to its file, or the body of an unanswered 401`() async throws {
        for isAnswered in [true, false] {
            let interview = Interview { _, _ in (.useCredential, isAnswered ? .ada() : nil) }
            try await withScenario(delegate: TaskInterviewer(interview), reply: BasicScript()()) {
                (server, session) async throws in
                let (location, response) = try await session.download(from: server.url())
                defer { try? FileManager.default.removeItem(at: location) }
                #expect(try String(contentsOf: location, encoding: .utf8) == (isAnswered ? "in" : "who are you?"))
                #expect((response as? HTTPURLResponse)?.statusCode == (isAnswered ? 200 : 401))
            }
        }
    }

    @Test func `bytes and lines tasks authenticate`() async throws {
        try await withScenario(delegate: TaskInterviewer(Interview(.ada())), reply: BasicScript()({ _ in .ok("a\nb\n") })) {
            (server, session) async throws in
            let (bytes, response) = try await session.bytes(from: server.url())
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            var lines: [String] = []
            for try await line in bytes.lines { lines.append(line) }
            #expect(lines == ["a", "b"])
        }
    }

    @Test func `HEAD authenticates`() async throws {
        try await withScenario(
            delegate: TaskInterviewer(Interview(.ada())),
            reply: { request in
                .bare(
                    request.authorization == nil ? 401 : 200,
                    [("WWW-Authenticate", "Basic realm=\"r\""), ("Content-Length", "5")])
            }
        ) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url(), method: "HEAD")).response.statusCode == 200)
            #expect(server.requests.map(\.method) == ["HEAD", "HEAD"])
        }
    }
}
