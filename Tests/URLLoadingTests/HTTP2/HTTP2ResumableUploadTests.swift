// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Resumable uploads over HTTP/2 (draft-ietf-httpbis-resumable-upload).
@Suite(.timeLimit(.minutes(1)))
struct HTTP2ResumableUploadTests {
    /// How a stream, or the whole connection, is lost.
    enum Loss: CaseIterable, Sendable {
        case resetStream, cancelledStream, goAway, goAwayWithError, end, abruptEnd, connectionReset

        var steps: [HTTP2Step] {
            switch self {
            case .resetStream: [.resetStream(.internalError)]
            case .cancelledStream: [.resetStream(.cancel)]
            case .goAway: [.goAway(last: 1), .close]
            case .goAwayWithError: [.goAway(last: 1, .internalError), .close]
            case .end: [.close]
            case .abruptEnd: [.closeAbruptly]
            case .connectionReset: [.resetConnection]
            }
        }

        var keepsConnection: Bool { self == .resetStream || self == .cancelledStream }
    }

    private static let content = ScriptedFile.pattern(3_000_000, seed: 21)
    private static let version = ("upload-draft-interop-version", "8")
    private static let announcement: HTTP2Step = .head(104, [version, ("location", "/uploads/1")])

    private static func state(_ offset: Int, isComplete: Bool = false) -> [HTTP2Step] {
        [
            .head(
                204, [version, ("upload-complete", isComplete ? "?1" : "?0"), ("upload-offset", "\(offset)")], ends: true)
        ]
    }

    private static func done() -> [HTTP2Step] { .ok("whole", [version, ("upload-complete", "?1")]) }

    @Test(arguments: Loss.allCases, HTTP2Start.allCases) func `an upload resumes after a loss`(
        loss: Loss, way: HTTP2Start
    ) async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            way, delegate: recorder,
            reply: { request in
                switch request.method {
                case "POST": [Self.announcement, .awaitBody(1_000_000)] + loss.steps
                case "HEAD": Self.state(1_000_000)
                default: Self.done()
                }
            }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url("/files"), method: "POST"), from: Data(Self.content))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.body == Data("whole".utf8))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            #expect(task.countOfBytesSent == 3_000_000)
            let requests = server.requests
            #expect(requests.map { "\($0.method) \($0.path)" } == ["POST /files", "HEAD /uploads/1", "PATCH /uploads/1"])
            #expect(requests.first?.header("upload-complete") == "?1")
            #expect(requests.first?.header("upload-length") == "3000000")
            let last = try #require(requests.last)
            #expect(last.header("upload-offset") == "1000000")
            #expect(last.header("upload-complete") == "?1")
            #expect(last.header("content-type") == "application/partial-upload")
            #expect(last.header("content-length") == "2000000")
            #expect(last.bodyHash == HTTP2Request.hash(of: Array(Self.content.dropFirst(1_000_000))))
            #expect(server.connectionCount == (loss.keepsConnection ? 1 : 2))
        }
    }

    @Test func `an upload from a file resumes after several losses`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        let asked = Watched(0)
        try await withHTTP2Scenario(reply: { request in
            switch request.method {
            case "POST": return [Self.announcement, .awaitBody(500_000), .resetStream(.internalError)]
            case "HEAD":
                let count = asked.change { count in
                    count += 1
                    return count
                }
                return Self.state(count * 500_000)
            default:
                let offset = request.header("upload-offset").flatMap { Int($0) } ?? 0
                return offset < 2_500_000 ? [.awaitBody(500_000), .resetStream(.internalError)] : Self.done()
            }
        }) { (server, session) async throws in
            let (data, _) = try await session.upload(for: URLRequest(server.url("/files"), method: "POST"), fromFile: file)
            #expect(data == Data("whole".utf8))
            let parts = server.requests.filter { $0.method == "PATCH" }
            #expect(parts.map { $0.header("upload-offset") } == (1...5).map { "\($0 * 500_000)" })
            #expect(parts.last?.bodyHash == HTTP2Request.hash(of: Array(Self.content.dropFirst(2_500_000))))
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a lost upload stream does not affect other loads of the connection`() async throws {
        try await withHTTP2Scenario(reply: { request in
            switch (request.method, request.path) {
            case ("POST", _): [Self.announcement, .awaitBody(1_000_000), .gate("lose"), .resetStream(.internalError)]
            case ("HEAD", _): Self.state(1_000_000)
            case ("GET", _): [.head(200), .data("a", ends: false), .gate("end"), .data("b")]
            default: Self.done()
            }
        }) { (server, session) async throws in
            async let other = session.text(server.url("/other"))
            _ = try await server.head(0)
            async let upload = session.upload(for: URLRequest(server.url("/files"), method: "POST"), from: Data(Self.content))
            try await server.reached("lose")
            server.open("lose")
            #expect(try await upload.0 == Data("whole".utf8))
            server.open("end")
            #expect(try await other == "ab")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a cancelled upload is deleted on the server`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { request in
                request.method == "POST"
                    ? [Self.announcement, .awaitBody(500_000), .reach("middle")] : [.head(204, [Self.version], ends: true)]
            }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url("/files"), method: "POST"), from: Data(Self.content))
            task.resume()
            try await server.reached("middle")
            try await recorder.wait(for: task) { !$0.informational.isEmpty }
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            let request = try await server.request(1)
            #expect("\(request.method) \(request.path)" == "DELETE /uploads/1")
        }
    }

    @Test func `an upload over HTTP/2 resumes from resume data`() async throws {
        try await withHTTP2Scenario(reply: { request in
            switch request.method {
            case "POST": [Self.announcement, .awaitBody(500_000), .reach("middle")]
            case "HEAD": Self.state(500_000)
            default: Self.done()
            }
        }) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url("/files"), method: "POST"), from: Data(Self.content))
            task.resume()
            try await server.reached("middle")
            let data = try #require(await task.cancelByProducingResumeData())
            let (body, _) = try await session.upload(resumeFrom: data)
            #expect(body == Data("whole".utf8))
            #expect(server.requests.map(\.method) == ["POST", "HEAD", "PATCH"])
            #expect(server.requests.last?.bodyHash == HTTP2Request.hash(of: Array(Self.content.dropFirst(500_000))))
        }
    }

    @Test func `an impossible offset fails the upload, and no byte is sent`() async throws {
        try await withHTTP2Scenario(reply: { request in
            request.method == "POST"
                ? [Self.announcement, .awaitBody(500_000), .resetStream(.internalError)] : Self.state(3_000_001)
        }) { (server, session) async throws in
            let error = await #expect(throws: URLError.self) {
                try await session.upload(for: URLRequest(server.url("/files"), method: "POST"), from: Data(Self.content))
            }
            #expect(error?.code == .badServerResponse)
            #expect(!server.requests.contains { $0.method == "PATCH" })
        }
    }
}
