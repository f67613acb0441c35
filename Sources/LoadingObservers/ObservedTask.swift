// SPDX-License-Identifier: Apache-2.0

#if Logging || Metrics || Tracing
import LoadingModel
#if Logging
import Logging
#endif
#if Metrics
import Metrics
#endif
#if Tracing
import Tracing
#endif

/// The observers of one task.
struct TaskObserver: Sendable {
    #if Logging
    var logger: Logger?
    #endif
    #if Metrics
    var meters: MeterSource?
    #endif
    #if Tracing
    var tracing: TaskTracing?
    #endif

    var recordsAnything: Bool {
        #if Logging
        if logger != nil { return true }
        #endif
        #if Metrics
        if meters != nil { return true }
        #endif
        #if Tracing
        if tracing != nil { return true }
        #endif
        return false
    }
}

/// Observes the requests of one task.
final class ObservedTask: LoadObserver {
    private let observer: TaskObserver

    init(_ observer: TaskObserver) { self.observer = observer }

    func willSend(_ request: ObservedRequest) -> any RequestObserver { ObservedExchange(request, observer) }
}

/// Observes one request, and keeps the state of the request until its end.
///
/// Used only on the session's event loop.
final class ObservedExchange: RequestObserver {
    private(set) var fields: [(String, String)] = []
    #if Logging
    private let log: RequestLog?
    #endif
    #if Metrics
    private let measurement: RequestMeters.Measurement?
    #endif
    #if Tracing
    private let span: RequestSpan?
    #endif

    init(_ request: ObservedRequest, _ observer: TaskObserver) {
        #if Metrics
        measurement = observer.meters?.current?.begin(request)
        #endif
        #if Tracing
        span = observer.tracing.map { RequestSpan(request, $0) }
        if let span { fields = span.fields }
        #endif
        #if Logging
        log = observer.logger.flatMap { RequestLog(request, $0) }
        writeLog { $0.began() }
        #endif
    }

    func answered(_ response: ObservedResponse) {
        #if Logging
        writeLog { $0.answered(response) }
        #endif
    }

    func ended(_ end: ObservedEnd) {
        #if Metrics
        measurement?.end(end)
        #endif
        #if Logging
        writeLog { $0.ended(end) }
        #endif
        #if Tracing
        span?.end(end)
        #endif
    }

    #if Logging
    /// Logs in the context of the span, so that the app's metadata providers can read the span.
    private func writeLog(_ tell: (RequestLog) -> Void) {
        guard let log else { return }
        #if Tracing
        if let span { return ServiceContext.withValue(span.context) { tell(log) } }
        #endif
        tell(log)
    }
    #endif
}
#endif
