// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading
import URLLoadingArchive
import URLLoadingTestKit

/// Recorded responses are replayed without a server.
@Suite(.timeLimit(.minutes(1)))
struct ReplayTests {
    private func record(
        _ detail: HTTPArchive.Detail? = nil, _ load: (URLSession, ScriptedLoopbackServer) async throws -> Void
    ) async throws -> (HTTPArchive, ScriptedLoopbackServer) {
        let server = try await ScriptedLoopbackServer.start { request in
            switch request.target.prefix(while: { $0 != "?" }) {
            case "/old": .response(302, [("Location", "/new")])
            case "/echo": .response(200, [("Content-Type", "application/octet-stream")], body: request.body + Data([0, 255]))
            case "/cut": ServerScript.response(body: Data("0123456789".utf8)).cutInTheMiddle()
            default:
                .response(
                    200, [("Content-Type", "text/plain"), ("X-A", "1"), ("X-A", "2"), ("Set-Cookie", "a=hidden; Path=/")],
                    body: Data("answer".utf8))
            }
        }
        let recorder = LoadRecorder(detail: detail)
        try await load(URLSession(configuration: recorder.configuration()), server)
        await server.stop()
        return (recorder.archive, server)
    }

    private func text(_ session: URLSession, _ url: URL) async throws -> String {
        String(decoding: try await session.data(from: url).0, as: UTF8.self)
    }

    @Test func `loads are recorded and replayed through a file`() async throws {
        let folder = try TemporaryDirectory()
        let (archive, server) = try await record { (session, server) async throws in
            #expect(try await text(session, server.url("/old")) == "answer")
            #expect(try await text(session, server.url("/a?token=hidden1&page=1")) == "answer")
        }
        #expect(archive.entries.map(\.response.status) == [302, 200, 200])
        try archive.write(to: folder.file("a.har"))
        #expect(!String(decoding: try archive.data(), as: UTF8.self).contains("hidden"))
        let session = URLSession(configuration: .stubbed(by: try HTTPArchive(contentsOf: folder.file("a.har")).replay()))
        let (data, response) = try await session.data(from: server.url("/old"))
        #expect(String(decoding: data, as: UTF8.self) == "answer")
        #expect(response.url == server.url("/new"))
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-A") == "1, 2")
        #expect(try await text(session, server.url("/a?token=hidden2&page=1")) == "answer")
    }

    @Test func `a request that was not recorded fails, and the error names it`() async throws {
        let (archive, server) = try await record { (session, server) async throws in
            _ = try await text(session, server.url("/a?page=1"))
        }
        let session = URLSession(configuration: .stubbed(by: archive.replay()))
        let error = await #expect(throws: URLError.self) { try await text(session, server.url("/a?page=2&token=hidden")) }
        #expect(error?.code == .resourceUnavailable)
        #expect(error?.localizedDescription == "the archive has no response for GET \(server.url("/a?page=2&token=REDACTED"))")
        var request = URLRequest(url: server.url("/a?page=1"))
        request.httpMethod = "DELETE"
        await #expect(throws: URLError.self) { try await session.data(for: request) }
    }

    @Test func `bodies are kept byte for byte, and distinguish requests if requested`() async throws {
        let (archive, server) = try await record { (session, server) async throws in
            for body in ["one", "two"] {
                var request = URLRequest(url: server.url("/echo"))
                request.httpMethod = "PUT"
                #expect(try await session.upload(for: request, from: Data(body.utf8)).0 == Data(body.utf8) + Data([0, 255]))
            }
        }
        let session = URLSession(configuration: .stubbed(by: archive.replay(matchesBodies: true)))
        var request = URLRequest(url: server.url("/echo"))
        request.httpMethod = "PUT"
        for body in ["two", "one", "two"] {
            #expect(try await session.upload(for: request, from: Data(body.utf8)).0 == Data(body.utf8) + Data([0, 255]))
        }
        let other = request
        await #expect(throws: URLError.self) { try await session.upload(for: other, from: Data("three".utf8)) }
    }

    @Test func `several responses to the same request are replayed in order, and the last one repeats`() async throws {
        var archive = HTTPArchive()
        for (second, body) in ["a", "b"].enumerated() {
            archive.append(
                .init(
                    startedDateTime: Date(timeIntervalSince1970: Double(second)),
                    request: .init(method: "get", url: "http://h.example/#x"),
                    response: .init(status: 200, content: .init(mimeType: "text/plain", text: body))))
        }
        let url = try #require(URL(string: "http://h.example/#y"))
        let session = URLSession(configuration: .stubbed(by: archive.replay()))
        var bodies: [String] = []
        for _ in 0..<3 { bodies.append(try await text(session, url)) }
        #expect(bodies == ["a", "b", "b"])
    }

    @Test func `a failed load is recorded, and fails again`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        let recorder = LoadRecorder()
        await #expect(throws: URLError.self) { try await URLSession(configuration: recorder.configuration()).data(from: url) }
        let session = URLSession(configuration: .stubbed(by: recorder.archive.replay()))
        let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
        #expect(error?.code == .cannotConnectToHost)
        #expect(error?.localizedDescription.contains("refused") == true)
    }
}
