// SPDX-License-Identifier: Apache-2.0

#if Tracing
import HTTPRules
import LoadingModel
import Tracing

/// The tracing parameters of one task.
struct TaskTracing: Sendable {
    let tracer: any Tracer
    /// Injects the context into a request's header fields: the session's own tracer, or all instruments of the process.
    let instrument: any Instrument
    /// The caller's context when the task was created.
    let context: ServiceContext

    /// Makes the parameters in the caller's context; nil if tracing is disabled.
    init?(_ tracer: (any Tracer)?) {
        if let tracer {
            guard !(tracer is NoOpTracer) else { return nil }
            self.tracer = tracer
            instrument = tracer
        } else {
            let instrument = InstrumentationSystem.instrument
            guard !(instrument is NoOpInstrument) else { return nil }
            self.tracer = InstrumentationSystem.tracer
            self.instrument = instrument
        }
        context = ServiceContext.current ?? .topLevel
    }
}

/// The client span of one request, following OpenTelemetry's semantic conventions for HTTP.
struct RequestSpan {
    let fields: [(String, String)]
    var context: ServiceContext { span.context }
    private let span: any Tracing.Span
    private let begin: UInt64

    init(_ request: ObservedRequest, _ tracing: TaskTracing) {
        // Converts seconds since 2001, as in `Date`. A clock that was never set may give times before 1970.
        begin = UInt64(max(0, (request.begin + 978_307_200) * 1e9))
        let start = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: begin)
        let method = RequestLabels.method(request.method)
        span = Self.start(method == RequestLabels.other ? "HTTP" : method, tracing.tracer, tracing.context, at: start)
        var fields: [(String, String)] = []
        tracing.instrument.inject(span.context, into: &fields, using: FieldInjector())
        self.fields = fields
        guard span.isRecording else { return }
        span.updateAttributes { attributes in
            attributes["http.request.method"] = method
            if method == RequestLabels.other { attributes["http.request.method_original"] = request.method }
            attributes["server.address"] = request.host
            attributes["server.port"] = request.port
            attributes["url.full"] = RedactedURL.text(request.url)
            if request.resendCount > 0 { attributes["http.request.resend_count"] = request.resendCount }
        }
    }

    private static func start(
        _ name: String, _ tracer: some Tracer, _ context: ServiceContext, at start: DefaultTracerClock.Timestamp
    ) -> any Tracing.Span {
        tracer.startSpan(name, context: context, ofKind: .client, at: start)
    }

    func end(_ end: ObservedEnd) {
        if span.isRecording {
            let errorType = RequestLabels.errorType(end)
            span.updateAttributes { attributes in
                let response = end.response
                if let status = response.status { attributes["http.response.status_code"] = status }
                if let version = response.version { attributes["network.protocol.version"] = version }
                if let transport = RequestLabels.transport(response) { attributes["network.transport"] = transport }
                if let address = response.connection?.remoteAddress { attributes["network.peer.address"] = address }
                if let port = response.connection?.remotePort { attributes["network.peer.port"] = port }
                if let errorType { attributes["error.type"] = errorType }
            }
            if errorType != nil { span.setStatus(SpanStatus(code: .error)) }
        }
        let instant = DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: begin + UInt64(clamping: end.duration))
        span.end(at: instant)
    }

    private struct FieldInjector: Injector {
        func inject(_ value: String, forKey key: String, into fields: inout [(String, String)]) { fields.append((key, value)) }
    }
}
#endif
