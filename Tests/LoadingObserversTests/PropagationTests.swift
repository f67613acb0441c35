// SPDX-License-Identifier: Apache-2.0

#if Tracing
import Foundation
import LoadingTestKit
import Testing
import Tracing
import URLLoading

/// The trace fields of requests.
@Suite(.timeLimit(.minutes(1)))
struct PropagationTests {
    private func trace(_ request: RecordedRequest) -> [String] {
        ["traceparent", "tracestate", "baggage"].flatMap { name in request.values(of: name).map { "\(name): \($0)" } }
    }

    @Test func `a request has the fields of its span, once`() async throws {
        try await withTracedScenario(reply: { _ in .ok() }) { server, session, tracer in
            _ = try await session.data(from: server.url("/a"))
            let parent = try #require(tracer.spans.first).traceparent
            #expect(trace(try await server.request(0)) == ["traceparent: \(parent)", "tracestate: test=1", "baggage: user=ada"])
        }
    }

    @Test func `the app's own traceparent is sent unchanged, without the tracer's tracestate`() async throws {
        try await withTracedScenario(
            reply: { $0.order == 0 ? .redirect(302, to: "/b") : .ok() }
        ) { server, session, tracer in
            _ = try await session.data(for: URLRequest(server.url("/a"), headers: ["Traceparent": "mine", "TraceState": "a=1"]))
            for request in server.requests {
                #expect(trace(request) == ["traceparent: mine", "tracestate: a=1", "baggage: user=ada"])
            }
            _ = try await session.data(for: URLRequest(server.url("/c"), headers: ["traceparent": "mine"]))
            #expect(trace(try await server.request(2)) == ["traceparent: mine", "baggage: user=ada"])
            #expect(tracer.spans.count == 3)
        }
    }

    @Test func `the session's own traceparent takes precedence over the tracer's`() async throws {
        try await withTracedScenario(
            configure: { $0.httpAdditionalHeaders = ["traceparent": "ours"] }, reply: { _ in .ok() }
        ) { server, session, _ in
            _ = try await session.data(from: server.url("/a"))
            #expect(trace(try await server.request(0)) == ["traceparent: ours", "baggage: user=ada"])
        }
    }

    @Test func `baggage is sent only to the first origin, and not after a redirect back`() async throws {
        try await withScriptedServer(
            reply: { request in
                guard let back = request.path.split(separator: "/").last, back != "end" else { return .ok("end") }
                return .redirect(307, to: "http://127.0.0.1:\(back)/end")
            }
        ) { other in
            try await withTracedScenario(
                reply: { request in
                    request.path == "/end" ? .ok() : .redirect(307, to: "http://127.0.0.1:\(request.path.dropFirst())")
                }
            ) { server, session, tracer in
                // The first server redirects to the other one, which redirects back.
                _ = try await session.data(from: server.url("/\(other.port)/\(server.port)"))
                let all = [try await server.request(0), try await other.request(0), try await server.request(1)]
                #expect(all.map { $0.values(of: "baggage") } == [["user=ada"], [], []])
                #expect(all.map { $0.values(of: "traceparent") } == tracer.spans.map { [$0.traceparent] })
            }
        }
    }

    @Test func `a response that varies by traceparent is served from the cache`() async throws {
        try await withTracedScenario(
            reply: { .ok("\($0.order)", [("Cache-Control", "max-age=100"), ("Vary", "traceparent")]) }
        ) { server, session, tracer in
            for _ in 0..<2 {
                let (data, _) = try await session.data(from: server.url("/a"))
                #expect(String(decoding: data, as: UTF8.self) == "0")
            }
            #expect(server.requests.count == 1 && tracer.spans.count == 1)
            // A traceparent of the app is compared like any other field.
            for value in ["x", "x", "y"] {
                _ = try await session.data(for: URLRequest(server.url("/a"), headers: ["traceparent": value]))
            }
            #expect(server.requests.map { $0.header("traceparent") }.dropFirst() == ["x", "y"])
        }
    }

    @Test func `a response that varies by baggage is served only to requests with the app's own baggage`() async throws {
        try await withTracedScenario(
            reply: { .ok("\($0.order)", [("Cache-Control", "max-age=100"), ("Vary", "baggage")]) }
        ) { (server, session, _) async throws in
            func text(_ headers: [String: String] = [:]) async throws -> String {
                String(decoding: try await session.data(for: URLRequest(server.url("/a"), headers: headers)).0, as: UTF8.self)
            }
            // The tracer's fields are not known when the cache is consulted, so no stored response is found.
            #expect(try await text() == "0")
            #expect(try await text() == "1")
            #expect(server.requests.map { $0.values(of: "baggage") } == [["user=ada"], ["user=ada"]])
            // The app's own field is known, so a request with this value finds the stored response, and a request with another
            // value does not.
            #expect(try await text(["baggage": "user=ada"]) == "1")
            #expect(try await text(["baggage": "user=bob"]) == "2")
            #expect(server.requests.map { $0.values(of: "baggage") } == [["user=ada"], ["user=ada"], ["user=bob"]])
        }
    }

    @Test func `a tracer cannot break the message framing`() async throws {
        try await withScenario(configure: { $0.tracer = HostileTracer() }, reply: { _ in .ok() }) { server, session in
            _ = try await session.data(from: server.url("/a"))
            let request = try await server.request(0)
            #expect(request.values(of: "X-Evil").isEmpty && request.values(of: "Authorization").isEmpty)
            #expect(request.values(of: "Host") == ["127.0.0.1:\(server.port)"])
            #expect(request.values(of: "b3") == ["2"])
        }
    }

    @Test func `the task's request has only the app's fields`() async throws {
        try await withTracedScenario(reply: { _ in .ok() }) { server, session, _ in
            let shown = await withCheckedContinuation { continuation in
                let task = Watched<URLSessionTask?>(nil)
                let made = session.dataTask(with: URLRequest(server.url("/a"), headers: ["X-Own": "1"])) { _, _, _ in
                    continuation.resume(returning: task.read { $0?.currentRequest?.allHTTPHeaderFields })
                }
                task.change { $0 = made }
                made.resume()
            }
            #expect(shown == ["X-Own": "1"])
        }
    }
}

/// Injects fields that no request may have.
private struct HostileTracer: Tracer {
    typealias Span = NoOpTracer.NoOpSpan

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> NoOpTracer.NoOpSpan { NoOpTracer.NoOpSpan(context: context()) }

    func forceFlush() {}

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Carrier == Extract.Carrier {}

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Carrier == Inject.Carrier {
        let fields = [
            ("baggage", "a\r\nX-Evil: 1"), ("Authorization", "Basic YTpi"), ("Host", "evil"), ("b3", "1"), ("B3", "2"),
            ("Transfer-Encoding", "chunked"),
        ]
        for (name, value) in fields { injector.inject(value, forKey: name, into: &carrier) }
    }
}
#endif
