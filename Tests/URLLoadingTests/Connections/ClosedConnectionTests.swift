// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Servers that close an idle connection without notice, just before the next request is sent on it.
@Suite(.timeLimit(.minutes(1)))
struct ClosedConnectionTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates() }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var isSecure = false
        var end: SocketEffect
    }

    static let rows = [
        Row(testDescription: "closed", end: .close), Row(testDescription: "reset", end: .reset),
        Row(testDescription: "closed under TLS", isSecure: true, end: .closeAbruptly),
    ]

    private func withServer(
        _ row: Row, configure: @escaping (URLSessionConfiguration) -> Void = { _ in },
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: row.isSecure ? certificates.valid : nil,
            configure: {
                $0.tlsTrustRoots = [certificates.root]
                configure($0)
            },
            reply: reply, test: test
        )
    }

    /// Requests that are not retried: not idempotent, or with a body that can be read only once.
    private func requests(_ url: URL) -> [URLRequest] {
        var stream = URLRequest(url, method: "PUT")
        stream.httpBodyStream = InputStream(data: Data("body".utf8))
        return [URLRequest(url, method: "POST", body: Data("body".utf8)), URLRequest(url, method: "PATCH"), stream]
    }

    @Test(arguments: rows)
    func `a request that cannot be retried uses a new connection if the idle one was closed`(row: Row) async throws {
        for index in 0..<3 {
            try await withServer(
                row, reply: { $0.connection == 0 ? ScriptedReply.ok("first").then(.gate("end"), row.end) : .ok($0.body) }
            ) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "first")
                let results = Delivered<Result<Data, URLError>>()
                try await BlockedLoops.during {
                    server.open("end")
                    try await server.waitForClose(0)
                    session.dataTask(with: requests(server.url("/2"))[index]) { data, _, error in
                        results((error as? URLError).map { .failure($0) } ?? .success(data ?? Data()))
                    }.resume()
                }
                #expect(String(decoding: try await results.value.get(), as: UTF8.self) == (index == 1 ? "" : "body"))
                #expect(server.requests.map(\.connection) == [0, 1])
            }
        }
    }

    @Test func `unsolicited bytes end an idle connection before the next POST`() async throws {
        let timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        let first = ScriptedReply.ok("first")
        try await withScenario(reply: { $0.connection == 0 ? first.then(.gate("end"), .write(timeout)) : .ok($0.body) }) {
            (server, session) async throws in
            #expect(try await session.text(server.url()) == "first")
            let written = server.bytesWritten(on: 0)
            let texts = Delivered<String>()
            try await BlockedLoops.during {
                server.open("end")
                try await server.waitForBytesWritten(written + timeout.utf8.count, on: 0)
                session.dataTask(with: requests(server.url("/2"))[0]) { data, _, error in
                    texts(error.map { "\($0)" } ?? String(decoding: data ?? Data(), as: UTF8.self))
                }.resume()
            }
            #expect(try await texts.value == "body")
            #expect(server.requests.map(\.connection) == [0, 1])
        }
    }

    @Test(arguments: rows) func `a queued POST does not get a closed connection`(row: Row) async throws {
        let first = ScriptedReply([.gate("answer")] + ScriptedReply.ok("first").effects + [row.end])
        try await withServer(
            row, configure: { $0.httpMaximumConnectionsPerHost = 1 }, reply: { $0.connection == 0 ? first : .ok($0.body) }
        ) { (server, session) async throws in
            let texts = Delivered<String>()
            func start(_ request: URLRequest) {
                session.dataTask(with: request) { data, _, error in
                    texts(error.map { "\($0)" } ?? String(decoding: data ?? Data(), as: UTF8.self))
                }.resume()
            }
            start(URLRequest(server.url("/1")))
            try await server.reached("answer")
            start(requests(server.url("/2"))[0])
            // The session processes orders in sequence, so the POST is queued when this load has ended.
            _ = try await session.data(from: try #require(URL(string: "data:,x")))
            try await BlockedLoops.during {
                server.open("answer")
                try await server.waitForClose(0)
            }
            try await texts.count(reaches: 2)
            // A reset can discard the first response.
            if case .reset = row.end { #expect(texts.all.last == "body") } else { #expect(texts.all == ["first", "body"]) }
            #expect(server.requests.map(\.connection) == [0, 1])
        }
    }

    /// A closed connection is replaced only once, even if the server closes every connection.
    @Test(arguments: [SocketEffect.close, .reset].indices)
    func `a POST fails if the server closes every connection`(row: Int) async throws {
        let effect = [SocketEffect.close, .reset][row]
        try await withScenario(greeting: { _ in [effect] }, reply: { _ in [] }) { (server, session) async throws in
            let request = URLRequest(server.url(), method: "POST", body: Data("x".utf8))
            let error = await expectFailure(.networkConnectionLost, .cannotConnectToHost) { try await session.data(for: request) }
            // A reset can arrive before the client notices that the connection is established.
            #expect(error?.code == .networkConnectionLost || row == 1)
            #expect(server.connectionCount <= 2)
        }
    }
}
