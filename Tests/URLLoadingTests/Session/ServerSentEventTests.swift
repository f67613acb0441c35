// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Server-sent events as a sequence (WHATWG HTML, section 9.2).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct ServerSentEventTests {
    private static let kind = [("Content-Type", "text/event-stream; charset=utf-8")]

    /// A response whose body ends when its connection is closed.
    private static func stream(_ text: String) -> ScriptedReply {
        [.head(200, kind + [("Connection", "close")], text, ends: true), .close]
    }

    /// Collects the events that arrive, and the error at the end.
    private static func collect(
        _ events: ServerSentEvents, atMost count: Int = .max
    ) async -> (events: [ServerSentEvent], error: URLError?) {
        var found: [ServerSentEvent] = []
        do {
            for try await event in events {
                found.append(event)
                if found.count == count { break }
            }
            return (found, nil)
        } catch {
            return (found, error as? URLError)
        }
    }

    @Test func `a stream that ends is requested again from its last event, until the server responds 204`() async throws {
        let texts = ["retry: 1\nid: 7\ndata: a\n\ndata: b\n\ndata: cut", "id: 8\nevent: add\ndata: c\n\n"]
        try await withScenario(reply: { $0.order < 2 ? Self.stream(texts[$0.order]) : .status(204) }) {
            (server, session) async throws in
            let (events, error) = await Self.collect(session.serverSentEvents(for: URLRequest(server.url("/e"))))
            #expect(error == nil)
            #expect(events.map(\.data) == ["a", "b", "c"])
            #expect(events.map(\.id) == ["7", "7", "8"])
            #expect(events.map(\.type) == ["message", "message", "add"])
            #expect(server.requests.map { $0.header("Last-Event-ID") } == [nil, "7", "8"])
            for request in server.requests {
                #expect(request.header("Accept") == "text/event-stream")
                #expect(request.header("Cache-Control") == "no-store")
            }
        }
    }

    @Test func `an id without a value resets the last event ID`() async throws {
        let texts = ["retry: 1\nid: 7\ndata: a\n\n", "id\ndata: b\n\n"]
        try await withScenario(reply: { $0.order < 2 ? Self.stream(texts[$0.order]) : .status(204) }) {
            (server, session) async throws in
            let request = URLRequest(server.url("/e"), headers: ["Last-Event-ID": "6"])
            let (events, error) = await Self.collect(session.serverSentEvents(for: request))
            #expect(error == nil)
            #expect(events.map(\.id) == ["7", ""])
            #expect(server.requests.map { $0.header("Last-Event-ID") } == ["6", "7", nil])
        }
    }

    @Test func `each response is reported before its first event`() async throws {
        try await withScenario(reply: { $0.order < 2 ? Self.stream("retry: 1\ndata: a\n\n") : .status(204) }) {
            (server, session) async throws in
            let journal = Delivered<String>()
            let events = session.serverSentEvents(for: URLRequest(server.url("/e"))) { journal("\($0.statusCode)") }
            for try await event in events { journal(event.data) }
            #expect(journal.all == ["200", "a", "200", "a", "204"])
        }
    }

    @Test func `a refusal has the response and the beginning of its body`() async throws {
        let long = String(repeating: "x", count: 100_000)
        let fields = [("Content-Type", "application/json"), ("Retry-After", "7")]
        let replies: [(ScriptedReply, Int, String)] = [
            (.status(429, fields, body: "{\"error\": 1}"), 429, "{\"error\": 1}"),
            (.status(401, fields, body: long), 401, String(long.prefix(65_536))),
            (.ok("<html>", [("Content-Type", "text/html"), ("Retry-After", "7")]), 200, "<html>"),
            // The body is cut off.
            (
                [.head(503, fields + [("Content-Length", "10")], "late"), .close], 503, "late"
            ),
        ]
        for (reply, status, body) in replies {
            try await withScenario(reply: { _ in reply }) { (server, session) async throws in
                let (_, error) = await Self.collect(session.serverSentEvents(for: URLRequest(server.url("/e"))))
                let refusal = try #require(error?.refusal)
                #expect(error?.code == .badServerResponse)
                #expect(refusal.response.statusCode == status)
                #expect(refusal.response.value(forHTTPHeaderField: "Retry-After") == "7")
                #expect(String(decoding: refusal.body, as: UTF8.self) == body)
            }
        }
    }

    @Test func `the body of a refusal that does not end is read within the request timeout`() async throws {
        let fields = [("Content-Type", "text/plain"), ("Content-Length", "10")]
        try await withScenario(reply: { _ in [.head(503, fields, "wait"), .stall] }) {
            (server, session) async throws in
            var request = URLRequest(server.url("/e"))
            request.timeoutInterval = 0.3
            let (_, error) = await Self.collect(session.serverSentEvents(for: request))
            #expect(error?.refusal?.response.statusCode == 503)
            #expect(error?.refusal.map { String(decoding: $0.body, as: UTF8.self) } == "wait")
            try await server.waitForAbandoning(0)
        }
    }

    @Test func `reconnection attempts that fail are repeated`() async throws {
        let lost = ScriptedReply([.close])
        try await withScenario(
            reply: { request in
                switch request.order {
                case 0: Self.stream("retry: 1\nid: 1\ndata: a\n\n")
                case 1, 2: lost
                case 3: Self.stream("data: b\n\n")
                default: .status(204)
                }
            }
        ) { (server, session) async throws in
            let source = session.serverSentEvents(for: URLRequest(server.url("/e")), maximumEventSize: .max)
            let (events, error) = await Self.collect(source)
            #expect(events.map(\.data) == ["a", "b"])
            #expect(error == nil)
            #expect(server.requests.map { $0.header("Last-Event-ID") } == [nil, "1", "1", "1", "1"])
        }
    }

    @Test func `a response that is not an event stream fails`() async throws {
        let replies: [ScriptedReply] = [
            .ok("data: a\n\n", [("Content-Type", "text/plain")]), .status(404, Self.kind),
            .status(500, Self.kind, body: "data: a\n\n"),
        ]
        for reply in replies {
            try await withScenario(reply: { _ in reply }) { (server, session) async throws in
                let (events, error) = await Self.collect(session.serverSentEvents(for: URLRequest(server.url("/e"))))
                #expect(events == [])
                #expect(error?.code == .badServerResponse)
                #expect(error?.failingURL == server.url("/e"))
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `a failure of the first request is thrown`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/e"))
        let (events, error) = await Self.collect(
            URLSession(configuration: .ephemeral).serverSentEvents(for: URLRequest(url: url)))
        #expect(events == [])
        #expect(error?.code == .cannotConnectToHost)
    }

    @Test func `a POST is not sent again`() async throws {
        try await withScenario(reply: { _ in Self.stream("data: a\n\n") }) { (server, session) async throws in
            var request = URLRequest(server.url("/e"), method: "POST")
            request.httpBody = Data("{}".utf8)
            let (events, error) = await Self.collect(session.serverSentEvents(for: request))
            #expect(events.map(\.data) == ["a"])
            #expect(error == nil)
            #expect(server.requests.count == 1)
            #expect(server.requests[0].body == Array("{}".utf8))
        }
    }

    @Test func `reconnecting goes to the target of a redirect, without credentials for the first origin`() async throws {
        try await withScriptedServer(reply: { $0.order == 0 ? Self.stream("retry: 1\ndata: a\n\n") : .status(204) }) {
            (other) async throws in
            let target = other.url("/there").absoluteString
            try await withScenario(
                configure: { $0.httpAdditionalHeaders = ["Authorization": "Basic secret"] },
                reply: { _ in .redirect(307, to: target) }
            ) { (server, session) async throws in
                let request = URLRequest(server.url("/e"), headers: ["Cookie": "session=secret"])
                let (events, error) = await Self.collect(session.serverSentEvents(for: request))
                #expect(events.map(\.data) == ["a"])
                #expect(error == nil)
                #expect(server.requests.count == 1)
                #expect(server.requests[0].header("Authorization") == "Basic secret")
                #expect(other.requests.map(\.path) == ["/there", "/there"])
                for request in other.requests { #expect(!request.headText.contains("secret")) }
            }
        }
    }

    @Test func `an event that is too long fails the sequence`() async throws {
        try await withScenario(reply: { _ in Self.stream("data: " + String(repeating: "a", count: 5000)) }) {
            (server, session) async throws in
            let source = session.serverSentEvents(for: URLRequest(server.url("/e")), maximumEventSize: 1000)
            let (events, error) = await Self.collect(source)
            #expect(events == [])
            #expect(error?.code == .dataLengthExceedsMaximum)
        }
    }

    @Test func `a server that does not respond times out`() async throws {
        try await withScenario(reply: { _ in ScriptedReply([.gate("never")]) }) { (server, session) async throws in
            var request = URLRequest(server.url("/e"))
            request.timeoutInterval = 0.2
            let (_, error) = await Self.collect(session.serverSentEvents(for: request))
            #expect(error?.code == .timedOut)
            server.open("never")
        }
    }

    @Test func `leaving the loop cancels the load`() async throws {
        try await withScenario(reply: { _ in [.head(200, Self.kind, "data: a\n\n"), .stall] }) {
            (server, session) async throws in
            let (events, _) = await Self.collect(session.serverSentEvents(for: URLRequest(server.url("/e"))), atMost: 1)
            #expect(events.map(\.data) == ["a"])
            try await server.waitForAbandoning(0)
        }
    }
}
