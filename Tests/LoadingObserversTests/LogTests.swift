// SPDX-License-Identifier: Apache-2.0

#if Logging
import Foundation
import LoadingTestKit
import Logging
import Testing
import URLLoading

/// The messages of a session to the app's logger.
@Suite(.timeLimit(.minutes(1)))
struct LogTests {
    /// Keeps the logged lines, for tests that wait for one.
    struct Handler: LogHandler {
        let lines: Watched<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
            let text = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
            lines.change { $0.append("\(event.level) \(event.source) \(event.message)\(text)") }
        }
    }

    private func withLoggedScenario(
        _ level: Logger.Level = .trace, delegate: (any URLSessionDelegate)? = nil,
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        test: (ScriptedServer, URLSession, Watched<[String]>) async throws -> Void
    ) async throws {
        let lines = Watched<[String]>([])
        var logger = Logger(label: "test") { _ in Handler(lines: lines) }
        logger.logLevel = level
        try await withScenario(delegate: delegate, configure: { $0.logger = logger }, reply: reply) { server, session in
            try await test(server, session, lines)
        }
    }

    private func texts(_ lines: Watched<[String]>) -> [String] {
        lines.read { $0.map { $0.split(separator: " ").dropFirst(2).prefix { !$0.contains("=") }.joined(separator: " ") } }
    }

    @Test func `each step of a load is logged`() async throws {
        try await withLoggedScenario(
            delegate: Password(),
            reply: {
                switch $0.path {
                case "/a": .redirect(302, to: "/b")
                case "/b" where $0.header("Authorization") == nil: .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])
                default: .ok("body")
                }
            }
        ) { server, session, lines in
            _ = try await session.data(from: server.url("/a"))
            #expect(
                texts(lines) == [
                    "request began", "connection opened", "response began", "request ended",
                    "redirect followed", "response began", "request ended",
                    "request sent again with a credential", "response began", "request ended",
                ])
            #expect(lines.read { $0.allSatisfy { $0.contains(" URLLoading ") } })
            session.invalidateAndCancel()
            _ = try await lines.value { $0.first { $0.contains("connection closed") } }
        }
    }

    @Test func `no password, signature, field or body is logged`() async throws {
        try await withLoggedScenario(
            delegate: Password(),
            reply: {
                $0.header("Authorization") == nil
                    ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])
                    : .redirect(302, to: "/b?access_token=hush&sig=hush")
            }
        ) { server, session, lines in
            let request = URLRequest(
                server.url("/a?X-Goog-Signature=hush", user: "ada:hush"), method: "POST",
                headers: ["X-Key": "hush", "Cookie": "a=hush"], body: Data("hush".utf8))
            _ = try? await session.data(for: request)
            #expect(lines.read { $0.count } > 3)
            #expect(lines.read { $0.filter { $0.contains("hush") || $0.contains("lovelace") } }.isEmpty)
            #expect(lines.read { $0.contains { $0.contains("X-Goog-Signature=REDACTED") } })
        }
    }

    @Test func `a failed request and its retry are logged`() async throws {
        let dies = ScriptedReply([.close])
        try await withLoggedScenario(
            .debug, reply: { $0.connection == 0 && $0.number == 1 ? dies : .ok() }
        ) { server, session, lines in
            for path in ["/1", "/2"] { _ = try await session.data(from: server.url(path)) }
            #expect(
                texts(lines) == [
                    "request began", "response began", "request began", "request failed", "request retried", "response began",
                ])
            #expect(lines.read { $0.contains { $0.contains("error.type=networkConnectionLost") } })
        }
    }

    @Test func `at level info nothing is logged`() async throws {
        try await withLoggedScenario(.info, reply: { _ in .status(500) }) { server, session, lines in
            _ = try await session.data(from: server.url("/a"))
            #expect(lines.read { $0.isEmpty })
        }
    }
}
#endif
