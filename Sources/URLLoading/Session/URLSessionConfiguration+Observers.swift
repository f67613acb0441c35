//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
    /// The logger that the session reports to: requests, responses, redirects and failures at level `debug`, connections and the ends of
    /// requests at `trace`.
    ///
    /// Default nil: the session logs nothing. The logger is told no fields and no bodies, and URLs without user, password and what signs them. It is called on the
    /// session's event loop, and must not block. No effect on background sessions, whose requests another process sends.
    ///
    /// Needs the package's trait `Logging`. Not in Apple's API.
    public var logger: Logger? {
        get { get { $0.observers.logger } }
        set { set { $0.observers.logger = newValue } }
    }
    #endif

    #if Metrics
    /// Where the session's requests are measured.
    ///
    /// Default nil: by the factory that `MetricsSystem.bootstrap(_:)` was given, if it was. A `NOOPMetricsHandler` measures nothing. The
    /// factory is called on the session's event loop, and must not block. No effect on background sessions, whose requests another process
    /// sends.
    ///
    /// Needs the package's trait `Metrics`. Not in Apple's API.
    public var metricsFactory: (any MetricsFactory)? {
        get { get { $0.observers.metricsFactory } }
        set { set { $0.observers.metricsFactory = newValue } }
    }
    #endif

    #if Tracing
    /// The tracer that creates a span for each request, and injects its propagation fields.
    ///
    /// Default nil: the tracer that `InstrumentationSystem.bootstrap(_:)` was given, if one was. A `NoOpTracer` traces nothing. The span is a
    /// child of the context that the task was made in. The tracer is called on the session's event loop, and must not block. No effect on
    /// background sessions, whose requests another process sends.
    ///
    /// Needs the package's trait `Tracing`. Not in Apple's API.
    public var tracer: (any Tracer)? {
        get { get { $0.observers.tracer } }
        set { set { $0.observers.tracer = newValue } }
    }
    #endif
}
#endif
