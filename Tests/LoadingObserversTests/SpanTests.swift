// SPDX-License-Identifier: Apache-2.0

#if Tracing
import Foundation
import InMemoryTracing
import LoadingTestKit
import Testing
import Tracing
import URLLoading

/// One client span per request on the wire, as defined by OpenTelemetry's semantic conventions.
@Suite(.timeLimit(.minutes(1)))
struct SpanTests {
    @Test func `a request is one span with the attributes of request and response`() async throws {
        try await withTracedScenario(reply: { _ in .ok("body") }) { server, session, tracer in
            let before = DefaultTracerClock.now.nanosecondsSinceEpoch
            _ = try await session.data(from: server.url("/a?b=c", user: "ada:secret"))
            let after = DefaultTracerClock.now.nanosecondsSinceEpoch
            let span = try #require(tracer.spans.first)
            #expect(tracer.spans.count == 1)
            #expect(tracer.memory.activeSpans.isEmpty)
            #expect(span.name == "GET")
            #expect(!span.isError)
            #expect(
                span.attributes == [
                    "http.request.method": "GET", "server.address": "127.0.0.1", "server.port": "\(server.port)",
                    "url.full": "http://REDACTED:REDACTED@127.0.0.1:\(server.port)/a?b=c", "http.response.status_code": "200",
                    "network.protocol.version": "1.1", "network.peer.address": "127.0.0.1",
                    "network.peer.port": "\(server.port)",
                ])
            // The clocks are read at different times, and may be set in between.
            let second: UInt64 = 1_000_000_000
            #expect(span.begin + second > before && span.begin <= span.end && span.end < after + second)
        }
    }

    @Test func `the span is a child of the context in which the task was created`() async throws {
        try await withTracedScenario(reply: { _ in .ok() }) { server, session, tracer in
            let ends = Watched(0)
            let (task, made) = try await tracer.memory.withSpan("work") { work in
                _ = try await session.data(from: server.url("/awaited"))
                #expect(tracer.spans.map(\.parent) == [work.spanID])
                return (session.dataTask(with: server.url("/made")) { _, _, _ in ends.change { $0 += 1 } }, work.spanID)
            }
            try await tracer.memory.withSpan("later") { _ in
                task.resume()
                try await ends.value { $0 == 1 ? () : nil }
            }
            _ = try await session.data(from: server.url("/alone"))
            let parents = tracer.spans.filter { $0.name == "GET" }.map(\.parent)
            #expect(parents == [made, made, nil])
        }
    }

    @Test func `each redirect has its own span`() async throws {
        try await withTracedScenario(
            reply: { $0.order < 2 ? .redirect(302, to: "/\($0.order + 1)") : .ok("end") }
        ) { server, session, tracer in
            _ = try await session.data(from: server.url("/0"))
            #expect(tracer.spans.map(\.line) == ["GET /0 302", "GET /1 302 #1", "GET /2 200 #2"])
            #expect(tracer.spans.allSatisfy { !$0.isError })
            #expect(server.requests.map { $0.values(of: "traceparent") } == tracer.spans.map { [$0.traceparent] })
        }
    }

    @Test func `a redirect that is not followed is not a failure of its request`() async throws {
        try await withTracedScenario(reply: { _ in .redirect(302, to: "file:///etc/passwd") }) { server, session, tracer in
            await #expect(throws: URLError.self) { try await session.data(from: server.url("/0")) }
            #expect(tracer.spans.map(\.line) == ["GET /0 302"])
        }
    }

    @Test func `a request with a credential has its own span after that of the 401`() async throws {
        try await withTracedScenario(
            delegate: Password(),
            reply: {
                $0.header("Authorization") == nil ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")]) : .ok("in")
            }
        ) { server, session, tracer in
            _ = try await session.data(from: server.url("/a"))
            #expect(tracer.spans.map(\.line) == ["GET /a 401 error 401", "GET /a 200 #1"])
            #expect(tracer.spans.map(\.isError) == [true, false])
        }
    }

    @Test func `a retry over a new connection has its own span`() async throws {
        let dies = ScriptedReply([.close])
        try await withTracedScenario(
            reply: { $0.connection == 0 && $0.number == 1 ? dies : .ok("body") }
        ) { server, session, tracer in
            _ = try await session.data(from: server.url("/1"))
            _ = try await session.data(from: server.url("/2"))
            #expect(
                tracer.spans.map(\.line) == ["GET /1 200", "GET /2 - error networkConnectionLost", "GET /2 200 #1"])
            #expect(tracer.spans.map(\.isError) == [false, true, false])
        }
    }

    @Test func `a cache hit has no span, and a revalidation has one`() async throws {
        try await withTracedScenario(
            reply: {
                if $0.path == "/stale" {
                    return $0.header("If-None-Match") == nil
                        ? .ok("old", [("ETag", "\"1\""), ("Cache-Control", "no-cache")])
                        : .status(304, [("ETag", "\"1\"")])
                }
                return .ok("fresh", [("Cache-Control", "max-age=100")])
            }
        ) { server, session, tracer in
            for path in ["/fresh", "/fresh", "/stale", "/stale"] { _ = try await session.data(from: server.url(path)) }
            #expect(tracer.spans.map(\.line) == ["GET /fresh 200", "GET /stale 200", "GET /stale 304"])
        }
    }

    @Test func `a background revalidation is a span with the same parent`() async throws {
        let stale = [("Cache-Control", "max-age=0, stale-while-revalidate=100"), ("ETag", "\"1\"")]
        try await withTracedScenario(reply: { $0.order == 0 ? .ok("old", stale) : .ok("new") }) { server, session, tracer in
            let parent = try await tracer.memory.withSpan("work") { work in
                for _ in 0..<2 { _ = try await session.data(from: server.url("/a")) }
                return work.spanID
            }
            #expect(try await server.request(1).values(of: "traceparent").count == 1)
            // The second span may end in between, and is then in both lists.
            let begun = tracer.memory.activeSpans.map { $0.context } + tracer.memory.finishedSpans.map { $0.context }
            let requests = Set(begun.compactMap(\.inMemorySpanContext)).filter { $0.parentSpanID != nil }
            #expect(requests.map(\.parentSpanID) == [parent, parent])
        }
    }

    @Test(arguments: [404, 500, 503]) func `an error status is an error of the span`(status: Int) async throws {
        try await withTracedScenario(reply: { _ in .status(status, body: "no") }) { server, session, tracer in
            _ = try await session.data(from: server.url("/a"))
            #expect(tracer.spans.map(\.line) == ["GET /a \(status) error \(status)"])
            #expect(tracer.spans.map(\.isError) == [true])
        }
    }

    @Test func `a failure is recorded with the error that the app gets`() async throws {
        let rows: [(ScriptedReply, String)] = [
            (.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort").then(.close), "GET /a 200 error networkConnectionLost"),
            (.raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), "GET /a - error badServerResponse"),
            (
                .ok("no gzip", [("Content-Encoding", "gzip")]), "GET /a 200 error cannotDecodeContentData"
            ),
        ]
        for (reply, line) in rows {
            try await withTracedScenario(reply: { _ in reply }) { server, session, tracer in
                await #expect(throws: URLError.self) { try await session.data(from: server.url("/a")) }
                #expect(tracer.spans.map(\.line) == [line])
                #expect(tracer.spans.map(\.isError) == [true])
            }
        }
    }

    @Test func `a request to an unreachable server is a span without a peer`() async throws {
        let tracer = TestTracer()
        let port = try RefusingPort()
        try await withSession {
            $0.tracer = tracer
        } test: { session in
            let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/a"))
            await #expect(throws: URLError.self) { try await session.data(from: url) }
            let span = try #require(tracer.spans.first)
            #expect(span.line == "GET /a - error cannotConnectToHost")
            #expect(span["network.peer.address"] == nil && span["network.protocol.version"] == nil)
        }
    }

    @Test func `a cancelled task ends its span`() async throws {
        try await withTracedScenario(reply: { _ in [.gate("never")] }) { server, session, tracer in
            await withCheckedContinuation { continuation in
                let task = session.dataTask(with: server.url("/a")) { _, _, _ in continuation.resume() }
                task.resume()
                Task {
                    try await server.reached("never")
                    task.cancel()
                }
            }
            #expect(tracer.spans.map(\.line) == ["GET /a - error cancelled"])
            #expect(tracer.memory.activeSpans.isEmpty)
        }
    }

    @Test func `an unknown method is recorded in a separate attribute`() async throws {
        try await withTracedScenario(reply: { _ in .ok() }) { server, session, tracer in
            for method in ["PROPFIND", "patch", "PATCH"] {
                _ = try await session.data(for: URLRequest(server.url("/a"), method: method))
            }
            #expect(tracer.spans.map(\.name) == ["HTTP", "HTTP", "PATCH"])
            #expect(tracer.spans.map { $0["http.request.method"] } == ["_OTHER", "_OTHER", "PATCH"])
            #expect(tracer.spans.map { $0["http.request.method_original"] } == ["PROPFIND", "patch", nil])
        }
    }

    @Test func `an upload is one span, and a signature in its URL is redacted`() async throws {
        try await withTracedScenario(reply: { .ok($0.bodyText) }) { server, session, tracer in
            let request = URLRequest(server.url("/put?sig=abc&X-Amz-Signature=def&part=1"), method: "PUT")
            let (data, _) = try await session.upload(for: request, from: Data("payload".utf8))
            #expect(String(decoding: data, as: UTF8.self) == "payload")
            #expect(try await server.request(0).target == "/put?sig=abc&X-Amz-Signature=def&part=1")
            #expect(tracer.spans.map(\.name) == ["PUT"])
            #expect(tracer.spans.first?["url.full"]?.hasSuffix("/put?sig=REDACTED&X-Amz-Signature=REDACTED&part=1") == true)
        }
    }

    @Test func `a load without HTTP has no span`() async throws {
        let tracer = TestTracer()
        let file = try TemporaryDirectory()
        let path = file.url.appendingPathComponent("a")
        try Data("x".utf8).write(to: path)
        try await withSession {
            $0.tracer = tracer
            $0.protocolClasses = [CustomProtocol.self]
        } test: { session in
            _ = try await session.data(from: try #require(URL(string: "data:,x")))
            _ = try await session.data(from: path)
            _ = try await session.data(from: try #require(URL(string: "own://host/")))
            #expect(tracer.spans.isEmpty && tracer.memory.activeSpans.isEmpty)
        }
    }

    @Test func `HTTP 2 requests have their version and a traceparent`() async throws {
        let tracer = TestTracer()
        try await withHTTP2Server(reply: { _ in .ok("body") }) { server in
            try await withSession {
                $0.tracer = tracer
                $0.connectionOptions.httpVersions = .http2PriorKnowledge
            } test: { session in
                for _ in 0..<2 { _ = try await session.data(from: server.url("/a")) }
                #expect(tracer.spans.map(\.line) == ["GET /a 200", "GET /a 200"])
                #expect(tracer.spans.map { $0["network.protocol.version"] } == ["2", "2"])
            }
        }
    }

    @Test func `a WebSocket has the span of its handshake`() async throws {
        try await withTracedScenario(reply: { .webSocket($0).then(.readFrames, .stall) }) { server, session, tracer in
            let task = session.webSocketTask(with: try #require(URL(string: "ws://127.0.0.1:\(server.port)/socket")))
            task.resume()
            // The first message is sent when the handshake is over and the connection is open.
            try await task.send(.string("hello"))
            #expect(tracer.spans.map(\.line) == ["GET /socket 101"])
            task.cancel()
        }
    }

    @Test func `a no-op tracer causes no span and no field`() async throws {
        try await withScenario(configure: { $0.tracer = NoOpTracer() }, reply: { _ in .ok() }) { server, session in
            _ = try await session.data(from: server.url("/a"))
            #expect(try await server.request(0).header("traceparent") == nil)
        }
    }
}

/// Loads URLs of its own scheme.
private final class CustomProtocol: URLProtocol, @unchecked Sendable {
    // Sendable because it has no state.
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "own" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func startLoading() {
        guard let url = request.url else { return }
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocolDidFinishLoading(self)
    }
    override func stopLoading() {}
}
#endif
