//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What an app hands over must not forge what goes on the wire.
@Suite(.timeLimit(.minutes(1)))
struct InjectionTests {
    /// Loads a request that may fail, and expects that nothing forged came to the server.
    private func expectNoInjection(
        _ make: @Sendable (URL) -> URLRequest, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            do {
                _ = try await session.data(for: make(server.url("/x")))
            } catch let error as URLError {
                #expect(error.code != .timedOut, sourceLocation: sourceLocation)
            }
            // The next load shows that the connection was left clean.
            #expect(try await session.text(URLRequest(server.url("/clean"))).response.statusCode == 200)
            for request in server.requests {
                #expect(request.header("X-Forged") == nil, sourceLocation: sourceLocation)
                #expect(!request.rawHead.contains(0), sourceLocation: sourceLocation)
                #expect(["/x", "/clean"].contains(request.path), sourceLocation: sourceLocation)
            }
            #expect(server.requests.count <= 2, sourceLocation: sourceLocation)
            #expect(server.errors.isEmpty, sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [
        "a\r\nX-Forged: 1", "a\nX-Forged: 1", "a\rX-Forged: 1", "a\0b", "a\r\n\r\nGET /forged HTTP/1.1\r\n\r\n",
        "\r\nX-Forged: 1",
        "a\r\n X-Forged: 1", "a\u{560D}\u{560A}X-Forged: 1", "a\r\n",
    ])
    func `a field value with a line break or NUL does not go on the wire`(value: String) async throws {
        try await expectNoInjection { url in
            var request = URLRequest(url: url)
            request.setValue(value, forHTTPHeaderField: "X-Value")
            return request
        }
    }

    @Test(arguments: [
        "X\r\nX-Forged: 1\r\nY", "X-Forged:", "X-Forged: 1\r\nY", "X Y", "X\tY", "", "X\0", "\u{FC}ber", " X-Forged",
    ])
    func `a field name that is no token does not go on the wire`(name: String) async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            var request = URLRequest(url: server.url("/x"))
            request.setValue("1", forHTTPHeaderField: name)
            _ = try? await session.data(for: request)
            for request in server.requests {
                #expect(request.header("X-Forged") == nil)
                #expect(!request.headers.contains { $0.name.contains(" ") || $0.name.contains("\t") || $0.name.isEmpty })
                #expect(!request.headText.contains("\u{FC}ber"))
            }
        }
    }

    @Test(arguments: [
        "GET /forged HTTP/1.1\r\nX-Forged: 1\r\n\r\nGET", "GET\r\nX-Forged: 1", "G T", "GET\n", "GET\0", "G\u{C4}T",
        "GET /forged",
    ])
    func `a method that is no token does not go on the wire`(method: String) async throws {
        try await expectNoInjection { URLRequest($0, method: method) }
    }

    @Test func `the framing of a body is ours`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let forged = [
                "Content-Length": "1", "Transfer-Encoding": "chunked", "Connection": "Upgrade", "Upgrade": "websocket",
            ]
            let request = URLRequest(server.url("/x"), method: "POST", headers: forged, body: Data("hello".utf8))
            _ = try await session.data(for: request)
            let sent = try await server.request(0)
            #expect(sent.bodyText == "hello")
            #expect(sent.values(of: "Content-Length") == ["5"])
            #expect(sent.values(of: "Transfer-Encoding").isEmpty)
            #expect(sent.values(of: "Upgrade").isEmpty)
            #expect(!sent.values(of: "Connection").contains { $0.lowercased().contains("upgrade") })
            #expect(sent.values(of: "Host") == ["127.0.0.1:\(server.port)"])
        }
    }

    @Test func `a request without a body gets no forged framing`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let request = URLRequest(server.url("/x"), headers: ["Content-Length": "10", "Host": "forged.example"])
            _ = try await session.data(for: request)
            _ = try await session.data(from: server.url("/y"))
            let requests = try await server.waitForRequests(2)
            #expect(requests.map(\.path) == ["/x", "/y"])
            #expect(requests[0].values(of: "Content-Length").filter { $0 != "0" } == [])
            #expect(requests[0].values(of: "Host").count == 1)
        }
    }

    @Test(arguments: ["1", "5", "10", "x", "-1"])
    func `a streamed body has one framing, and a length that is not its own forges no request`(length: String) async throws {
        try await withScenario(reply: { .ok($0.bodyText) }) { (server, session) async throws in
            var request = URLRequest(server.url("/x"), method: "PUT", headers: ["Content-Length": length])
            request.httpBodyStream = InputStream(data: Data("hello".utf8))
            do {
                #expect(try await session.text(request).text == "hello")
                #expect(server.requests[0].isChunked != (server.requests[0].header("Content-Length") != nil))
            } catch let error as URLError {
                // A length that turns out wrong may also fail the load: then its connection is not used again.
                #expect(length != "5" && error.code != .timedOut)
            }
            #expect(try await session.text(server.url("/after")).isEmpty)
            // The cut request, if it came at all, may be seen after the next one, which has a connection of its own.
            #expect(server.requests.map(\.path).sorted() == ["/after", "/x"] || server.requests.map(\.path) == ["/after"])
            #expect(server.errors.isEmpty)
        }
    }

    @Test(arguments: [
        "/%0d%0aX-Forged:1", "/a%20b", "/a?q=%0D%0AX-Forged:1", "/%00", "/a%2Fb", "/%2e%2e/b", "/@evil.example/", "/a\\b",
        "//evil.example/b", "/a b", "/?a=b c",
    ])
    func `URL and wire agree on host and path`(path: String) async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            guard let url = URL(string: "http://127.0.0.1:\(server.port)\(path)") else { return }
            _ = try await session.data(from: url)
            let sent = try await server.request(0)
            #expect(sent.header("X-Forged") == nil)
            #expect(sent.header("Host") == "127.0.0.1:\(server.port)")
            #expect(!sent.target.contains(" "))
            let expected = url.path(percentEncoded: true) + (url.query(percentEncoded: true).map { "?" + $0 } ?? "")
            #expect(sent.target == expected)
        }
    }

    @Test(arguments: [
        "http://127.0.0.1%0d%0aX-Forged:1/", "http://127.0.0.1\\@localhost/", "http://[::1", "http://127.0.0.1:port/", "http://",
        "http:", "nonsense", "unknown://127.0.0.1/", "http://127.0.0.1:70000/",
    ])
    func `a URL that cannot be loaded fails at once`(text: String) async throws {
        guard let url = URL(string: text) else { return }
        try await withSession { (session) async throws in
            await expectFailure(.badURL, .unsupportedURL, .cannotFindHost, .cannotConnectToHost, in: text) {
                try await session.data(from: url)
            }
        }
    }
}
