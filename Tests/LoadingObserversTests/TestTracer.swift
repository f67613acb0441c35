// SPDX-License-Identifier: Apache-2.0

#if Tracing
import Foundation
import InMemoryTracing
import LoadingTestKit
import Testing
import Tracing
import URLLoading

/// Records spans, and injects the fields of W3C Trace Context.
struct TestTracer: Tracer {
    typealias Span = InMemorySpan

    let memory = InMemoryTracer()

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> InMemorySpan {
        memory.startSpan(
            operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID, line: line)
    }

    func forceFlush() {}

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Carrier == Extract.Carrier {}

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Carrier == Inject.Carrier {
        guard let span = context.inMemorySpanContext else { return }
        injector.inject("00-\(span.traceID)-\(span.spanID)-01", forKey: "traceparent", into: &carrier)
        injector.inject("test=1", forKey: "tracestate", into: &carrier)
        injector.inject("user=ada", forKey: "baggage", into: &carrier)
    }

    /// The ended spans, in order.
    var spans: [SeenSpan] { memory.finishedSpans.map { SeenSpan($0) } }
}

/// The properties of a span that tests compare.
struct SeenSpan: Equatable {
    var name: String
    /// The attributes as text.
    var attributes: [String: String] = [:]
    var isError: Bool
    let traceparent: String
    let parent: String?
    let begin: UInt64
    let end: UInt64

    init(_ span: FinishedInMemorySpan) {
        name = span.operationName
        isError = span.status?.code == .error
        traceparent = "00-\(span.traceID)-\(span.spanID)-01"
        parent = span.parentSpanID
        begin = span.startInstant.nanosecondsSinceEpoch
        end = span.endInstant.nanosecondsSinceEpoch
        var attributes: [String: String] = [:]
        func note(_ name: String, _ value: SpanAttribute) {
            switch value {
            case .string(let text): attributes[name] = text
            case .int64(let number): attributes[name] = String(number)
            default: attributes[name] = "\(value)"
            }
        }
        span.attributes.forEach(note)
        self.attributes = attributes
    }

    subscript(name: String) -> String? { attributes[name] }

    /// Method, path, status or error, and how many requests the task had sent before.
    var line: String {
        let path = attributes["url.full"].flatMap { URL(string: $0)?.path } ?? "?"
        let again = attributes["http.request.resend_count"].map { " #\($0)" } ?? ""
        let error = attributes["error.type"].map { " error \($0)" } ?? ""
        return "\(name) \(path) \(attributes["http.response.status_code"] ?? "-")\(error)\(again)"
    }
}

func withTracedScenario(
    greeting: @escaping @Sendable (_ connection: Int) -> [SocketEffect] = { _ in [] },
    delegate: (any URLSessionDelegate)? = nil, configure: (URLSessionConfiguration) -> Void = { _ in },
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    test: (ScriptedServer, URLSession, TestTracer) async throws -> Void
) async throws {
    let tracer = TestTracer()
    try await withScenario(
        greeting: greeting, delegate: delegate,
        configure: {
            $0.tracer = tracer
            configure($0)
        }, reply: reply
    ) { server, session in try await test(server, session, tracer) }
}
#endif
