// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Failed TLS handshakes, and connections that close without close_notify.
@Suite(.timeLimit(.minutes(1)))
struct HandshakeFailureTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Loads over https from a server without TLS.
    private func load(
        _ greeting: [SocketEffect], timeout: TimeInterval = 20, _ codes: [URLError.Code], in row: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let judge = Judge.trusting
        try await withScenario(
            delegate: SessionJudge(judge), configure: { $0.timeoutIntervalForRequest = timeout },
            greeting: { _ in greeting }, reply: { _ in [] }
        ) { (server, session) async throws in
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            do {
                _ = try await session.data(from: url)
                Issue.record("the load succeeded: \(row)", sourceLocation: sourceLocation)
            } catch let error as URLError {
                #expect(codes.contains(error.code), "\(row): \(error)", sourceLocation: sourceLocation)
                #expect(error.failingURL == url, "\(row)", sourceLocation: sourceLocation)
                #expect(error.failureURLPeerTrust == nil, "\(row)", sourceLocation: sourceLocation)
            }
            try await server.waitForAllClosed()
        }
        #expect(judge.all.isEmpty, "\(row)")
    }

    @Test func `a server that does not speak TLS fails the load`() async throws {
        let rows: [(String, [SocketEffect])] = [
            ("an HTTP response", [.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .stall]),
            ("an HTTP response after the hello", [.awaitBytes(1), .write("HTTP/1.1 400 Bad Request\r\n\r\n"), .close]),
            ("an SSH greeting", [.write("SSH-2.0-OpenSSH_9.2\r\n"), .stall]),
            ("an SMTP greeting", [.write("220 mail.example ESMTP\r\n"), .stall]),
            ("zeros", [.awaitBytes(1), .write([UInt8](repeating: 0, count: 4_096)), .stall]),
            ("an alert of death", [.awaitBytes(1), .write([21, 3, 3, 0, 2, 2, 40]), .close]),
            ("application data", [.awaitBytes(1), .write([23, 3, 3, 0, 5, 1, 2, 3, 4, 5]), .stall]),
            (
                "a record that is too long",
                [.awaitBytes(1), .write([22, 3, 3, 255, 255] + [UInt8](repeating: 2, count: 65_535)), .stall]
            ),
        ]
        for (row, greeting) in rows { try await load(greeting, [.secureConnectionFailed], in: row) }
    }

    @Test func `a reset or a close in the handshake fails the load`() async throws {
        // The first bytes of a ServerHello.
        let start = SocketEffect.write([22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3])
        let rows: [(String, [SocketEffect])] = [
            ("reset", [.awaitBytes(1), .reset]), ("close", [.awaitBytes(1), .close]),
            ("reset in the hello", [.awaitBytes(1), start, .reset]), ("close in the hello", [.awaitBytes(1), start, .close]),
        ]
        for (row, greeting) in rows { try await load(greeting, [.secureConnectionFailed], in: row) }
    }

    @Test func `a stalled handshake ends with the request timeout`() async throws {
        let start = SocketEffect.write([22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3])
        for (row, greeting) in [("at once", [SocketEffect.stall]), ("in the hello", [.awaitBytes(1), start, .stall])] {
            try await load(greeting, timeout: 0.3, [.timedOut], in: row)
        }
    }

    @Test func `http to a TLS port fails`() async throws {
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok() }) { (server) async throws in
            try await withSession { (session) async throws in
                let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
                await expectFailure(.networkConnectionLost, .badServerResponse, .cannotParseResponse) {
                    try await session.data(from: url)
                }
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `a truncated body fails if its length is known`() async throws {
        let head = "HTTP/1.1 200 OK\r\n"
        let rows: [(String, String, URLError.Code?)] = [
            ("length", head + "Content-Length: 10\r\n\r\nhello", .networkConnectionLost),
            ("chunked", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .networkConnectionLost),
            ("whole", head + "Content-Length: 5\r\n\r\nhello", nil),
            ("until the end", head + "\r\nhello", nil),
        ]
        for (row, text, code) in rows {
            for end in [SocketEffect.closeAbruptly, .close] {
                let recorder = EventRecorder()
                try await withScenario(
                    identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
                    reply: { _ in [.write(text), end] }
                ) { (server, session) async throws in
                    let task = session.dataTask(with: server.url())
                    task.delegate = recorder
                    task.resume()
                    let record = try await recorder.completion(of: task)
                    #expect((record.error as? URLError)?.code == code, "\(row) \(end)")
                    #expect(record.body == Data("hello".utf8), "\(row) \(end)")
                    #expect(
                        recorder.letters(of: task).hasPrefix("RD") && recorder.letters(of: task).hasSuffix("ME"), "\(row) \(end)")
                    // The next load has its own connection.
                    if row == "whole" { #expect(try await session.text(server.url()) == "hello") }
                }
            }
        }
    }

    @Test func `a truncated head fails`() async throws {
        for text in ["", "HTTP/1.1 200 OK\r\nContent-Le"] {
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { _ in [.write(text), .closeAbruptly] }
            ) { (server, session) async throws in
                await expectFailure(.networkConnectionLost, .badServerResponse, in: text) {
                    try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data("body".utf8))
                }
            }
        }
    }
}
