// SPDX-License-Identifier: Apache-2.0

#if Logging || Metrics || Tracing
import Foundation
import LoadingObservers
#if Logging
public import Logging
#endif
#if Metrics
public import Metrics
#endif
#if Tracing
public import Tracing
#endif

extension URLSessionConfiguration {
    #if Logging
    /// The logger of the session: requests, responses, redirects and failures are logged at level `debug`, connections and
    /// completed requests at `trace`.
    ///
    /// Default nil: the session logs nothing. The log contains no header fields, bodies, user names, passwords, or signatures in
    /// URLs. The logger is called on the session's event loop and must not block. No effect on background sessions: another process
    /// sends their requests.
    ///
    /// Requires the SwiftPM trait `Logging`. Not in Apple's API.
    public var logger: Logger? {
        get { get { $0.observers.logger } }
        set { set { $0.observers.logger = newValue } }
    }
    #endif

    #if Metrics
    /// The factory for the metrics of the session's requests.
    ///
    /// Default nil: the factory passed to `MetricsSystem.bootstrap(_:)`, if there is one. A `NOOPMetricsHandler` disables metrics.
    /// The factory is called on the session's event loop and must not block. No effect on background sessions: another process
    /// sends their requests.
    ///
    /// Requires the SwiftPM trait `Metrics`. Not in Apple's API.
    public var metricsFactory: (any MetricsFactory)? {
        get { get { $0.observers.metricsFactory } }
        set { set { $0.observers.metricsFactory = newValue } }
    }
    #endif

    #if Tracing
    /// The tracer that creates a span for each request and injects the span's propagation fields into the request.
    ///
    /// Default nil: the tracer passed to `InstrumentationSystem.bootstrap(_:)`, if there is one. A `NoOpTracer` disables tracing.
    /// The parent of the span is the context in which the task was made. The tracer is called on the session's event loop and must
    /// not block. No effect on background sessions: another process sends their requests.
    ///
    /// Requires the SwiftPM trait `Tracing`. Not in Apple's API.
    public var tracer: (any Tracer)? {
        get { get { $0.observers.tracer } }
        set { set { $0.observers.tracer = newValue } }
    }
    #endif
}
#endif
