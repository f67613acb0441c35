// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What the app sets on a request must not forge anything on the wire.
@Suite(.timeLimit(.minutes(1)))
struct InjectionTests {
    /// The expected outcome for a request.
    enum Outcome: Sendable {
        /// It fails before anything is sent.
        case refused
        /// It is sent with these fields.
        case sent(with: [String: String])
    }

    private func expect(
        _ outcome: Outcome, of make: @escaping @Sendable (URL) -> URLRequest, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let request = make(server.url("/x"))
            switch outcome {
            case .refused:
                let error = await expectFailure(.badURL, sourceLocation: sourceLocation) { try await session.data(for: request) }
                let reason = error?.localizedDescription ?? ""
                #expect(reason.contains("the request cannot be sent: the "), "\(reason)", sourceLocation: sourceLocation)
                #expect(server.requests.isEmpty, sourceLocation: sourceLocation)
            case .sent(let fields):
                _ = try await session.data(for: request)
                let sent = try await server.request(0)
                for (name, value) in fields { #expect(sent.values(of: name) == [value], sourceLocation: sourceLocation) }
            }
            // The next load shows that the connection was left in a clean state.
            #expect(try await session.text(URLRequest(server.url("/clean"))).response.statusCode == 200)
            for request in server.requests {
                #expect(request.header("X-Forged") == nil, sourceLocation: sourceLocation)
                #expect(!request.rawHead.contains(0), sourceLocation: sourceLocation)
            }
            let isRefused = if case .refused = outcome { true } else { false }
            #expect(server.requests.map(\.path) == (isRefused ? ["/clean"] : ["/x", "/clean"]), sourceLocation: sourceLocation)
            #expect(server.errors.isEmpty, sourceLocation: sourceLocation)
        }
    }

    @Test(
        arguments: [
            ("a\r\nX-Forged: 1", .refused), ("a\nX-Forged: 1", .refused), ("a\rX-Forged: 1", .refused), ("a\0b", .refused),
            ("a\r\n\r\nGET /forged HTTP/1.1\r\n\r\n", .refused), ("a\r\n X-Forged: 1", .refused), ("\0", .refused),
            ("\r\nX-Forged: 1", .sent(with: ["X-Value": "X-Forged: 1"])), ("a\r\n", .sent(with: ["X-Value": "a"])),
            ("\r\n\r\n", .sent(with: ["X-Value": ""])),
            ("a\u{560D}\u{560A}X-Forged: 1", .sent(with: ["X-Value": "a\u{560D}\u{560A}X-Forged: 1"])),
        ] as [(String, Outcome)])
    func `a field value with a line break or NUL within is not sent`(value: String, outcome: Outcome) async throws {
        try await expect(outcome) { url in
            var request = URLRequest(url: url)
            request.setValue(value, forHTTPHeaderField: "X-Value")
            return request
        }
    }

    @Test(
        arguments: [
            ("X\r\nX-Forged: 1\r\nY", .refused), ("X-Forged:", .refused), ("X-Forged: 1\r\nY", .refused), ("X Y", .refused),
            ("X\tY", .refused), ("X\0", .refused), ("\u{FC}ber", .refused), (" X-Forged", .refused), ("", .refused),
        ] as [(String, Outcome)])
    func `a field name that is not a token is not sent`(name: String, outcome: Outcome) async throws {
        try await expect(outcome) { url in
            var request = URLRequest(url: url)
            request.setValue("1", forHTTPHeaderField: name)
            return request
        }
    }

    @Test(arguments: [
        "GET /forged HTTP/1.1\r\nX-Forged: 1\r\n\r\nGET", "GET\r\nX-Forged: 1", "G T", "GET\n", "GET\0", "G\u{C4}T",
        "GET /forged",
    ])
    func `a method that is not a token is not sent`(method: String) async throws {
        try await expect(.refused) { URLRequest($0, method: method) }
    }

    @Test func `the app cannot override the framing of a body`() async throws {
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

    @Test func `the app cannot add framing to a request without a body`() async throws {
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

    @Test(
        arguments: [("1", nil), ("5", "Content-Length"), ("10", nil), ("x", "Transfer-Encoding"), ("-1", "Transfer-Encoding")]
            as [(String, String?)])
    func `a streamed body has one framing, and a wrong length forges no request`(
        length: String, framing: String?
    ) async throws {
        try await withScenario(reply: { .ok($0.bodyText) }) { (server, session) async throws in
            var request = URLRequest(server.url("/x"), method: "PUT", headers: ["Content-Length": length])
            request.httpBodyStream = InputStream(data: Data("hello".utf8))
            if let framing {
                #expect(try await session.text(request).text == "hello")
                let sent = try await server.request(0)
                #expect(["Content-Length", "Transfer-Encoding"].filter { sent.header($0) != nil } == [framing])
            } else {
                // A connection is not reused after a request whose length was wrong.
                let wrong = request
                await expectFailure(.requestBodyStreamExhausted) { try await session.data(for: wrong) }
            }
            #expect(try await session.text(server.url("/after")).isEmpty)
            let paths = server.requests.map(\.path).sorted()
            // The server may or may not see the cut request.
            #expect(paths == ["/after", "/x"] || framing == nil && paths == ["/after"])
            #expect(server.errors.isEmpty)
        }
    }

    @Test(arguments: [
        "/%0d%0aX-Forged:1", "/a%20b", "/a?q=%0D%0AX-Forged:1", "/%00", "/a%2Fb", "/%2e%2e/b", "/@evil.example/", "/a\\b",
        "//evil.example/b", "/a b", "/?a=b c",
    ])
    func `the request on the wire has the host and path of its URL`(path: String) async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)\(path)"))
            _ = try await session.data(from: url)
            let sent = try await server.request(0)
            #expect(sent.header("X-Forged") == nil)
            #expect(sent.header("Host") == "127.0.0.1:\(server.port)")
            #expect(!sent.target.contains(" "))
            let expected = url.path(percentEncoded: true) + (url.query(percentEncoded: true).map { "?" + $0 } ?? "")
            #expect(sent.target == expected)
        }
    }

    @Test(
        arguments: [
            ("http://127.0.0.1%0d%0aX-Forged:1/", .badURL), ("http://", .badURL), ("http:", .badURL),
            ("http://127.0.0.1:70000/", .badURL), ("nonsense", .unsupportedURL), ("unknown://127.0.0.1/", .unsupportedURL),
            // No server listens on this port of the host, which is the part after the "@".
            ("http://127.0.0.1\\@localhost/", .cannotConnectToHost),
        ] as [(String, URLError.Code)])
    func `a URL that cannot be loaded fails at once`(text: String, code: URLError.Code) async throws {
        let url = try #require(URL(string: text))
        try await withSession { (session) async throws in
            await expectFailure(code, in: text) { try await session.data(from: url) }
        }
    }

    @Test(arguments: ["http://[::1", "http://127.0.0.1:port/"])
    func `a string that is not a URL is rejected by Foundation`(text: String) { #expect(URL(string: text) == nil) }
}
