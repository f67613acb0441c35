// SPDX-License-Identifier: Apache-2.0

#if HTTPTypes
import Foundation
import HTTPTypes
import LoadingTestKit
import Testing
import URLLoading

/// Requests and responses of swift-http-types.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct HTTPTypesTests {
    private static func request(_ method: HTTPRequest.Method, _ server: ScriptedServer, _ path: String) -> HTTPRequest {
        HTTPRequest(method: method, scheme: server.isSecure ? "https" : "http", authority: "127.0.0.1:\(server.port)", path: path)
    }

    @Test func `each kind of load accepts an HTTPRequest and returns an HTTPResponse`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.method) \($0.target) \($0.bodyText)", [("X-Answer", "1")]) }) {
            (server) async throws in
            try await withSession { (session) async throws in
                let get = Self.request(.get, server, "/a?b=c")
                let (data, response) = try await session.data(for: get)
                #expect(String(decoding: data, as: UTF8.self) == "GET /a?b=c ")
                #expect(response.status == .ok)
                let name = try #require(HTTPField.Name("x-answer"))
                #expect(response.headerFields[name] == "1")
                #expect(
                    try await session.upload(for: Self.request(.put, server, "/u"), from: Data("sent".utf8)).0
                        == Data("PUT /u sent".utf8))
                let folder = try TemporaryDirectory()
                let file = folder.url.appending(path: "file")
                try Data("stored".utf8).write(to: file)
                #expect(
                    try await session.upload(for: Self.request(.put, server, "/f"), fromFile: file).0
                        == Data("PUT /f stored".utf8))
                let (place, downloaded) = try await session.download(for: get)
                #expect(try Data(contentsOf: place) == Data("GET /a?b=c ".utf8))
                #expect(downloaded.status == .ok)
                try FileManager.default.removeItem(at: place)
                var bytes = 0
                for try await _ in try await session.bytes(for: get).0 { bytes += 1 }
                #expect(bytes == 11)
            }
        }
    }

    @Test func `fields with the same name are joined, and a task exposes its HTTPRequest`() async throws {
        try await withScriptedServer(reply: { _ in .status(404) }) { (server) async throws in
            try await withSession { (session) async throws in
                var request = Self.request(.get, server, "/")
                let accept = try #require(HTTPField.Name("Accept"))
                request.headerFields.append(HTTPField(name: accept, value: "a/b"))
                request.headerFields.append(HTTPField(name: accept, value: "c/d"))
                request.headerFields.append(HTTPField(name: .cookie, value: "a=1"))
                request.headerFields.append(HTTPField(name: .cookie, value: "b=2"))
                #expect(try await session.data(for: request).1.status == .notFound)
                let sent = try #require(server.requests.first)
                #expect(sent.header("Accept") == "a/b, c/d")
                #expect(sent.header("Cookie") == "a=1; b=2")
                let task = session.dataTask(with: try #require(URLRequest(httpRequest: request)))
                #expect(task.originalHTTPRequest?.path == "/")
                #expect(task.originalHTTPRequest?.authority == "127.0.0.1:\(server.port)")
                #expect(task.originalHTTPRequest?.headerFields[accept] == "a/b, c/d")
                task.cancel()
            }
        }
    }

    @Test func `a response keeps its field lines separate, and a path cannot extend the authority`() async throws {
        try await withScriptedServer(reply: { _ in .ok("", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]) }) {
            (server) async throws in
            try await withSession { (session) async throws in
                let response = try await session.data(for: Self.request(.get, server, "/")).1
                #expect(response.headerFields[values: .setCookie] == ["a=1", "b=2"])
                await expectFailure(.badURL) { try await session.data(for: Self.request(.get, server, "@127.0.0.1/")) }
                await expectFailure(.badURL) { try await session.data(for: Self.request(.options, server, "*")) }
            }
        }
    }

    @Test func `a request without a URL fails`() async throws {
        try await withSession { (session) async throws in
            await expectFailure(.badURL) {
                try await session.data(for: HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/"))
            }
        }
    }
}
#endif
